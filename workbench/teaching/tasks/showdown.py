"""Exercises across the papers: whom sharing harms, how many GPUs must be bought, when buying pays off."""

from typing import Any

import numpy as np

from workbench.catalogue.running import run
from workbench.catalogue.spec import find
from workbench.teaching.task import FunctionTask, Rng, Slip, ValueTask, pick
from workbench.transfer.model import chain_of_blocks_s


def _draw_turn(rng: Rng) -> dict[str, Any]:
    numbers = {
        "gigabytes": int(rng.integers(10, 60)), "targets": int(rng.integers(3, 12)), "gbps": pick(rng, 50, 100, 200),
        "units": int(rng.integers(16, 60)),
    }  # fmt: skip
    return {**numbers, "gap_s": round(_alone_s(**numbers) * float(rng.uniform(0.2, 0.7)), 2)}


def _alone_s(gigabytes: int, targets: int, gbps: int, units: int) -> float:
    return float(chain_of_blocks_s([gigabytes * 8 / gbps / units] * targets, units)[-1])


def _sooner_s(gap_s: float, **chain: int) -> float:
    return _alone_s(**chain) - gap_s


def _needs(rng: Rng) -> list[tuple[list[list[int]], int]]:
    """GPUs of some models in some minutes, and minutes that may fall short."""
    cases = []
    for _ in range(9):
        models, minutes = int(rng.integers(2, 5)), int(rng.integers(6, 13))
        bursts = rng.random((models, minutes)) < 0.3
        cases.append((np.where(bursts, rng.integers(4, 9, bursts.shape), 1).tolist(), int(rng.integers(0, 4))))
    return [*cases, ([[1, 8, 1], [8, 1, 1]], 0), ([[1, 8, 1], [8, 1, 1]], 2), ([[3, 3, 3, 3]], 1)]


def _to_buy(needs: list[list[int]], short: int) -> float:
    total = np.sum(needs, axis=0)
    return float(np.partition(total, total.size - 1 - short)[total.size - 1 - short])


def _draw_price(rng: Rng) -> dict[str, Any]:
    return {
        "price": 1000 * int(rng.integers(20, 41)), "years": pick(rng, 3, 4, 5), "rent": pick(rng, 2.5, 3.0, 4.0, 5.0),
        "busy_w": pick(rng, 400, 700, 1000), "idle_w": pick(rng, 50, 70, 100), "cents": pick(rng, 10, 20, 30),
    }  # fmt: skip


def _break_even(price: int, years: int, rent: float, busy_w: int, idle_w: int, cents: int) -> float:
    money = {"price": price, "life_years": years, "rent": rent, "usd_per_kwh": cents / 100}
    money |= {"busy_w": busy_w, "idle_w": idle_w, "overhead": 1.0}
    saved = run(find("showdown/savings"), money, backends="analytic").tables["saved"]
    return 100 * float(saved["break_even"][0])


EXERCISES = (
    ValueTask(
        "showdown/in-turn",
        "Whom does fair sharing help?",
        "Two models of {gigabytes} GB (of 10⁹ bytes) each go from one host along chains of {targets} targets each, in "
        "{units} equal units. Both chains use the same network cards of {gbps} Gbps; the second burst comes {gap_s} s "
        "after the first. How many seconds sooner is the first chain complete if the second waits its turn than if "
        "both share the cards fairly?",
        "s",
        _draw_turn,
        _sooner_s,
        (
            "How long does a chain take by itself? See notebook 10.",
            "From the second burst on the first chain goes at half the speed. How much of it is left by then?",
            "With T for a chain by itself and a gap Δ: T in turn, Δ + 2 (T - Δ) when shared.",
        ),
        (
            Slip(
                "that is how long the first takes when both share; how much sooner is it in turn?",
                lambda gap_s, **chain: 2 * _alone_s(**chain) - gap_s,
            ),
            Slip("that is how long it takes by itself.", lambda gap_s, **chain: _alone_s(**chain)),
            Slip(
                "that is half of it: at half the speed what is left takes twice as long.",
                lambda **n: _sooner_s(**n) / 2,
            ),
        ),
    ),
    FunctionTask(
        "showdown/to-buy",
        "How many GPUs must be bought?",
        "`needs` has a list for each model: the GPUs that it needs in each minute. All models share what is bought, "
        "and in at most `short` minutes it may be too few. What is the fewest that will do?",
        "to_buy",
        ("needs", "short"),
        _needs,
        _to_buy,
        (
            "How many GPUs do all models together need in each minute?",
            "Sort these sums. With none to fall short, the largest must be bought.",
            "Of the sums, from the largest down, skip `short`; the next one is the answer.",
        ),
    ),
    ValueTask(
        "showdown/break-even",
        "Buy or rent?",
        "A GPU costs {price} USD with its share of a host and is used for {years} years (of 365.25 days); it draws "
        "{busy_w} W at work and {idle_w} W when idle, at {cents} cents a kWh. Renting one costs {rent} USD for every "
        "hour of work. At work for which percentage of the time is buying as cheap as renting?",
        "%",
        _draw_price,
        _break_even,
        (
            "What does a bought GPU cost in an hour in which it idles, and what in one in which it works?",
            "Price over hours of use is paid in every hour; so is electricity, at one of two rates.",
            "With c for price over hours, b and i for electricity at work and idle, r for the rent: "
            "(c + i) / (r - b + i).",
        ),
        (
            Slip(
                "that leaves electricity out.",
                lambda price, years, rent, **_: 100 * price / (years * 365.25 * 24) / rent,
            ),
            Slip("that is a share; as a percentage it is a hundred times as much.", lambda **n: _break_even(**n) / 100),
        ),
        tolerance=0.005,
    ),
)
"""In the order of the notebook."""
