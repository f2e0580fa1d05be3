"""One and the same sequence of KV transfers beside a load of weights: by formula, by simulation, by real processes."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.catalogue.context import Context
from workbench.catalogue.pacing import cite_pacing
from workbench.scaling.model.interference import SharedLink
from workbench.scaling.model.link_race import Raced, race_times
from workbench.scaling.simulated.interference import simulate_race

DRAWS = 2
MOST_TRANSFERS = 60
"""KV transfers of a draw at most: each is a thread of a real run, and the formula's time grows with their square."""

BEFORE, BEYOND = 0.5, 1.1
"""KV begins half an idle load before the load, and goes on for 1.1 times as long as the load takes by the formula."""

WEIGHTS, DURING, OUTSIDE = "weights", "KV that begins during the load, mean", "other KV, mean"


def draws(context: Context, link: SharedLink) -> list[list[float]]:
    """Instants of KV transfers of each draw, seconds after the load begins: Poisson, the same for every backend."""
    random, begin_s = context.random("race"), -BEFORE * link.weight_bytes / link.bytes_per_s
    waits_s = [
        random.exponential(1 / link.batches_per_s, MOST_TRANSFERS) if link.batches_per_s else np.array([])
        for _ in range(1 if context.mode == "quick" else DRAWS)
    ]
    return [(begin_s + wait_s.cumsum()).tolist() for wait_s in waits_s]


class Races(NamedTuple):
    """All draws in both directions.

    Attributes:
        rows: `direction, draw, flow, seconds`.
        asked: by direction, KV's share of the link that was asked for while the load ran.
        stretch: by direction, how much longer KV that began during the load took than the same transfers take without
            it (by the formula), 1 where there was none.
    """

    rows: list[dict[str, Any]]
    asked: dict[str, float]
    stretch: dict[str, float]


def races(context: Context, links: Sequence[tuple[str, SharedLink]]) -> Races:
    """Every draw in every direction, by the backend that is asked."""
    rows: list[dict[str, Any]] = []
    asked, stretch = ({direction: list[float]() for direction, _ in links} for _ in range(2))
    for direction, draw, instants, raced in _raced(context, links, draws(context, links[0][1])):
        link = dict(links)[direction]
        # By the formula's end of the load, so that every backend speaks of the same transfers.
        during = (np.array(instants) >= 0) & (np.array(instants) < race_times(link, instants).load_s)
        asked[direction].append(float(during.sum() * link.kv_bytes / link.bytes_per_s / raced.load_s))
        means = {WEIGHTS: raced.load_s}
        for flow, which in ((DURING, during), (OUTSIDE, ~during)):
            if which.any():
                means[flow] = float(raced.kv_s[which].mean())
        if during.any():
            without = race_times(link.model_copy(update={"same_direction": False}), instants).kv_s
            stretch[direction].append(means[DURING] / float(without[during].mean()))
        rows += [{"direction": direction, "draw": draw, "flow": flow, "seconds": s} for flow, s in means.items()]
    return Races(
        rows,
        {direction: float(np.mean(shares)) for direction, shares in asked.items()},
        {direction: float(np.mean(ratios)) if ratios else 1.0 for direction, ratios in stretch.items()},
    )


def _raced(
    context: Context, links: Sequence[tuple[str, SharedLink]], sequences: list[list[float]]
) -> Iterator[tuple[str, int, list[float], Raced]]:
    """Direction, number of the draw, its instants, and what came of it."""
    planned = [
        (draw, direction, link, _beside(link, instants))
        for draw, instants in enumerate(sequences, start=1)
        for direction, link in links
    ]
    if context.backend != "torch":
        run = race_times if context.backend == "analytic" else simulate_race
        for draw, direction, link, instants in planned:
            yield direction, draw, instants, run(link, instants)
        return
    from workbench.executor.processes import Pool
    from workbench.scaling.real.link_race import race_on_link

    with Pool(3) as pool:
        for draw, direction, link, instants in planned:
            label = f"race {draw}, {direction}"
            context.tell(f"real run: {label}")
            run = race_on_link(link, instants, pool=pool, stop=context.give_way)
            cite_pacing(context, label, run)
            yield direction, draw, instants, Raced(run.load_s, run.kv_s)


def _beside(link: SharedLink, instants: Sequence[float]) -> list[float]:
    """Those transfers of a draw that matter to a load, or begin shortly after it."""
    last_s = BEYOND * race_times(link, instants).load_s
    return [at_s for at_s in instants if at_s <= last_s]
