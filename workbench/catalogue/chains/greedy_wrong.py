"""When greedy placement is wrong: small fleets whose memories differ by as much as the reader says."""

import functools
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numpy as np
import polars as pl

from workbench.catalogue.chains.responding import jobs_at, path_of, respond
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.chains import Fleet, Served, best_groups, bounds, chains_with, place
from workbench.results import Verdict

LAYERS, INSTANCES, MIDDLE = 4, 250, 23
"""Blocks of the model, instances, and the middle memory in tenths of a block: with one for cache it hosts two."""
HOW = GREEDY, BEST = ("greedy (GBP-CR)", "best grouping")
JOBS = {"full": 40_000, "quick": 10_000}
GROUPS = {"how": pl.String, "chain": pl.Int64, "server": pl.String, "blocks": pl.Int64, "chain_s": pl.Float64}
ENDS = {"how": pl.String, "lower_s": pl.Float64, "upper_s": pl.Float64}
MEANS = {"how": pl.String, "response_s": pl.Float64, "wait_s": pl.Float64}


class Instance(NamedTuple):
    """One fleet with a rate: servers of greedy placement's chains in their order, and of the best grouping's.

    Attributes:
        blocks, seconds: int64[J] and float64[J], blocks that each server hosts, and seconds of a job there.
        needed_per_s: the rate that chains of one job each must reach.
        greedy, best: servers of each chain; greedy ones up to where the rate is reached.
        enough: whether greedy placement reaches it.
    """

    blocks: np.ndarray
    seconds: np.ndarray
    needed_per_s: float
    greedy: tuple[tuple[int, ...], ...]
    best: tuple[tuple[int, ...], ...]
    enough: bool

    @property
    def wrong(self) -> bool:
        """Whether greedy placement takes more chains than are needed."""
        return not self.enough or len(self.greedy) > len(self.best)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    texts = []
    if (table := tables.get("instances")) is not None:
        wrong = int(table["wrong"].sum())
        groups = tables["groups"].group_by("how", maintain_order=True).agg(pl.col("chain").n_unique())
        counts = dict(groups.rows())
        texts.append(
            f"Greedy placement takes more chains than the best grouping in {wrong} of {len(table)} instances; the one "
            f"shown is {'one of them' if wrong else 'as good'}: {counts.get(GREEDY, 0)} against {counts[BEST]}"
        )
    if (runs := tables.get("response")) is not None:
        means = [
            f"{how}: {'no end' if seconds is None else f'{seconds:.3g} s'}"
            for how, seconds in runs.select("how", "response_s").rows()
        ]
        texts.append(f"simulated mean response through as many chains ({'; '.join(means)})")
    return f"{'; '.join(texts)}."


def _equal(draft: Draft) -> list[Verdict]:
    """Theorem 2, asked where memories are equal."""
    if "instances" not in draft.tables or draft.parameters["memory_spread"]:
        return []
    table = draft.tables["instances"]
    wrong = int(table["wrong"].sum())
    return [
        Verdict(
            claim="with equal memories greedy placement takes as few chains as any grouping (Theorem 2)",
            published="always",
            ours=f"{len(table) - wrong} of {len(table)} instances",
            strength="exact",
            verdict="differs" if wrong else "reproduced",
            reason="every grouping was counted. Assumed here: one job a chain",
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "chains/greedy-wrong",
    title="When is greedy placement wrong?",
    question="How different must memories be before taking servers by their time per block forms a chain too many?",
    backends=("analytic", "compiled"),
    seconds={"analytic": 0.2, "compiled": 0.2},
    draw="chains_placement.wrong",
    panels=("instances", "groups", "response"),
    say=_say,
    judges=(_equal,),
    live=("compiled",),
)
def greedy_wrong(
    context: Context,
    *,
    memory_spread: Annotated[
        float,
        Par(
            "Spread of memories (0: equal; 1: half, once or twice)", low=0.0, high=1.0, step=0.05, free=True,
            source="chosen; at 1 the servers host 1, 2 or 4 blocks",
        ),
    ] = 1.0,
    servers: Annotated[
        int, Par("Servers", low=3, high=7, step=1, free=True, source="chosen: few enough to count groupings")
    ] = 6,
    shown: Annotated[
        int, Par("Which of the instances where greedy is wrong is shown", low=1, high=20, step=1, free=True,
                 source="chosen: the first")
    ] = 1,
    load: Annotated[
        float, Par("Arrivals over the rate asked for", low=0.1, high=0.95, step=0.05, free=True,
                   source="chosen: the load of 0.7 at which chains are enough")
    ] = 0.7,
    seed: Annotated[int, Par("Seed of the instances", low=0, high=999, step=1, free=True, source="chosen")] = 0,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """In how many of 250 random instances greedy placement is wrong; one of them with its groups and what they cost.

    A server's memory is the middle one times 2^(spread x u), u being -1, 0 or 1: moving the slider keeps all times. The
    rate that must be reached is a random share of what all greedy chains serve. In the instance shown jobs arrive at
    that rate times the load, and both ways have as many chains as the best grouping needs: where greedy is wrong its
    first ones are slower, or too few. Where it is wrong nowhere, the first instance is shown.
    """
    found = _instances(context.seed, seed, servers, memory_spread)
    some = [one for one in found if one.wrong] or list(found)
    one = some[min(shown, len(some)) - 1]
    rate = load * one.needed_per_s
    if context.backend == "compiled":
        jobs = jobs_at(context, rate, JOBS[context.mode])
        rows = []
        for how, served in _served(one).items():
            steady = served is not None and rate < 0.98 * served.rate_per_s
            means = respond(path_of(context, jobs, served)) if steady else None
            rows.append((how, means and means.response_s, means and means.wait_s))
        table = pl.DataFrame(rows, schema=MEANS, orient="row")
        known = [(f"mean response, {how}", "simulated", value, "s") for how, value, _ in rows if value is not None]
        return {"response": table, "headline": headline(known)}
    table = pl.DataFrame({
        "greedy": [len(each.greedy) if each.enough else None for each in found],
        "fewest": [len(each.best) for each in found],
        "wrong": [each.wrong for each in found],
    }, schema={"greedy": pl.Int64, "fewest": pl.Int64, "wrong": pl.Boolean})  # fmt: skip
    ends = []
    for how, served in _served(one).items():
        known = served is not None and rate < served.rate_per_s
        both = bounds(served.rates_per_s, served.slots, rate) if known else None
        ends.append((how, both and both.response_lower_s, both and both.response_upper_s))
    groups = [
        (how, number + 1, f"j{j + 1}", int(one.blocks[j]), float(one.seconds[list(members)].sum()))
        for how, parts in zip(HOW, (one.greedy, one.best), strict=True)
        for number, members in enumerate(parts)
        for j in members
    ]
    known = [("share of instances in which greedy placement is wrong", "", float(table["wrong"].mean()), "1")]
    return {
        "instances": table,
        "groups": pl.DataFrame(groups, schema=GROUPS, orient="row"),
        "bounds": pl.DataFrame(ends, schema=ENDS, orient="row"),
        "headline": headline(known),
    }


@functools.lru_cache(maxsize=8)
def _instances(run: int, seed: int, servers: int, spread: float) -> tuple[Instance, ...]:
    """The instances in which some grouping reaches the rate; kept, for both backends ask for the same."""
    rng, found = np.random.default_rng([run, seed]), []
    for _ in range(INSTANCES):
        apart = rng.integers(-1, 2, servers)
        fleet = Fleet(
            memory_bytes=np.round(10 * MIDDLE * 2.0 ** (spread * apart)),
            communication_s=rng.uniform(0.1, 2.0, servers),
            compute_s=rng.uniform(0.01, 1.0, servers),
            layers=LAYERS,
            block_bytes=100,
            cache_bytes=10,
        )
        needed = float(rng.uniform(0.05, 1.0)) * max(place(fleet, 1).group_rate_per_s, 0.1)
        if (best := best_groups(fleet, 1, needed)) is None:
            continue
        made = place(fleet, 1, needed)
        greedy = tuple(tuple(np.flatnonzero(made.group == number).tolist()) for number in range(made.groups))
        blocks = np.minimum(fleet.memory_bytes // 110, LAYERS)
        seconds = fleet.communication_s + fleet.compute_s * blocks
        found.append(Instance(blocks, seconds, needed, greedy, best, made.enough))
    return tuple(found)


def _served(one: Instance) -> dict[str, Served | None]:
    """Chains of one job each, as many as the best grouping has; None where greedy placement forms none."""
    made = {}
    for how, groups in zip(HOW, (one.greedy[: len(one.best)], one.best), strict=True):
        rates = [1 / float(one.seconds[list(members)].sum()) for members in groups]
        made[how] = chains_with(rates, [1] * len(rates)) if rates else None
    return made
