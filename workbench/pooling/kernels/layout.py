"""Where everything lies in the arrays of the loop of turns."""

from typing import Any, NamedTuple

import numpy as np

# One request is one row of int64.
STATUS, MODEL, PROMPT, OUTPUT, MADE = range(5)
AT = 5
"""Where its tokens begin in the row of all token times."""
NEXT = 6
"""The next one of its group, or of its batch."""
GROUP, PREFILLS, DECODES = 7, 8, 9
"""Its group, the instance of its prompt, the instance that decodes it; -1 for none yet."""
BEGUN = 10
"""Whether its prompt was taken up."""
KV, LEAVING, BLOCKS = 11, 12, 13
"""Where its KV cache is; whether its way to the host has not ended; its blocks on that way and in the host."""
NEXT_OUT, NEXT_IN = 14, 15
IN_STEP, BROKEN, BELIEVED, REFUSED, RESERVED = range(16, 21)
"""`RESERVED`: KV blocks that it was thought to take."""
REQUEST_SIZE = 21

NOWHERE, ON_GPU, IN_HOST, WANTED, COMING = range(5)
"""What `KV` holds."""

# Its instants and sums, one row of float64.
ARRIVAL_S, FIRST_S, FINISH_S, WAIT_S, PREFILL_S, DECODE_S, MOVED_S, WAITED_S, FLOW_FROM_S = range(9)
MOMENTS_SIZE = 9

# One prefill group.
GROUP_MODEL, GROUP_TAKEN, GROUP_WAITING, GROUP_BLOCKS, GROUP_HEAD, GROUP_TAIL, GROUP_NEXT = range(7)
GROUP_SIZE = 7

# One batch of a work list.
BATCH_MODEL, BATCH_HEAD, BATCH_TAIL, BATCH_COUNT, BATCH_NEXT, IN_ROUND = range(6)
BATCH_WAITING, BATCH_USED = 6, 7
"""Where whole requests are served: requests whose prompt is to be processed, KV blocks of the others."""
BATCH_SIZE = 8

# One instance: what it is and holds.
NODE, IS_DECODE, RESIDENT, TARGET = range(4)
FETCHED, FETCH_DONE = 4, 5
"""The model that is prefetched, -1 for none; whether it is there."""
STAGE, JOB = 6, 7
FIRST_GROUP, LAST_GROUP = 8, 9
FIRST_BATCH, LAST_BATCH, PLACE, TURN = 10, 11, 12, 13
"""The work list; the batch whose turn was last (-1: the round has not begun) and is now (-1: nobody's)."""
CLOCKED, ENDING, ASKED = 14, 15, 16
"""Of a turn: whether its quota runs; whether it is to end; whether its KV caches were called."""
OUT_HEAD, OUT_TAIL, OUT_NOW, OUTS = 17, 18, 19, 20
IN_HEAD, IN_TAIL, IN_NOW = 21, 22, 23
USED_BYTES = 24
TURN_TOKENS, TURN_REQUESTS, SWITCH_KIND = 25, 26, 27
TAIL_MODEL = 28
"""Where whole requests are served: the model of the last batch that it was given."""
INSTANCE_SIZE = 29

IDLE, LOADING, FETCHING, TIMED, WORKING, WAITING_KV, WAITING_OUT, WAITING_IN, ASLEEP = range(9)
"""What `STAGE` holds. An instance that is idle, waits or sleeps can be poked."""

# Its instants and sums.
CLOCK_S, TURN_FROM_S, READY_S, SWITCH_FROM_S, SINCE_SWITCH_S, STEP_S, BUSY_S, SWITCHING_S, ACTIVE_S = range(9)
"""`ACTIVE_S`: where whole requests are served, when it last began a step or a switch."""
REALS_SIZE = 9

# Its transfers: weights at a switch, weights that are prefetched, KV caches out and in.
LOAD, FETCH, OUT, IN = range(4)
FLOWS = 4
LEFT, RATE, SINCE_S, CAP = range(4)
FLOW_SIZE = 4

# When what is due at an instance happens, infinity for never: its transfers end, by kind; then
END_S, ACT_S = 4, 5
"""its step, switch or sleep ends; it decides what to do next."""
TIMES_SIZE = 6

# What all share.
NEXT_ARRIVAL, OLDEST, SPARES, GROUPS_USED, INSIDE_NOW, MISSES, QUIET = range(7)
SWITCHES_USED, TURNS_USED, ROUNDS_USED, HOST_USED = 7, 8, 9, 10
SHARED_SIZE = 11

DONE, REJECTED, FAILED = 1, 2, 3
"""What `STATUS` holds; 0 is inside."""

FINISHED, LOGS_SHORT = 0, 1
"""What the loop says when it stops."""


class State(NamedTuple):
    """All that changes, and what it is run by: n requests for M models on N instances of K nodes.

    Attributes:
        requests, moments, groups, batches, quotas, instances, reals, flows, times, shared: rows as above.
        first: int64[K + 1], where the instances of each node begin.
        held, held_s, held_bytes: int64[K, M], float64[K, M], float64[K]: which weights a host holds, when each was last
            read, and their bytes.
        spare: int64[n], numbers of batches that are free.
        some, many, chosen, wanted, share: scratch: int64 for the most of n, M and N; float64 for two batches' numbers a
            request; int64 and twice float64 for all transfers.
        owners: int64, requests of each owner inside.
        reserved: float64[K], bytes of KV cache that the requests inside may take at each node.
        token_s: float64, times of all tokens.
        switches: float64 log of from, to, instance, model, kind and bytes.
        turns: float64 log of begin, ready, end, instance, model, quota, requests at first and tokens.
        rounds: float64 log of time, instance, batches, pace, seconds of switches, and sum of quotas.
        host: float64 log of time, node, request, model and blocks, negative where they are freed.
        models, pool, rules: of `workbench.pooling.model.lowered`.
    """

    requests: np.ndarray
    moments: np.ndarray
    groups: np.ndarray
    batches: np.ndarray
    quotas: np.ndarray
    instances: np.ndarray
    reals: np.ndarray
    flows: np.ndarray
    times: np.ndarray
    shared: np.ndarray
    first: np.ndarray
    held: np.ndarray
    held_s: np.ndarray
    held_bytes: np.ndarray
    spare: np.ndarray
    some: np.ndarray
    many: np.ndarray
    chosen: np.ndarray
    wanted: np.ndarray
    share: np.ndarray
    owners: np.ndarray
    reserved: np.ndarray
    token_s: np.ndarray
    switches: np.ndarray
    turns: np.ndarray
    rounds: np.ndarray
    host: np.ndarray
    models: Any
    pool: Any
    rules: Any
