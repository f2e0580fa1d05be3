"""Arrays of a run: jobs, chains, waiting lines, and the jobs that share servers."""

from typing import NamedTuple

import numpy as np

DONE, BAD_CHOICE, STUCK = 0, 1, 2
"""How a run ends: all jobs done; the policy named no chain; it left jobs in the central line for good."""


class Jobs(NamedTuple):
    """What arrives, and what becomes of it.

    Attributes:
        arrival_s: float64[n], in order.
        work: float64[n, F], what each job asks for; on chain k it takes the sum over f of work x seconds[k, f].
        draw: float64[n, 2], uniform numbers of each, for the dispatch policy.
        start_s, finish_s, chain: float64[n], float64[n] and int64[n], to be filled.
        behind: int64[n], the next job in the same waiting line, -1 for none.
    """

    arrival_s: np.ndarray
    work: np.ndarray
    draw: np.ndarray
    start_s: np.ndarray
    finish_s: np.ndarray
    chain: np.ndarray
    behind: np.ndarray


class Lines(NamedTuple):
    """Chains in order of falling rate, each with its own line; the central line has number K.

    Attributes:
        rate_per_s, slots, seconds: float64[K], int64[K] and float64[K, F]: rate of a slot, jobs at once, and seconds
            for each unit of work.
        inside, running: int64[K], jobs queued or in service on each chain, and those in service.
        head, tail: int64[K + 1], first and last job of each line, -1 for none.
        waiting: int64[1], jobs in the central line.
        memory: float64[K], the policy's own.
        finishes, begin, next_s: float64[sum of slots] with a heap of finish times for each chain, int64[K] where each
            heap begins, and float64[K] when the next job of each is done.
    """

    rate_per_s: np.ndarray
    slots: np.ndarray
    seconds: np.ndarray
    inside: np.ndarray
    running: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    waiting: np.ndarray
    memory: np.ndarray
    finishes: np.ndarray
    begin: np.ndarray
    next_s: np.ndarray


class Sharing(NamedTuple):
    """Jobs in service that slow each other down on the servers they share.

    Attributes:
        server, hops: int64[K, W] and int64[K], the servers of each chain.
        communication_s, compute_s: float64[K, F] and float64[K, W, F], seconds for each unit of work: not on a server,
            and on each of the chain's servers.
        load: float64[J], share of its time that each server would be busy at nominal speed.
        active, count: int64[C] and int64[1], jobs in service in order of start, and how many.
        apart_s, on_s: float64[C] and float64[C, W], their seconds off and on each server at nominal speed.
        left, seconds: float64[C], the part of each that is left, and the seconds that a whole one takes at present.
        settled_s: float64[1], when `left` was true.
    """

    server: np.ndarray
    hops: np.ndarray
    communication_s: np.ndarray
    compute_s: np.ndarray
    load: np.ndarray
    active: np.ndarray
    count: np.ndarray
    apart_s: np.ndarray
    on_s: np.ndarray
    left: np.ndarray
    seconds: np.ndarray
    settled_s: np.ndarray


def jobs_of(arrival_s: np.ndarray, work: np.ndarray, draw: np.ndarray) -> Jobs:
    """Jobs to which nothing has happened yet.

    Arrays that cannot be written, such as a table's columns, are copied: kernels would be compiled for them once more.
    """
    count = arrival_s.size
    return Jobs(
        *(np.require(array, requirements="CW") for array in (arrival_s, work, draw)),
        np.full(count, np.nan),
        np.full(count, np.nan),
        np.full(count, -1),
        np.full(count, -1),
    )


def lines_of(rate_per_s: np.ndarray, slots: np.ndarray, seconds: np.ndarray) -> Lines:
    """Idle chains."""
    chains = slots.size
    return Lines(
        rate_per_s,
        slots,
        seconds,
        np.zeros(chains, np.int64),
        np.zeros(chains, np.int64),
        np.full(chains + 1, -1),
        np.full(chains + 1, -1),
        np.zeros(1, np.int64),
        np.zeros(chains),
        np.empty(int(slots.sum())),
        np.cumsum(slots) - slots,
        np.full(chains, np.inf),
    )


def sharing_of(
    servers: int,
    server: np.ndarray,
    hops: np.ndarray,
    communication_s: np.ndarray,
    compute_s: np.ndarray,
    slots: int,
) -> Sharing:
    """Idle servers."""
    width = server.shape[1]
    return Sharing(
        server,
        hops,
        communication_s,
        compute_s,
        np.zeros(servers),
        np.zeros(slots, np.int64),
        np.zeros(1, np.int64),
        np.empty(slots),
        np.empty((slots, width)),
        np.empty(slots),
        np.empty(slots),
        np.zeros(1),
    )
