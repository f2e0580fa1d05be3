"""Where everything lies in the arrays of a cluster whose instances have roles, and of the network between them."""

from typing import NamedTuple

import numpy as np

from workbench.references import by_reference
from workbench.serving.kernels.logs import grown

# One transfer of KV; float64. First what `Outcome.flows` has, then how it goes on.
START_S, END_S, REQUEST, SOURCE, TARGET, SIZE = range(6)
"""When it began and ended (NaN before), which request, between which instances, and its bytes."""
LEFT_BYTES, RATE = 6, 7
"""Bytes that were left when rates changed last, and bytes/s since then (infinity: nothing bounds it)."""
STOP_S, OP, HOP_AT, HOPS = 8, 9, 10, 11
"""When it was over in whatever way; of weights, the row of its operation (-1 for KV), where the rows that it passes
begin in `hops`, and how many there are. These have no request and no target, and N + the number of a host as source."""
FLOW_SIZE = 12

# One operation by which weights come from rows or hosts that are named; int64.
NUMBER, GROUP, KIND, SENDERS_AT, SENDERS, MEMBERS, LOADING, FLOWING, FIRST_FLOW = range(9)
"""Its number among all operations, for which group, its kind, where its senders begin in `hops`, how many there are,
how many rows follow them there; how many of these load still, how many flows are on their way, and the first of them in
the log."""
OPERATION_SIZE = 9
ENDED, NEAR, CHAIN, RING = np.arange(4)
"""What `KIND` holds."""
# One entry of `hops`: a sender and whether it is a row that is read still; a row and its position in the operation;
# or a row that a flow passes.

# One port, the way out of an instance or, N further on, the way into it, then those out of hosts; float64.
CAPACITY, UNSHARED = 0, 1
"""Its bytes/s, and scratch: what is not given to any flow yet."""
PORT_SIZE = 2

# What all share; int64 and float64.
FLOWS_USED, UNDER_WAY, NEXT_FLOW, INSTANCES, UNEVEN, OPS_USED, HOPS_USED, FIRST_OP, HOP_ROOM, TURNED = range(10)
"""Rows of the log in use, flows under way, and the row of the one that ends next (-1 for none); how many instances
there are; whether rates are to be shared anew; rows of `ops` and `hops` in use, the first operation that has not ended,
and rows of `hops` that one instant may need; how many ports have turned."""
COUNTS_SIZE = 10
LATENCY_S, SINCE_S, NEXT_LANDING_S, NEXT_TURN_S = 0, 1, 2, 3
"""The least time of a transfer, when rates changed last, when the next flow ends, when the next port turns."""
CLOCK_SIZE = 4

# A port that turns, that is, fails or comes back; float64.
TURN_S, TURNS_PORT, TURNS_RATE = 0, 1, 2
"""When, which, and its bytes/s from then on."""

FLOWS_SHORT = 5
"""What the event loop says, beside the codes of `layout`, when the log of flows is too short."""


@by_reference
class Links(NamedTuple):
    """The network, and what is under way on it.

    Attributes:
        flows: float64[F, 12], the log in order of start.
        active: int64[F], rows of the flows that are under way, in order of start.
        ports: float64[2 N + H, 2].
        crowd: int64[2 N + H] scratch, flows of each port that have no rate yet.
        kv_bytes: float64[M], bytes of a token of each model.
        counts, clock: int64[10], float64[4].
        turns: float64[E + 1, 3], ports that turn, in order; the last row is never.
        ops, hops: int64[O, 9], int64[E, 2]; None where all are there from the start.
    """

    flows: np.ndarray
    active: np.ndarray
    ports: np.ndarray
    crowd: np.ndarray
    kv_bytes: np.ndarray
    counts: np.ndarray
    clock: np.ndarray
    turns: np.ndarray
    ops: np.ndarray | None
    hops: np.ndarray | None


def flows_of(links: Links | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Flows of KV, flows of weights and what these pass as `workbench.serving.model.Outcome` has them; else empty."""
    if links is None:
        return np.empty((0, 6)), np.empty((0, 6)), np.empty((0, 2))
    flows = links.flows[: links.counts[FLOWS_USED]]
    sent = flows[flows[:, OP] >= 0]
    chains, hops = np.empty((len(sent), 6)), np.empty((0, 2))
    if len(sent):
        chains[:] = sent[:, [START_S, END_S, STOP_S, OP, SOURCE, SIZE]]
        chains[:, 3] = links.ops[sent[:, OP].astype(np.int64), NUMBER]
        at, count = sent[:, HOP_AT].astype(np.int64), sent[:, HOPS].astype(np.int64)
        rows = np.concatenate([links.hops[a : a + k, 0] for a, k in zip(at, count, strict=True)])
        hops = np.column_stack([np.repeat(np.arange(len(sent)), count), rows]).astype(np.float64)
    return flows[flows[:, OP] < 0, : SIZE + 1], chains, hops


def links_from(
    network: tuple, place: np.ndarray, host: np.ndarray | None, groups: int, outages: tuple
) -> Links:  # fmt: skip
    """An idle network.

    Parameters:
        network: the fields of `workbench.serving.model.Network`.
        place: int64[N], the place of each row, or of each instance of its own.
        host: int64[N], the host of each row of a cluster that changes its size; None for others.
        groups: that its rows are of.
        outages: the fields of `workbench.serving.model.Outages`.
    """
    egress, ingress, latency_s, kv_bytes, host_egress = network
    capacity = np.concatenate([egress, ingress, host_egress])
    ports = np.zeros((capacity.size, PORT_SIZE))
    ports[:, CAPACITY] = capacity
    turns = _turns(place, capacity, outages)
    counts, clock = np.zeros(COUNTS_SIZE, np.int64), np.array([latency_s, 0.0, np.inf, turns[0, TURN_S]])
    counts[NEXT_FLOW], counts[INSTANCES] = -1, egress.size
    if host is not None:
        # Rings pass as many rows as the fullest host has, for each node; a row may also be a sender for each group.
        counts[HOP_ROOM] = egress.size * (np.bincount(host).max() + groups + 8)
    return Links(
        flows=np.empty((64, FLOW_SIZE)),
        active=np.empty(64, np.int64),
        ports=ports,
        crowd=np.empty(capacity.size, np.int64),
        kv_bytes=kv_bytes,
        counts=counts,
        clock=clock,
        turns=turns,
        ops=None if host is None else np.zeros((64, OPERATION_SIZE), np.int64),
        hops=None if host is None else np.zeros((64, 2), np.int64),
    )


def _turns(place: np.ndarray, capacity: np.ndarray, outages: tuple) -> np.ndarray:
    """Ports that fail or come back, of all rows of a place; at one instant those that come back are first."""
    fail_s, port, back_s = outages
    places, n = 1 + place.max(), place.size
    turns = []
    for moments, fails in ((back_s, False), (fail_s, True)):
        for time_s, p in zip(moments, port, strict=True):
            way = np.flatnonzero(place == p % places) + n * (p // places) if p < 2 * places else [p + 2 * (n - places)]
            turns += [(time_s, fails, p, one, 0.0 if fails else capacity[one]) for one in way]
    rows = [(time_s, one, rate) for time_s, _, _, one, rate in sorted(turns)]
    return np.array([*rows, (np.inf, -1, 0.0)], np.float64)


def grown_links(links: Links) -> Links:
    """The same with logs that have as much room again."""
    longer = ("flows", "active") if links.ops is None else ("flows", "active", "ops", "hops")
    return links._replace(**{name: grown(getattr(links, name)) for name in longer})
