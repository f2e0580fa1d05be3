"""A small experiment with known answers, entered for one test and taken out again."""

from typing import Annotated

import polars as pl
import pytest

from workbench.catalogue import spec
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Agree, Assumption, Match, Ordering


@pytest.fixture
def toy():
    """`toy/line`: y = slope * x; SimPy answers 1 % more, torch is missing; two series, one random."""

    @spec.experiment(
        "toy/line",
        title="A line",
        question="How high is it?",
        backends=("analytic", "simpy", "torch"),
        seconds={"analytic": 0.01, "simpy": 0.01, "torch": 9},
        draw="toy.line",
        say=lambda tables, parameters: f"The slope is {parameters['slope']}.",
        matches=(
            Match(series=("height",), tolerance=0.05, assumptions=(Assumption("the slope is two", {"slope": 3.0}),)),
            Match(series=("calibrated",), fitted=ALL),
            Match(series=("width",), incomparable={"": "a line has none"}),
        ),
        orderings=(Ordering("low is below high", ("low", "height"), x="1"),),
        agrees=(Agree("height", "line", ("x",), "y_m", {("analytic", "simpy"): (-0.02, 0.02)}),),
        stochastic=True,
    )
    def line(
        context,
        *,
        slope: Annotated[float, Par("Slope", "m", low=0, high=10, source="the test", status="published")] = 2.0,
        points: Annotated[int, Par("Points", low=1, high=100, free=True)] = 3,
        kind: Annotated[str, Par("Kind", choices=("straight", "bent"))] = "straight",
        which: Annotated[tuple[str, ...], Par("Which", choices=("a", "b", "c"))] = ("a", "b"),
        noisy: Annotated[bool, Par("Noisy", free=True)] = False,
    ) -> dict[str, pl.DataFrame]:
        if context.backend == "torch":
            from workbench.errors import MissingExtra

            raise MissingExtra("The real run", "torch", "torch")
        factor = 1.01 if context.backend == "simpy" else 1.0
        noise = context.random("noise").normal() if noisy else 0.0
        context.cite("gravity", 9.81, "m/s2", "datasheet", "a sheet")
        xs = [float(x) for x in range(1, points + 1)]
        ys = [slope * x * factor + noise for x in xs]
        rows = [("height", str(int(x)), y, "m") for x, y in zip(xs, ys, strict=True)]
        rows += [("low", "1", 0.5, "m"), ("calibrated", "", slope, "m")]
        headline = pl.DataFrame(rows, schema=["series", "x", "value", "unit"], orient="row")
        return {"line": pl.DataFrame({"x": xs, "y_m": ys}), "headline": headline}

    yield spec._SPECS["toy/line"]
    del spec._SPECS["toy/line"]


POINTS = """series,x,value,low,high,unit,kind
height,1,2.05,,,m,published
height,2,5,,,m,published
height,3,,5,,m,published
calibrated,,2,,,m,published
height,9,1,,,m,published
height,1,2.1,,,m,computed
height,2,4,,,km,published
nowhere,1,1,,,m,published
width,,1,,,m,published
"""


@pytest.fixture
def points(tmp_path):
    """A file of points that meets every reading: see `POINTS`."""
    path = tmp_path / "points.csv"
    path.write_text(POINTS)
    return path
