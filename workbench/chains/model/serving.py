"""Chains as a run takes them: rates, slots, and seconds for each unit of work."""

from typing import NamedTuple

import numpy as np

from workbench.chains.model.composing import Composition, running
from workbench.chains.model.hardware import TokenTimes
from workbench.chains.model.ordering import ordered
from workbench.errors import InputError
from workbench.queueing.checking import vector
from workbench.records import takes_records


class Served(NamedTuple):
    """Chains in order of falling rate.

    Attributes:
        rates_per_s, slots: float64[K] and int64[K], of one slot, and how many; rates are those of the mean job.
        seconds: float64[K, F], of a job for each unit of its work.
        order: int64[K], number of each chain as given.
        servers: J.
        server, hops: int64[K, W] and int64[K], servers of each chain, -1 behind the last; W is 0 where servers are not
            known.
        communication_s, compute_s: float64[K, F] and float64[K, W, F], `seconds` taken apart: off the servers, and on
            each of them.
    """

    rates_per_s: np.ndarray
    slots: np.ndarray
    seconds: np.ndarray
    order: np.ndarray
    servers: int
    server: np.ndarray
    hops: np.ndarray
    communication_s: np.ndarray
    compute_s: np.ndarray

    @property
    def rate_per_s(self) -> float:
        """Jobs a second with all slots busy (ν)."""
        return float(self.rates_per_s @ self.slots)


def chains_with(rates_per_s, slots) -> Served:
    """Chains of which only rates and slots are known; jobs have one size.

    Parameters:
        rates_per_s: float[K], jobs that one slot of each chain completes in a second.
        slots: whole[K], jobs that each holds at once.

    Raises:
        InputError: no chain, unequal lengths, or numbers that cannot be.
    """
    rates, counts, order = ordered(rates_per_s, slots)
    count = rates.size
    return Served(
        rates,
        counts,
        (1 / rates)[:, None].copy(),
        order,
        0,
        np.empty((count, 0), np.int64),
        np.zeros(count, np.int64),
        (1 / rates)[:, None].copy(),
        np.empty((count, 0, 1)),
    )


@takes_records
def chains_of(composition: Composition, times: TokenTimes | None = None, usual=None) -> Served:
    """The chains of a composition.

    Parameters:
        composition: with at least one chain.
        times: seconds for each unit of work on each server, for jobs of tokens; by default jobs have one size, and a
            job of size 1 takes the mean seconds of the fleet.
        usual: float[F], work of the mean job, by which rates are told; needed with `times`.

    Raises:
        UserError: no chain. InputError: one of `times` and `usual` without the other, or of other sizes.
    """
    fleet = running(composition).fleet
    if (times is None) != (usual is None):
        raise InputError("is needed together with times", "give both, or neither", field="usual")
    if times is None:
        times = TokenTimes(fleet.communication_s[:, None], fleet.compute_s[:, None])
        usual = [1.0]
    mean = vector(usual, "usual")
    chains, features = composition.chains, times.compute_s.shape[1]
    if mean.size != features or times.compute_s.shape[0] != fleet.servers:
        raise InputError(
            f"is for {features} kinds of work on {times.compute_s.shape[0]} servers", "give times to match"
        )
    width = max(len(chain.servers) for chain in chains)
    server = np.full((len(chains), width), -1)
    apart, on = np.zeros((len(chains), features)), np.zeros((len(chains), width, features))
    for k, chain in enumerate(chains):
        for hop, (j, count) in enumerate(zip(chain.servers, chain.blocks, strict=True)):
            server[k, hop] = j
            apart[k] += times.communication_s[j]
            on[k, hop] = times.compute_s[j] * count
    seconds = apart + on.sum(axis=1)
    rates, slots, order = ordered(1 / (seconds @ mean), composition.capacities)
    hops = np.array([len(chain.servers) for chain in chains])
    return Served(
        rates, slots, seconds[order], order, fleet.servers, server[order], hops[order], apart[order], on[order]
    )
