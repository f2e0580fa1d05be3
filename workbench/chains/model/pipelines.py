"""Chains whose servers load by multicast: when each can serve, and how soon jobs that wait for them are answered.

All chains are cut alike. The servers at one place of all chains hold the same blocks, so each place is a multicast of
its own, from the chains that serve to those that are added, in λScale's rotated orders. While they load, one server of
every sub-group at each place can stand in for one: they hold its blocks jointly much sooner, and a job then comes to
more servers, each of which runs fewer of its blocks (λScale §4.3, on chains; who runs which is chosen: `fewest_hops`).

Of all that can serve, the fastest with free cache slots takes the next job, of equal ones the complete chain. Nothing
is moved: a job ends where it began. All jobs are there when loading begins, and are alike.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from workbench.chains.model.fleet import Fleet
from workbench.chains.policy.pipelines import fewest_hops
from workbench.errors import InputError
from workbench.queueing import Path
from workbench.queueing.checking import MOST_LEVELS, levels, positive, vector
from workbench.records import takes_records
from workbench.transfer.model import arrival_steps


class NewChain(NamedTuple):
    """A chain through servers that load, or the pipeline that they make before.

    Attributes:
        pipeline: number of the pipeline that its servers make.
        complete: whether each of its servers runs all blocks of its place; False for the pipeline.
        steps: of the multicast after which it can serve.
        blocks: (place, server) -> how many blocks of a job it runs there.
        hops: servers that a job comes to, one after the other.
        capacity: jobs that it holds at once where nothing else runs on its servers.
        service_s: of a job.
    """

    pipeline: int
    complete: bool
    steps: int
    blocks: dict[tuple[int, int], int]
    hops: int
    capacity: int
    service_s: float


class NewChains(NamedTuple):
    """Chains that are added, and the pipelines that their servers make before.

    Attributes:
        slots: int64[J], cache slots of a server at each place of a chain, one a job and block.
        chains: in order of their pipelines.
    """

    slots: np.ndarray
    chains: tuple[NewChain, ...]

    @property
    def loaded(self) -> "NewChains":
        """The chains alone: servers serve when they hold all blocks."""
        return NewChains(self.slots, tuple(one for one in self.chains if one.complete))

    @property
    def even_step_s(self) -> float | None:
        """Seconds of a multicast step with which the first pipeline answers a job as soon as the first chain does.

        With longer steps, on a slower link, the pipeline is sooner. None where it never is, or is on every link.
        """
        pipelines = [one for one in self.chains if not one.complete]
        if not pipelines:
            return None
        first = min(pipelines, key=lambda one: one.steps)
        chain = min((one for one in self.chains if one.complete), key=lambda one: one.steps)
        saved, cost_s = chain.steps - first.steps, first.service_s - chain.service_s
        return cost_s / saved if saved > 0 and cost_s > 0 else None


def loading_steps(blocks: Sequence[int], sources: int, added: int) -> list[np.ndarray]:
    """After how many multicast steps does each server of each place hold each of its blocks, by formula?

    Parameters:
        blocks: whole[J], blocks of a server at each place.
        sources: chains that serve already and send.
        added: chains to add, at least as many.

    Returns:
        for each place int64 (sources + added, its blocks), sources first.
    """
    known = {size: arrival_steps("k_way", sources + added, size, sources=sources) for size in set(blocks)}
    return [known[size] for size in blocks]


@takes_records
def new_chains(
    fleet: Fleet, blocks: Sequence[int], ready: Sequence[np.ndarray], planned: Sequence[Sequence[int]]
) -> NewChains:
    """Which chains and which pipelines do servers make that load, and what does a job cost on each?

    Parameters:
        fleet: the J servers of one chain in order; those of all other chains are like them.
        blocks: whole[J], how many blocks a server at each place hosts; together all of the model.
        ready: for each place int64 (servers, its blocks), the multicast step after which each holds each.
        planned: the servers of each pipeline, the same at every place, such as λScale's Algorithm 2 groups them.

    Raises:
        InputError: not a place for each server of the chain, other blocks than the model's, a server that is in no
            place or in two pipelines, or no memory for a job's cache.
    """
    given = vector(blocks, "blocks", above=True)
    sizes = given.astype(np.int64)
    if sizes.size != fleet.servers or sizes.sum() != fleet.layers or (sizes != given).any():
        why = f"are {given.sum():g} on {given.size} servers, the model has {fleet.layers}, the chain {fleet.servers}"
        raise InputError(why, "give each server of the chain its whole blocks", field="blocks")
    if len(ready) != sizes.size or any(np.shape(one)[1:] != (size,) for one, size in zip(ready, sizes, strict=True)):
        raise InputError("does not go with blocks", "give an array (servers, blocks) for each place", field="ready")
    there, named = min(map(len, ready)), [node for members in planned for node in members]
    if len(set(named)) < len(named) or not all(0 <= node < there for node in named) or not all(map(len, planned)):
        raise InputError("does not part the servers", f"put each of 0 to {there - 1} into one at most", field="planned")
    slots = (fleet.memory_bytes - sizes * fleet.block_bytes) // fleet.cache_bytes
    chains = []
    for number, members in enumerate(planned):
        groups = [(True, (node,)) for node in members] + [(False, tuple(members))]
        chains += [_chain(fleet, slots, ready, number, complete, group) for complete, group in groups]
    return NewChains(slots, tuple(chains))


def _chain(fleet: Fleet, slots, ready, number: int, complete: bool, group: tuple[int, ...]) -> NewChain:
    """The chain, or pipeline, in which this group of servers stands at every place."""
    found = [fewest_hops(steps, group) for steps in ready]
    blocks = {(place, node): runs.count(node) for place, (_, runs) in enumerate(found) for node in sorted(set(runs))}
    hops = np.array([1 + sum(a != b for a, b in pairwise(runs)) for _, runs in found])
    capacity = int(min(slots[place] // count for (place, _), count in blocks.items()))
    if capacity < 1:
        why = "leaves no memory for a job's cache beside a server's blocks"
        raise InputError(why, "give a chain more servers", field="servers")
    sizes = np.array([len(runs) for _, runs in found])
    service_s = float(hops @ fleet.communication_s + sizes @ fleet.compute_s)
    return NewChain(number, complete, max(forms for forms, _ in found), blocks, int(hops.sum()), capacity, service_s)


@takes_records
def loading_path(made: NewChains, step_s: float, jobs: int) -> Path:
    """When does each of the jobs that wait begin and end, by formula?

    A pipeline's jobs begin together when it forms, at T, and run in rounds of its service time S: round n begins at
    T + n S with as many jobs as the slots hold that complete chains leave. A chain that is complete within a round
    takes what slots the round leaves free; the rest is its own when the round ends, and the other servers of the
    pipeline stand idle where nothing is left for a next round. Each slot then begins a job every S seconds of its own.
    As long as jobs wait none of this depends on how many do, so the jobs begin at the earliest of all these instants.

    Parameters:
        made: see `new_chains`; `made.loaded` for chains that wait until they are complete.
        step_s: seconds of a multicast step, the time of one block on a server's link.
        jobs: how many wait, at most 10 million.

    Returns:
        a path in order of begin; `place` is the number of the chain in `made.chains`.

    Raises:
        InputError: seconds not above 0, or not a whole number of jobs.
    """
    length_s, count = positive(step_s, "step_s"), levels(jobs, "jobs", most=MOST_LEVELS)
    begins = []
    for number in dict.fromkeys(one.pipeline for one in made.chains):
        begins += _begins(made, number, length_s, count)
    start_s = np.concatenate([at_s for at_s, _ in begins])
    place = np.concatenate([np.full(at_s.size, chain) for at_s, chain in begins])
    service_s = np.array([one.service_s for one in made.chains])[place]
    first = np.lexsort((service_s, start_s))[:count]
    return Path(np.zeros(count), start_s[first], start_s[first] + service_s[first], place[first])


def _begins(made: NewChains, number: int, step_s: float, jobs: int) -> list[tuple[np.ndarray, int]]:
    """Instants at which jobs begin, with the chain on which, for one pipeline and its chains; `jobs` or more."""
    mine = {place: one for place, one in enumerate(made.chains) if one.pipeline == number}
    chains = {place: one for place, one in mine.items() if one.complete}
    if len(chains) == len(mine):
        return [(_again(one.steps * step_s, one.capacity, one.service_s, jobs), place) for place, one in chains.items()]
    (pipeline,) = mine.keys() - chains.keys()
    rounds_s, running = _rounds(made, mine[pipeline], chains.values(), step_s, jobs)
    found = [(np.repeat(rounds_s, running), pipeline)]
    for place, chain in chains.items():
        opens_s, free = chain.steps * step_s, chain.capacity
        now = int(np.searchsorted(rounds_s, opens_s, side="right")) - 1
        if now >= 0 and opens_s > rounds_s[now]:
            free = _left(made.slots, chain, mine[pipeline], int(running[now]))
        found.append((_again(opens_s, free, chain.service_s, jobs), place))
        if free < chain.capacity:
            found.append((_again(rounds_s[now + 1], chain.capacity - free, chain.service_s, jobs), place))
    return found


def _rounds(
    made: NewChains, pipeline: NewChain, chains: Iterable[NewChain], step_s: float, jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """When a pipeline's rounds begin, and the jobs of each; the last one has none and ends those before.

    Rounds also end when they have begun as many jobs as wait.
    """
    at_s, running, wait = [pipeline.steps * step_s], [], jobs
    while True:
        taken: dict[tuple[int, int], int] = {}
        for chain in chains:
            if chain.steps * step_s <= at_s[-1]:
                taken |= {where: count * chain.capacity for where, count in chain.blocks.items()}
        fit = min((made.slots[where[0]] - taken.get(where, 0)) // count for where, count in pipeline.blocks.items())
        running.append(int(fit) if wait > 0 else 0)
        if not running[-1]:
            return np.array(at_s), np.array(running)
        wait -= running[-1]
        at_s.append(at_s[-1] + pipeline.service_s)


def _left(slots: np.ndarray, chain: NewChain, pipeline: NewChain, running: int) -> int:
    """Jobs of a chain that begin beside a round of so many jobs of its pipeline."""
    taken = {where: running * count for where, count in pipeline.blocks.items()}
    return int(min((slots[where[0]] - taken.get(where, 0)) // count for where, count in chain.blocks.items()))


def _again(first_s: float, slots: int, service_s: float, jobs: int) -> np.ndarray:
    """Instants at which slots begin jobs from then on, one after the other; `jobs` of them."""
    rounds = -(-jobs // slots) if slots else 0
    return np.repeat(np.cumsum(np.append(first_s, np.full(max(0, rounds - 1), service_s)))[:rounds], slots)
