"""Where everything lies in the arrays of a cluster that changes its size."""

from typing import NamedTuple

import numpy as np

from workbench.references import by_reference
from workbench.serving.kernels.roles_layout import Links

# One row, a place and a model, beside its row of instances; int64.
PLACE_OF, HOST_OF, ROW_STATE = 0, 1, 2
LOADED_AT = 3
"""Number of the operation that was next when it came up: it is a source of those from there on."""
OPERATION, TIER, LOAD = 4, 5, 6
"""Of its last load: the operation, where the weights come from, and the row of the log."""
ON_SSD = 7
"""Whether its weights are being read from SSD."""
PIPELINE = 8
"""The number, within the operation, of the pipeline that it is to be a member of, or is; -1 for none."""
FROM_HOSTS = 9
"""Whether its weights are sent from memories of hosts, which no failure of a row ends."""
MODEL_OF, ROLE_OF = 10, 11
OPERATION_AT, POSITION = 12, 13
"""Of its last load, if its senders are named: the row of `Links.ops`, and its position in that operation, from 0."""
USES = 14
"""How many of these operations read it."""
HELPED, HELPS = 15, 16
"""The entry of the log about the step that another helps with, -1 for none; how many steps it helps with."""
CHANGES, OLD = 17, 18
"""Whether it drains to give its place to the other role of its model; whether it has weights of which there is a newer
version."""
ROW_SIZE = 19

# Its times; float64.
READY_S, LEFT_BYTES, WARM_SINCE_S, DRAM_S = 0, 1, 2, 3
"""When it will be up (infinity if that is not known), bytes to read from SSD, since when it is warm, and the time it
takes from the host's memory."""
FORMS_S = 4
"""When it will serve as a member of a pipeline, infinity for never."""
THERE_S = 5
"""When its weights will all have been sent, infinity if that is not known."""
SEEN_S = 6
"""When it is seen that the host's memory has its weights no more, so that they are read; infinity else."""
OTHER_FORM = 7
"""The ten step-time coefficients that it does not use now: as a member of a pipeline, and else those of its own."""
ROW_TIMES_SIZE = 17

EMPTY, STARTING, UP_STATE, DRAINING, WARM, DEAD, PIPED = np.arange(7)
"""What `ROW_STATE` holds; as numpy's numbers, because numba would compile a function anew for each plain constant."""

# One host; float64.
SSD_RATE, CACHE_BYTES, SSD_CHANGED_S, SSD_END_S, SSD_EACH = 0, 1, 2, 3, 4
"""Bytes/s of its SSDs, room for weights in its memory, when a read began or ended last, when the next one ends, and
bytes/s that one read gets at most."""
USED_S = 5
"""From here on for each model: when its weights in the host's memory were used last; NaN where they are not there,
infinity where they never leave, minus infinity where they will not once they are there again."""

# One model; int64 and float64.
KIND, MIN_ROWS, MAX_ROWS, UP_TICKS, DOWN_TICKS, DOWN_STEP, SOURCE, ARRIVED, MEMORY_FIRST, HOSTS_SEND = range(10)
MOST_CHAINS, DECODE_FIRST, LIVE, LAYERS, REROUTES, MUTATES, REQUEUES, WAITS, LATEST_OF = range(10, 19)
STAYS = 19
MODEL_SIZE = 20
CONTROL_S, FIXED_S, WEIGHT_BYTES, TTL_S, KEEP_S, LAG_S, NEAR_S, ACTIVATION_S, PROMISE_S, PAR = range(10)

# What a decision sees of a model, or of one role of it.
S_WAITING, S_OUTSTANDING, S_PROMPT, S_BLOCKS, S_ARRIVED, S_STORED = range(6)
WANTED = 6
"""What it then wants, within its bounds."""
SAMPLE_SIZE = 7

# What all share; int64 and float64.
TICK, TICKING, QUIET, QUIET_ENOUGH, OPERATIONS, STATES_USED, LOADS_USED, TICKS_USED, DRAINING_ROWS, SCRAPE = range(10)
ASSISTS_USED, UPDATED = 10, 11
"""Number of the next tick, whether there is one, how many in a row could change nothing, after how many ticks end;
operations so far; entries of the logs; rows that drain; how many ticks old the samples are that decisions see; how
many new versions there have been."""
COUNTS_SIZE = 12
TICK_S, NEXT_LOAD_S, NEXT_EXPIRY_S, NEXT_DRAINED_S, LAST_S, NEXT_FORM_S = range(6)
STALE_S, DETECT_S = 6, 7
"""Seconds between ticks; when the next load completes (or a read begins late), warm row expires, draining row may be
done; the last event (-1 before the run begins); when the next member of a pipeline is ready; how late it is known that
weights left a memory, and how long it takes to see it."""
CLOCK_SIZE = 8

# What a multicast takes, for each target; from no source, what loads from the memories of hosts take together.
COPIED_S, PIPED_S, PIPED_WITH = 0, 1, 2
"""Seconds until it has its copy, and until it is in a pipeline (infinity for never); the number of that pipeline."""

# Lists of whole numbers, one row each.
AT_PLACE, AT_HOST, PLACE_AT, HOST_AT = 0, 1, 2, 3
"""The rows by place and by host, in index order, and where those of each place and of each host begin."""
OCCUPANT, TARGETS, HITS, CHOSEN = 4, 5, 6, 7
"""The row of each place that is not empty, -1 for none; scratch: rows chosen to start, which hosts cache the model,
rows or hosts chosen to send, or rows that a flow passes."""
LISTS = 8

# The logs, with as many columns as the tables of `Outcome`.
STATES, LOADS, TICKS, ASSISTS = 0, 1, 2, 3
STATES_SIZE, LOADS_SIZE, TICKS_SIZE, ASSISTS_SIZE = 3, 10, 4, 6
"""Of loads the last one is the version."""

# A new version.
UPDATE_S, UPDATE_OF = 0, 1
"""When, and of which model."""

LOGS_SHORT = 4
"""What the event loop says, beside the codes of `layout`, when the logs here are too short."""


@by_reference
class Scaled(NamedTuple):
    """Rows, hosts, models and logs of a cluster that changes its size.

    Attributes:
        rows, times: int64[N, 19], float64[N, 17].
        hosts: float64[H, 5 + M].
        gone_s: float64[H, M], when weights left the memory of a host for lack of room or a newer version; -infinity if
            they did not.
        models, reals: int64[M, 20], float64[M, 17].
        multicast: float64[M, S + 1, K, K, 3], by number of sources from 0 on.
        samples: int64[W, M, 7], ring of the last ticks.
        counts, clock: int64[12], float64[8].
        lists: int64[8, L], whole numbers by place, host or row.
        logs: float64[4, L, 10], `STATES`, `LOADS`, `TICKS` and `ASSISTS`, of which each has its number of columns.
        updates: float64[U + 1, 2], new versions in order; the last row is never.
        links: the network between instances with roles of their own; None where there are none.
    """

    rows: np.ndarray
    times: np.ndarray
    hosts: np.ndarray
    gone_s: np.ndarray
    models: np.ndarray
    reals: np.ndarray
    multicast: np.ndarray
    samples: np.ndarray
    counts: np.ndarray
    clock: np.ndarray
    lists: np.ndarray
    logs: np.ndarray
    updates: np.ndarray
    links: Links | None
