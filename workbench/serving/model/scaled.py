"""How a cluster changes its size: what an autoscaler sees and decides, and how weights reach an instance."""

from typing import NamedTuple

import numpy as np

EMPTY, STARTING, UP, DRAINING, WARM, DEAD, PIPED = range(7)
"""States of a row: without weights; being loaded; serving; finishing what it has; idle with its weights; failed; in
service as a member of a pipeline while its weights are still on their way."""

STATE_COLUMNS = ("time_s", "row", "state")
LOAD_COLUMNS = (
    "start_s", "end_s", "row", "tier", "sources", "operation", "first_token_s", "helped", "piped_s",
)  # fmt: skip
TICK_COLUMNS = ("time_s", "model", "want", "have")
"""Columns of the three tables that `Outcome` adds."""


class Scaling(NamedTuple):
    """Places that can hold one instance of one of M models at a time, on H hosts; a row of `Instances` is one pair.

    Attributes:
        place: int64[N], the place of each row, numbered from 0; a place has one row at most for each model.
        host: int64[N], the host of each row, numbered from 0, the same for all rows of a place.
        start_state: int64[N], `EMPTY` or `UP` at time 0; one row of a place at most is up.
        tick_s: seconds between two decisions; the first one is at `tick_s`.
        scrape_ticks: how many ticks old the load is that a decision sees.
        kind: int64[M], the number of each model's policy, see `workbench.serving.policy.SCALERS`.
        par: float64[M, 8], its parameters.
        min_rows, max_rows: int64[M], bounds of what it may want.
        up_ticks, down_ticks: int64[M], ticks in a row that must want more, or less, before anything is done; 1 or more.
        down_step: int64[M], most rows drained at one tick, 1 or more.
        source: int64[M], the number of how weights come, see `workbench.serving.policy.SOURCES`.
        control_s: float64[M], seconds of starting an engine and warming it up, beside loading.
        fixed_s: float64[M], seconds of loading, where they are given.
        dram_s: float64[N], seconds of loading from the host's memory.
        multicast_s: float64[M, S, K, K], seconds until target i of k has its copy from s sources, at [m, s-1, k-1, i].
        bytes: float64[M], the weights.
        ssd_bytes_per_s: float64[H], shared by all that load on the host.
        cache_bytes: float64[H], room for weights in the host's memory.
        ttl_s: float64[M], seconds that unused weights stay there, or infinity.
        cached: int64[H, M], 1 where they are there at time 0, last used then.
        keep_s: float64[M], seconds that an idle row stays warm, or infinity.
        piped_s: float64[M, S, K, K], seconds until target i of k serves as a member of a pipeline, indexed as
            `multicast_s`; infinity where it never does.
        piped_with: int64[M, S, K, K], the number of that pipeline within the operation; -1 for none.
        piped_form: float64[N, 2, 5], coefficients of the step time while a row is a member, as `Instances.form`.
        switch_whole: int64[M], 0 lets each target go on alone when it has its own copy, 1 when all of the operation do.
        ssd_each_bytes_per_s: float64[H], that one load gets at most, or infinity; `checked` fills an empty one with it.
        memory_first: int64[M], with source *multicast*: 1 lets rows whose hosts have the weights in memory load from
            there, together as an operation of their own. `checked` fills this and all below, if empty, with what
            changes nothing.
        local_s, local_piped_s, local_with: [M, K, K], for row i of k that load from memory together, at [m, k-1, i]:
            seconds until it has all, until it serves as a member of a pipeline, and the number of that.
        hosts_send: int64[M], 1 lets hosts send what they have in memory where no row has the weights.
        pinned: int64[H, M], 1 where they never leave the memory, and are there at time 0.
    """

    place: np.ndarray
    host: np.ndarray
    start_state: np.ndarray
    tick_s: float
    scrape_ticks: int
    kind: np.ndarray
    par: np.ndarray
    min_rows: np.ndarray
    max_rows: np.ndarray
    up_ticks: np.ndarray
    down_ticks: np.ndarray
    down_step: np.ndarray
    source: np.ndarray
    control_s: np.ndarray
    fixed_s: np.ndarray
    dram_s: np.ndarray
    multicast_s: np.ndarray
    bytes: np.ndarray
    ssd_bytes_per_s: np.ndarray
    cache_bytes: np.ndarray
    ttl_s: np.ndarray
    cached: np.ndarray
    keep_s: np.ndarray
    piped_s: np.ndarray
    piped_with: np.ndarray
    piped_form: np.ndarray
    switch_whole: np.ndarray
    ssd_each_bytes_per_s: np.ndarray = np.empty(0)
    memory_first: np.ndarray = np.empty(0)
    local_s: np.ndarray = np.empty(0)
    local_piped_s: np.ndarray = np.empty(0)
    local_with: np.ndarray = np.empty(0)
    hosts_send: np.ndarray = np.empty(0)
    pinned: np.ndarray = np.empty(0)
