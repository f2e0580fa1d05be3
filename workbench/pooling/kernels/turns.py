"""A whole run of turns: from plain arrays to plain arrays."""

from typing import Any

import numpy as np

from workbench.jit import lean_kernel
from workbench.pooling.kernels import layout
from workbench.pooling.kernels.admitting import arrive
from workbench.pooling.kernels.events import FLOW, due, happen
from workbench.pooling.kernels.layout import (
    ARRIVAL_S,
    FINISHED,
    HOST_USED,
    LOGS_SHORT,
    NEXT_ARRIVAL,
    ROUNDS_USED,
    SWITCHES_USED,
    TURNS_USED,
    State,
)


@lean_kernel
def run(s, ahead):
    """Let everything happen; `LOGS_SHORT` where a log had too few rows (the rest is right)."""
    count = s.requests.shape[0]
    while True:
        time_s, kind, who, shared_s = due(s)
        r = s.shared[NEXT_ARRIVAL]
        arrival_s = s.moments[r, ARRIVAL_S] if r < count else np.inf
        if arrival_s < time_s or (arrival_s == time_s < np.inf and kind != FLOW):
            s.shared[NEXT_ARRIVAL] = r + 1
            arrive(s, ahead, r, arrival_s)
        elif time_s == np.inf:
            break
        else:
            happen(s, time_s, kind, who, min(shared_s, arrival_s))
    if (
        s.shared[SWITCHES_USED] > s.switches.shape[0]
        or s.shared[TURNS_USED] > s.turns.shape[0]
        or s.shared[ROUNDS_USED] > s.rounds.shape[0]
        or s.shared[HOST_USED] > s.host.shape[0]
    ):
        return LOGS_SHORT
    return FINISHED


ROWS = 32
"""Of each log a request, at first; a run that needs more is made again with as many as it needs."""

LOGS = {"switches": (SWITCHES_USED, 6), "turns": (TURNS_USED, 8), "rounds": (ROUNDS_USED, 6), "host": (HOST_USED, 5)}


def take_turns(requests: Any, models: Any, pool: Any, rules: Any) -> State:
    """Run a pool whose models take turns; parameters are those of `workbench.pooling.model.lowered`.

    Returns:
        The state at the end, its logs cut to what was written.
    """
    rows = dict.fromkeys(LOGS, ROWS * requests.arrival_s.size + 1024)
    while True:
        state = fresh(requests, models, pool, rules, rows)
        if run(state, fresh(requests, models, pool, rules, dict.fromkeys(LOGS, 0))) == FINISHED:
            cut = {name: getattr(state, name)[: state.shared[used]] for name, (used, _) in LOGS.items()}
            return state._replace(**cut)
        rows = {name: max(rows[name], int(state.shared[used])) for name, (used, _) in LOGS.items()}


def fresh(requests: Any, models: Any, pool: Any, rules: Any, rows: dict[str, int]) -> State:
    """The state before anything happened, with logs of so many rows."""
    count, size, kinds = requests.arrival_s.size, pool.node.size, models.weight_bytes.size
    nodes = 1 + int(pool.node.max())
    row = np.full((count, layout.REQUEST_SIZE), -1)
    zero = [layout.STATUS, layout.MADE, layout.BEGUN, layout.KV, layout.LEAVING, layout.BLOCKS, layout.IN_STEP,
            layout.BROKEN, layout.RESERVED]  # fmt: skip
    row[:, zero] = 0
    row[:, layout.MODEL], row[:, layout.PROMPT], row[:, layout.OUTPUT] = (
        requests.model,
        requests.prompt,
        requests.output,
    )
    row[:, layout.BELIEVED], row[:, layout.REFUSED] = requests.believed, requests.refused
    row[:, layout.AT] = np.cumsum(requests.output) - requests.output
    moments = np.zeros((count, layout.MOMENTS_SIZE))
    moments[:, [layout.FIRST_S, layout.FINISH_S, layout.WAIT_S]] = np.nan
    moments[:, ARRIVAL_S] = requests.arrival_s
    one = np.full((size, layout.INSTANCE_SIZE), -1)
    zero = [layout.STAGE, layout.FETCH_DONE, layout.CLOCKED, layout.ENDING, layout.ASKED, layout.OUTS,
            layout.USED_BYTES, layout.TURN_TOKENS, layout.SWITCH_KIND]  # fmt: skip
    one[:, zero] = 0
    one[:, layout.NODE], one[:, layout.IS_DECODE] = pool.node, pool.decodes
    # Hosts begin with the first models of their own that they have room for.
    held = np.zeros((nodes, kinds), np.int64)
    for node in range(nodes):
        own = models.home == node
        held[node] = own & (np.cumsum(np.where(own, models.weight_bytes, 0.0)) <= pool.cache_bytes)
    return State(
        requests=row,
        moments=moments,
        groups=np.zeros((count, layout.GROUP_SIZE), np.int64),
        batches=np.zeros((count, layout.BATCH_SIZE), np.int64),
        quotas=np.zeros(count),
        instances=one,
        reals=np.zeros((size, layout.REALS_SIZE)),
        flows=np.zeros((size, layout.FLOWS, layout.FLOW_SIZE)),
        times=np.full((size, layout.TIMES_SIZE), np.inf),
        shared=np.array([0] * 2 + [count] + [0] * (layout.SHARED_SIZE - 3)),
        first=np.searchsorted(pool.node, np.arange(nodes + 1)),
        held=held,
        held_s=np.zeros((nodes, kinds)),
        held_bytes=(held * models.weight_bytes).sum(axis=1),
        spare=np.arange(count),
        some=np.zeros(max(count, kinds, size), np.int64),
        many=np.zeros(max(2 * count, size)),
        chosen=np.zeros(max(layout.FLOWS * size, kinds), np.int64),
        wanted=np.zeros(layout.FLOWS * size),
        share=np.zeros(layout.FLOWS * size),
        owners=np.zeros(models.owner_most.size, np.int64),
        reserved=np.zeros(nodes),
        token_s=np.empty(int(requests.output.sum()) if rows["turns"] else 0),
        **{name: np.empty((rows[name], columns)) for name, (_, columns) in LOGS.items()},
        models=models,
        pool=pool,
        rules=rules,
    )
