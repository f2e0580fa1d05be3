"""§7.5: GPUs before and after pooling in production, and where 82 % comes from."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Match, experiment

_PAPER = "SOSP'25 paper §7.5"
SMALL, LARGE = "models, 1.8-7B on one GPU each", "models, 32-72B on four GPUs each"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    gpus = dict(tables["fleets"].select("fleet", "gpus").iter_rows())
    before, one, after = gpus.values()
    return (
        f"{before:,} GPUs became {after:,}, {1 - after / before:.1%} fewer; one instance of each model would take "
        f"{one:,}, so the old fleet held {before / one:.1f} of each and the pool {after / one:.1f}: no pooling ratio."
    )


@experiment(
    "aegaeon/production",
    title="Where do 82 % come from?",
    question="How many GPUs did pooling save, and how many would one instance of each model take?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="pooling_formulas.fleets",
    say=_say,
    matches=(
        Match((SMALL, LARGE, "GPUs", "mean request rate of a model"), fitted=ALL),
        Match(("share of GPUs saved",), tolerance=0.01),
    ),
)
def production(
    context: Context,
    *,
    before: Annotated[int, Par("GPUs before", low=1, high=5000, status="published", source=_PAPER)] = 1192,
    after: Annotated[int, Par("GPUs after", low=1, high=5000, status="published", source=_PAPER)] = 213,
    small: Annotated[int, Par("Models on one GPU", low=0, high=500, status="published", source=f"{_PAPER}: 28")] = 28,
    large: Annotated[int, Par("Models on several", low=0, high=500, status="published", source=f"{_PAPER}: 19")] = 19,
    tp: Annotated[int, Par("GPUs of those", low=1, high=16, status="published", source=f"{_PAPER}: TP 4")] = 4,
) -> dict[str, pl.DataFrame]:
    """GPUs of both fleets, of one instance of each model, and what each fleet holds of that."""
    models, one = small + large, small + tp * large
    fleets = {"before": before, "one instance of each model": max(1, one), "after": after}
    rows = [{"fleet": name, "gpus": gpus, "instances_each": gpus / max(1, one)} for name, gpus in fleets.items()]
    rate = context.cite("mean request rate of a model", 0.037, "1/s", "published", _PAPER)
    known = [
        ("GPUs", "before", before, "1"),
        ("GPUs", "after", after, "1"),
        ("share of GPUs saved", "", 1 - after / before, "1"),
        ("share of GPUs saved, unrounded", "", 1 - after / before, "1"),
        (SMALL, "", small, "1"),
        (LARGE, "", large, "1"),
        ("GPUs for one instance of each model", "", one, "1"),
        ("models per GPU", "after", models / after, "1"),
        ("mean request rate of a model", "", rate, "1/s"),
    ]
    return {"fleets": pl.DataFrame(rows), "headline": headline(known)}
