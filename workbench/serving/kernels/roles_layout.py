"""Where everything lies in the arrays of a cluster whose instances have roles, and of the network between them."""

from typing import NamedTuple

import numpy as np

# One transfer of KV; float64. First what `Outcome.flows` has, then how it goes on.
START_S, END_S, REQUEST, SOURCE, TARGET, SIZE = range(6)
"""When it began and ended (NaN before), which request, between which instances, and its bytes."""
LEFT_BYTES, RATE = 6, 7
"""Bytes that were left when rates changed last, and bytes/s since then (infinity: nothing bounds it)."""
FLOW_SIZE = 8

# One port, the way out of an instance or, N further on, the way into it; float64.
CAPACITY, UNSHARED = 0, 1
"""Its bytes/s, and scratch: what is not given to any flow yet."""
PORT_SIZE = 2

# What all share; int64 and float64.
FLOWS_USED, UNDER_WAY, NEXT_FLOW = 0, 1, 2
"""Rows of the log in use, flows under way, and the row of the one that ends next (-1 for none)."""
COUNTS_SIZE = 3
LATENCY_S, SINCE_S, NEXT_LANDING_S = 0, 1, 2
"""The least time of a transfer, when rates changed last, and when the next flow ends."""
CLOCK_SIZE = 3

FLOWS_SHORT = 5
"""What the event loop says, beside the codes of `layout`, when the log of flows is too short."""


class Links(NamedTuple):
    """The network, and what is under way on it.

    Attributes:
        flows: float64[F, 8], the log in order of start.
        active: int64[F], rows of the flows that are under way, in order of start.
        ports: float64[2 N, 2].
        crowd: int64[2 N] scratch, flows of each port that have no rate yet.
        kv_bytes: float64[M], bytes of a token of each model.
        counts, clock: int64[3], float64[3].
    """

    flows: np.ndarray
    active: np.ndarray
    ports: np.ndarray
    crowd: np.ndarray
    kv_bytes: np.ndarray
    counts: np.ndarray
    clock: np.ndarray


def flows_of(links: Links | None) -> np.ndarray:
    """The log of flows as `workbench.serving.model.Outcome` has it; empty without a network."""
    if links is None:
        return np.empty((0, SIZE + 1))
    return links.flows[: links.counts[FLOWS_USED], : SIZE + 1].copy()


def links_from(egress: np.ndarray, ingress: np.ndarray, latency_s: float, kv_bytes: np.ndarray) -> Links:
    """An idle network; see `workbench.serving.model.Network`."""
    ports = np.zeros((2 * egress.size, PORT_SIZE))
    ports[:, CAPACITY] = np.concatenate([egress, ingress])
    counts, clock = np.zeros(COUNTS_SIZE, np.int64), np.array([latency_s, 0.0, np.inf])
    counts[NEXT_FLOW] = -1
    return Links(
        flows=np.empty((64, FLOW_SIZE)),
        active=np.empty(64, np.int64),
        ports=ports,
        crowd=np.empty(2 * egress.size, np.int64),
        kv_bytes=kv_bytes,
        counts=counts,
        clock=clock,
    )
