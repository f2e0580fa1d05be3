"""The state of a cluster that changes its size, laid out from plain arrays, and its logs as plain arrays again."""

import numpy as np

from workbench.serving.kernels import layout
from workbench.serving.kernels import scaled_layout as at
from workbench.serving.kernels.layout import State
from workbench.serving.kernels.roles_layout import Links
from workbench.serving.kernels.scaled_layout import Scaled


def scaled_from(scaling: tuple, state: State, links: Links | None, updates: tuple) -> Scaled:
    """Lay out rows, hosts and models; rows that are not up at first are taken off the router.

    Parameters:
        scaling: the fields of `workbench.serving.model.Scaling`.
        state: of the instances; changed.
        links: between instances with roles of their own; None where there are none.
        updates: the fields of `workbench.serving.model.Updates`.
    """
    (place, host, start_state, tick_s, scrape, kind, par, low, high, up_ticks, down_ticks, down_step, source, control_s,
     fixed_s, dram_s, multicast_s, size, rate, room, ttl_s, cached, keep_s) = scaling[:23]  # fmt: skip
    n, m, hosts, groups = place.size, size.size, rate.size, kind.size
    rows = np.zeros((n, at.ROW_SIZE), np.int64)
    rows[:, at.PLACE_OF], rows[:, at.HOST_OF], rows[:, at.ROW_STATE] = place, host, start_state
    rows[:, at.HELPED] = -1
    rows[:, at.OPERATION], rows[:, at.MODEL_OF] = -1, state.instances[:, layout.MODEL] % m
    rows[:, at.ROLE_OF] = state.instances[:, layout.ROLE]
    times = np.full((n, at.ROW_TIMES_SIZE), np.inf)
    times[:, at.LEFT_BYTES], times[:, at.DRAM_S] = 0, dram_s
    times[:, at.OTHER_FORM :] = scaling.piped_form.reshape(n, -1)
    state.instances[:, layout.UP] = start_state == at.UP_STATE
    used_s = np.where((cached == 1) & (size <= room[:, None]), 0.0, np.nan)
    used_s[scaling.pinned == 1] = np.inf
    nodes = np.hstack([np.zeros((hosts, at.USED_S)), used_s])
    nodes[:, at.SSD_RATE], nodes[:, at.CACHE_BYTES], nodes[:, at.SSD_END_S] = rate, room, np.inf
    nodes[:, at.SSD_EACH] = scaling.ssd_each_bytes_per_s
    models = np.zeros((groups, at.MODEL_SIZE), np.int64)
    for column, values in enumerate((kind, low, high, up_ticks, down_ticks, down_step, source)):
        models[:, column] = values
    models[:, at.MEMORY_FIRST], models[:, at.HOSTS_SEND] = scaling.memory_first, scaling.hosts_send
    models[:, at.MOST_CHAINS], models[:, at.DECODE_FIRST] = scaling.chains, scaling.decode_first
    models[:, at.LIVE], models[:, at.LAYERS], models[:, at.REROUTES] = scaling.live, scaling.layers, scaling.reroute
    models[:, at.MUTATES], models[:, at.REQUEUES] = scaling.mutate, scaling.requeue
    models[:, at.WAITS], models[:, at.STAYS] = scaling.waits, scaling.stays
    roles = groups // m
    reals = np.column_stack(
        [
            control_s, fixed_s, np.tile(size, roles), np.tile(ttl_s, roles), keep_s,
            scaling.lag_s, scaling.near_s, scaling.activation_s, scaling.promise_s, par,
        ]
    )  # fmt: skip
    counts = np.zeros(at.COUNTS_SIZE, np.int64)
    counts[at.TICK], counts[at.TICKING] = 1, 1
    counts[at.SCRAPE] = scrape
    counts[at.QUIET_ENOUGH] = scrape + up_ticks.max() + down_ticks.max() + 1
    clock = np.full(at.CLOCK_SIZE, np.inf)
    clock[at.TICK_S], clock[at.LAST_S] = tick_s, -1
    clock[at.STALE_S], clock[at.DETECT_S] = scaling.stale_s, scaling.detect_s
    places = place.max() + 1
    lists = np.full((at.LISTS, 1 + max(n, hosts, places)), -1)
    up = np.flatnonzero(start_state == at.UP_STATE)
    lists[at.OCCUPANT, place[up]] = up
    for by, begin, where, count in ((at.AT_PLACE, at.PLACE_AT, place, places), (at.AT_HOST, at.HOST_AT, host, hosts)):
        lists[by, :n] = np.argsort(where, kind="stable")
        lists[begin, : count + 1] = np.searchsorted(np.sort(where), np.arange(count + 1))
    return Scaled(
        rows=rows, times=times, hosts=nodes, gone_s=np.full(used_s.shape, -np.inf), models=models, reals=reals,
        multicast=_multicast(
            *(
                np.concatenate([local[:, None], sent], axis=1)
                for local, sent in (
                    (scaling.local_s, multicast_s),
                    (scaling.local_piped_s, scaling.piped_s),
                    (scaling.local_with, scaling.piped_with),
                )
            ),
            scaling.switch_whole,
        ),
        samples=np.zeros((max(scrape + 1, up_ticks.max(), down_ticks.max()), groups, at.SAMPLE_SIZE), np.int64),
        counts=counts, clock=clock, lists=lists, logs=np.empty((4, 16 * n + groups + 256, at.LOADS_SIZE)),
        updates=np.array([*zip(*updates, strict=True), (np.inf, -1)], np.float64), links=links,
    )  # fmt: skip


def _multicast(copied_s: np.ndarray, piped_s: np.ndarray, piped_with: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """What multicasts take, float64[M, S + 1, K, K, 3]; pipelines that form no sooner than they end are left out."""
    whole, at_once = whole[:, None, None, None] == 1, np.tri(copied_s.shape[-1]) == 1  # target i of k + 1, i to k
    last_s = np.where(at_once, copied_s, 0).max(axis=-1, keepdims=True)
    ready_s = np.where(whole, last_s, copied_s)
    forms = piped_s < ready_s
    return np.stack([ready_s, np.where(forms, piped_s, np.inf), np.where(forms, piped_with, -1)], axis=-1)


def logged(scaled: Scaled | None, state: State, segments: np.ndarray) -> tuple[np.ndarray, ...]:
    """The four tables that `workbench.serving.model.Outcome` has of a cluster that changes its size; empty without.

    Parameters:
        scaled, state: after the run.
        segments: int64[k, 5] of the outcome.
    """
    if scaled is None:
        return tuple(np.empty((0, size)) for size in (at.STATES_SIZE, at.LOADS_SIZE, at.TICKS_SIZE, at.ASSISTS_SIZE))
    states, loads, ticks, assists = (
        scaled.logs[log, : scaled.counts[used], :columns].copy() for log, used, columns in _LOGS
    )
    first = segments[segments[:, 1] == 0]
    first_s = state.moments[first[:, 0], layout.FIRST_TOKEN_S]
    token_load = _load_before(loads, first[:, 3], first_s)
    np.fmin.at(loads[:, 6], token_load[token_load >= 0], first_s[token_load >= 0])
    done = state.requests[:, layout.STATUS] == layout.DONE
    finish_load = _load_before(loads, state.requests[done, layout.INSTANCE], state.moments[done, layout.FINISH_S])
    np.add.at(loads[:, 7], finish_load[finish_load >= 0], 1)
    return states, loads, ticks, assists


def with_longer_logs(scaled: Scaled) -> Scaled:
    """The same with room for as many entries again; only those that there are take memory."""
    longer = np.empty((len(scaled.logs), 2 * scaled.logs.shape[1], scaled.logs.shape[2]))
    for log, used, _ in _LOGS:
        longer[log, : scaled.counts[used]] = scaled.logs[log, : scaled.counts[used]]
    return scaled._replace(logs=longer)


def _load_before(loads: np.ndarray, row: np.ndarray, time_s: np.ndarray) -> np.ndarray:
    """The last load of a row that let it serve before an instant, complete or in a pipeline; -1 for none.

    What happens on a row happens with the weights of that load: it is starting, empty or dead in between.
    """
    began_s = np.fmin(loads[:, 1], loads[:, 8])
    began = np.flatnonzero(~np.isnan(began_s))
    rows = np.concatenate([loads[began, 2], row])
    times = np.concatenate([began_s[began], time_s])
    is_event = np.repeat([0, 1], [began.size, row.size])
    order = np.lexsort((is_event, times, rows))
    # The place of the last load at or before each entry, in order; it counts if it is of the same row.
    latest = np.maximum.accumulate(np.where(is_event[order] == 0, np.arange(order.size), -1))
    found = np.full(order.size, -1)
    same = (latest >= 0) & (rows[order[latest]] == rows[order])
    found[order[same]] = began[order[latest[same]]]
    return found[began.size :]


_LOGS = (
    (at.STATES, at.STATES_USED, at.STATES_SIZE),
    (at.LOADS, at.LOADS_USED, at.LOADS_SIZE),
    (at.TICKS, at.TICKS_USED, at.TICKS_SIZE),
    (at.ASSISTS, at.ASSISTS_USED, at.ASSISTS_SIZE),
)
"""Each log of a cluster that changes its size: where it is, where its length is counted, and its columns."""
