"""λScale's execution pipelines among servers of chains: does a chain that is still loading serve sooner?"""

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from workbench.catalogue.chains.common import TokensIn, TokensOut
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.chains import block_of, fleet_of, token_times, work_of
from workbench.errors import InputError
from workbench.queueing.simulated.clock import Clock
from workbench.scaling.policy import group_pipelines
from workbench.transfer.model import arrival_steps, uniform_network
from workbench.transfer.policy import make_schedule, sub_groups
from workbench.transfer.simulated import simulate

LOADED, LOADING = "chains, once loaded", "pipelines while loading"
WAYS = (LOADED, LOADING)
LINKS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
"""Gbit/s of a server's card, beside the parameter's own rate."""

GBIT = 1e9 / 8


class Offer(NamedTuple):
    """A chain of new servers, or a pipeline of servers that are to be chains.

    Attributes:
        pipeline: number of the pipeline, or of the one that this chain's servers were in.
        complete: whether it is a chain whose servers hold all their blocks.
        steps: of the multicast after which it can serve.
        uses: (place in the chain, server) -> blocks of it that a job runs there.
        hops: servers that a job comes to, one after the other.
        jobs: that it holds at once.
        service_s: of a job.
    """

    pipeline: int
    complete: bool
    steps: int
    uses: Mapping[tuple[int, int], int]
    hops: int
    jobs: int
    service_s: float


class Server(NamedTuple):
    """What a job costs on a server: seconds on coming to it, seconds a block; and cache slots by blocks it hosts."""

    enter_s: float
    block_s: float
    slots: Mapping[int, int]


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    served = tables["served"].filter(pl.col("backend") == tables["served"]["backend"][0])
    here = {row["way"]: row for row in served.filter(gbit_per_s=parameters["nic_bytes_per_s"] / GBIT).to_dicts()}
    text = (
        f"Pipelines begin after {here[LOADING]['first_s']:.3g} s, chains after {here[LOADED]['first_s']:.3g} s; a job "
        f"is answered after {here[LOADING]['mean_s']:.3g} s on average instead of {here[LOADED]['mean_s']:.3g} s"
    )
    even = tables["headline"].filter(pl.col("series") == EVEN)
    if even.is_empty():
        return f"{text}."
    return f"{text}. Above {even['value'][0]:.3g} Gbit/s their additional hops cost more than the wait they save."


EVEN = "link at which a first job is answered as soon either way"


@experiment(
    "showdown/pipelines-in-chains",
    title="Execution pipelines inside chains",
    question="When chains are added by multicast, should their servers serve as longer pipelines while they load?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.05, "simpy": 0.5},
    draw="showdown_chains.pipelines_in_chains",
    panels=("answer", "done"),
    say=_say,
    agrees=(
        Agree("first job begins", "served", ("way", "gbit_per_s"), "first_s", {("analytic", "simpy"): (-1e-6, 1e-6)}),
        Agree("mean answer", "served", ("way", "gbit_per_s"), "mean_s", {("analytic", "simpy"): (-0.05, 0.05)}),
    ),
)
def pipelines_in_chains(
    context: Context,
    *,
    accelerator: Annotated[
        str, Par("Server", profile="accelerator", source="chosen: the fast kind of the paper on chains")
    ] = "a100-80gb-mig-3g.40gb",
    model: Annotated[str, Par("Model", profile="model", source="chosen: that of the paper on chains")] = "bloom-176b",
    servers: Annotated[int, Par("Servers of a chain", low=3, high=20, step=1, source="chosen: 14 blocks each")] = 5,
    sources: Annotated[int, Par("Chains that serve already", low=1, high=8, step=1, source="chosen")] = 2,
    added: Annotated[int, Par("Chains to add", low=1, high=16, step=1, source="chosen")] = 4,
    nic_bytes_per_s: Annotated[
        float, Par("Network of a server", "bytes/s", low=0.1e9, high=12.5e9, log=True, source="chosen: 10 Gbit/s")
    ] = 10 * GBIT,
    round_trip_s: Annotated[
        float, Par("Round trip", "s", low=1e-4, high=0.2, log=True, source="chosen: sites of one country")
    ] = 0.02,
    jobs: Annotated[int, Par("Jobs that wait", low=1, high=400, step=1, source="chosen: about two rounds")] = 100,
    tokens_in: TokensIn = 2000,
    tokens_out: TokensOut = 20,
) -> dict[str, pl.DataFrame]:
    """Seconds until jobs are answered that wait for chains whose servers load, by link and way to start.

    All chains are cut alike. The servers at one place of all chains hold the same blocks, so each place is a multicast
    of its own, from the chains that serve to those that are added, in λScale's rotated orders. *Chains, once loaded*:
    a chain serves when its servers hold all their blocks. *Pipelines while loading*: at each place one server of every
    sub-group, which hold its blocks jointly much sooner, stand in for one (Algorithm 2); a job then comes to more
    servers, each of which runs fewer of its blocks. Who runs which, λScale leaves open; here it is as few servers in a
    row as can be. Of all that can serve, the fastest with free cache slots takes the next job; nothing is moved. Chains
    that serve already are full and do not matter. Waiting jobs are all there when loading begins.

    Formula: closed forms of the multicast, and every cache slot taken by one job after the other. Simulation: blocks
    sent over shared links, and slots counted on each server. Where chains of one pipeline are complete at different
    times, the formula lets slots change over one by one, and means are off by a few percent.
    """
    if sources > added:
        why = "each sub-group needs a destination: k = min(copies, destinations), as in λScale's artifact"
        sources = context.cite("chains that send", added, "1", "published", why)
    chip, shape = context.accelerator(accelerator), context.model(model)
    block = block_of(shape)
    times = token_times([chip], [round_trip_s], block)
    fleet = fleet_of([chip], shape.layers, block, times, work_of([tokens_in], [tokens_out])[0])
    if servers > shape.layers:
        raise InputError(f"is {servers} for {shape.layers} blocks", "give each server a block", field="servers")
    sizes = [shape.layers // servers + (place < shape.layers % servers) for place in range(servers)]
    room = {size: int((fleet.memory_bytes[0] - size * block.bytes) // block.cache_bytes) for size in set(sizes)}
    server = Server(float(fleet.communication_s[0]), float(fleet.compute_s[0]), room)
    steps = {size: _steps(context, sources, added, size) for size in set(sizes)}
    offers = _offers(steps, sizes, sources, server)
    rows, done = [], []
    for gbit in sorted({*LINKS, nic_bytes_per_s / GBIT}):
        step_s = block.bytes / (gbit * GBIT)
        for way in WAYS:
            ours = [one for one in offers if one.complete or way == LOADING]
            start_s, end_s = (_in_turn if context.backend == "analytic" else _simulated)(
                ours, step_s, server, sizes, jobs
            )
            told = {"first_s": start_s.min(), "mean_s": end_s.mean(), "last_s": end_s.max()}
            rows.append({"way": way, "gbit_per_s": gbit, **told})
            if gbit == nic_bytes_per_s / GBIT:
                done += [{"way": way, "jobs": count, "seconds": at} for count, at in enumerate(np.sort(end_s), 1)]
    known = [(f"mean answer, {row['way']}", row["gbit_per_s"], row["mean_s"], "s") for row in rows]
    if (even := _even(offers, block.bytes)) is not None:
        known.append((EVEN, "", even / GBIT, "Gbit/s"))
    chains = [{"serves": LOADED if one.complete else LOADING, "pipeline": one.pipeline, "steps": one.steps,
               "hops": one.hops, "jobs": one.jobs, "service_s": one.service_s} for one in offers]  # fmt: skip
    return {
        "served": pl.DataFrame(rows),
        "done": pl.DataFrame(done),
        "chains": pl.DataFrame(chains),
        "headline": headline(known),
    }


def _steps(context: Context, sources: int, added: int, blocks: int) -> np.ndarray:
    """Steps after which each server of a place holds each of its blocks, int64 (servers, blocks), sources first."""
    nodes, given = sources + added, {"sources": sources, "order": "contiguous"}
    if context.backend == "analytic":
        return arrival_steps("k_way", nodes, blocks, **given)
    schedule = make_schedule("k_way", nodes, blocks, **given)
    return np.rint(simulate(schedule, uniform_network(nodes, 1.0), block_bytes=1.0).arrival_s).astype(np.int64)


def fewest_hops(ready: np.ndarray, members: Sequence[int]) -> tuple[int, list[int]]:
    """When servers hold all blocks jointly, and who then runs which, so that a job changes servers least often.

    Parameters:
        ready: (servers, blocks), when each holds each.
        members: who is asked.

    Whoever holds the most blocks in a row from the next one on runs them: no other choice has fewer rows.

    >>> fewest_hops(np.array([[9, 1, 1, 2], [1, 1, 9, 3]]), [0, 1])
    (2, [1, 1, 0, 0])
    """
    forms = int(ready[list(members)].min(axis=0).max())
    runs: list[int] = []
    while len(runs) < ready.shape[1]:
        rows = {node: np.append(ready[node, len(runs) :] > forms, True).argmax() for node in members}
        node = max(members, key=rows.__getitem__)
        runs += [node] * int(rows[node])
    return forms, runs


def _offers(steps: Mapping[int, np.ndarray], sizes: Sequence[int], sources: int, server: Server) -> list[Offer]:
    """The pipelines that Algorithm 2 plans at every place, and the chains that their servers are in the end."""
    nodes = len(steps[sizes[0]])
    offers = []
    for number, members in enumerate(group_pipelines([one[1:] for one in sub_groups(nodes, sources)])):
        for group in (*((node,) for node in members), members):
            found = [fewest_hops(steps[size], group) for size in sizes]
            uses = {(place, node): runs.count(node) for place, (_, runs) in enumerate(found) for node in set(runs)}
            hops = sum(1 + sum(a != b for a, b in pairwise(runs)) for _, runs in found)
            jobs = min(server.slots[sizes[place]] // blocks for (place, _), blocks in uses.items())
            if jobs < 1:
                why = "leaves no memory for a job's cache beside a server's blocks"
                raise InputError(why, "give a chain more servers", field="servers")
            service_s = hops * server.enter_s + sum(sizes) * server.block_s
            offers.append(
                Offer(number, group is not members, max(forms for forms, _ in found), uses, hops, jobs, service_s)
            )
    return offers


def _even(offers: Sequence[Offer], block_bytes: int) -> float | None:
    """Bytes/s at which a first job is answered as soon by the first pipeline as by the first chain; None for none."""
    first = min((one for one in offers if not one.complete), key=lambda one: one.steps)
    chain = min((one for one in offers if one.complete), key=lambda one: one.steps)
    saved, cost_s = chain.steps - first.steps, first.service_s - chain.service_s
    return saved * block_bytes / cost_s if saved > 0 and cost_s > 0 else None


def _in_turn(
    offers: Sequence[Offer], step_s: float, server: Server, sizes: Sequence[int], jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of each job, slot by slot: a pipeline's slots become its chains'; those left over stay its own."""
    free: list[tuple[float, float, float, float]] = []  # from when, seconds of a job now, from when on others, those
    for number in {one.pipeline for one in offers}:
        mine = [one for one in offers if one.pipeline == number]
        slots = [(one.steps * step_s, one.service_s) for one in mine if one.complete for _ in range(one.jobs)]
        before = next((one for one in mine if not one.complete), None)
        if before is None:
            free += [(ready_s, service_s, ready_s, service_s) for ready_s, service_s in slots]
            continue
        begin_s = before.steps * step_s
        later = slots + [(np.inf, before.service_s)] * (before.jobs - len(slots))
        free += [(begin_s, before.service_s, change_s, service_s) for change_s, service_s in later[: before.jobs]]
        free += [(ready_s, service_s, ready_s, service_s) for ready_s, service_s in later[before.jobs :]]
    heapq.heapify(free)
    start_s, end_s = np.empty(jobs), np.empty(jobs)
    for job in range(jobs):
        at_s, now_s, change_s, then_s = free[0]
        start_s[job], end_s[job] = at_s, at_s + now_s
        after_s = then_s if end_s[job] >= change_s else now_s
        heapq.heapreplace(free, (end_s[job], after_s, change_s, then_s))
    return start_s, end_s


class _Serving:
    """Jobs that wait, and what can serve them, in SimPy."""

    def __init__(self, clock: Clock, server: Server, sizes: Sequence[int], jobs: int):
        self.clock, self.free = clock, {}
        self.room = {place: server.slots[size] for place, size in enumerate(sizes)}
        self.open: list[Offer] = []
        self.line = deque(range(jobs))
        self.start_s, self.end_s = np.full(jobs, np.nan), np.full(jobs, np.nan)

    def opening(self, offer: Offer, at_s: float):
        """Until the servers of an offer hold its blocks."""
        yield self.clock.at(at_s, 1)
        self.open.append(offer)
        self.open.sort(key=lambda one: one.service_s)
        self.clock.process(self.hand_out())

    def hand_out(self):
        """Behind all that ends and opens at this instant: the next jobs go to the fastest with free slots."""
        yield self.clock.at(self.clock.now, 2)
        for offer in self.open:
            while self.line and all(self.left(*where) >= blocks for where, blocks in offer.uses.items()):
                for where, blocks in offer.uses.items():
                    self.free[where] = self.left(*where) - blocks
                self.clock.process(self.serve(self.line.popleft(), offer))

    def left(self, place: int, node: int) -> int:
        """Free cache slots of a server."""
        return self.free.get((place, node), self.room[place])

    def serve(self, job: int, offer: Offer):
        """A job from its begin to its end."""
        self.start_s[job] = self.clock.now
        yield self.clock.at(self.clock.now + offer.service_s, 0)
        self.end_s[job] = self.clock.now
        for where, blocks in offer.uses.items():
            self.free[where] += blocks
        self.clock.process(self.hand_out())


def _simulated(
    offers: Sequence[Offer], step_s: float, server: Server, sizes: Sequence[int], jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """As `_in_turn`, slots counted on every server."""
    clock = Clock()
    serving = _Serving(clock, server, sizes, jobs)
    for offer in offers:
        clock.process(serving.opening(offer, offer.steps * step_s))
    clock.run()
    return serving.start_s, serving.end_s
