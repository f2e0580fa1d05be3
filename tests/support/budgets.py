"""The budgets of the project: what must be reached, what was measured, and a table that names what is missed."""

import math
from collections.abc import Mapping
from typing import NamedTuple


class Budget(NamedTuple):
    """What must be reached.

    Attributes:
        what: in words.
        unit: of both ends: "s", "bytes", "1" (a share), "x" (times as many) or "requests/s"; "" for a bare number.
        low, high: the least and the most that meet it.
        margin: a benchmark fails from so many times `high` on; the table says it is missed from `high` on.
    """

    what: str
    unit: str
    low: float = -math.inf
    high: float = math.inf
    margin: float = 1.0

    def met(self, measured: float) -> bool:
        """Whether a measurement lies between both ends; NaN never does."""
        return self.low <= measured <= self.high

    def room(self, measured: float) -> float:
        """How far a measurement lies inside the nearer end, below 0 outside of it."""
        return min(measured - self.low, self.high - measured)


BUDGETS = {
    "import": Budget("`import workbench`", "s", high=0.3, margin=5),
    "first figure": Budget("explorer, warm cache: first figure", "s", high=3, margin=5),
    "slider": Budget("explorer, warm cache: slider to new figure data, analytic", "s", high=0.05, margin=5),
    "slider, compiled": Budget("the same by compiled replay of a trace of 20,000 requests", "s", high=0.2, margin=5),
    "seed": Budget(
        "sweep explorers: from the button to one seed's first picture (a quick run)",
        "s",
        high=1,
        margin=1000,
    ),
    "first figure, cold": Budget("explorer, cold cache: first figure, analytic", "s", high=8, margin=5),
    "first compiled": Budget("explorer, cold cache: first compiled answer", "s", high=25),
    "W2": Budget("compiled loop on W2", "requests/s", low=300_000),
    "W2, DynoSim": Budget("compiled loop on W2 beside DynoSim", "x", low=30),
    "W2, DynoSim, TBT": Budget("the same with every request's TBT P95 and maximum", "x", low=15),
    "hour": Budget("Azure conversation hour on 16 instances", "s", high=0.15),
    "million": Budget("1,000,000 requests of 128 outputs on 16 instances", "s", high=5),
    "million, memory": Budget("memory of the same", "bytes", high=2**30),
    "slope": Budget("log-log slope of time over requests", "", high=1.1),
    "saturated": Budget("compiled loop beside SimPy on a saturated instance", "x", low=100),
    "compile": Budget("processor time to compile one loop, once", "s", high=20),
    "SimPy": Budget("SimPy engine on W2", "requests/s", low=8000),
    "step time": Budget("closed-form step time, a point", "s", high=1e-6),
    "multicast": Budget("multicast of 1,024 blocks to 1,024 nodes by formula", "s", high=0.05),
    "plan": Budget("BlitzScale's plan of chains for 1,024 GPUs, processor time", "s", high=0.05),
    "reproduce": Budget("`workbench reproduce all --quick`, cold cache", "s", high=600),
    "test": Budget("`make test`, its last run", "s", high=1200),
    "notebook": Budget("a notebook from top to bottom", "s", high=25),
    "warm": Budget("`workbench warm`, cold cache: every kernel compiled", "s", high=180),
    "paced": Budget("real paced transfer, wall time over the formula", "1", low=-0.01, high=0.1),
    "unpaced": Budget("real unpaced transfer beside one raw loopback pair", "1", low=0.6),
    "unpaced, memory": Budget("real unpaced transfer beside a memory copy", "1", low=0.6),
    "dead": Budget("a dead process noticed after", "s", high=0.1),
    "hung": Budget("a hung process noticed after, heartbeat 1 s", "s", high=1.0),
    "sweep": Budget("sweep by two workers beside one", "x", low=1.8),
}
"""Of a machine with two cores and 24 GiB that does nothing else; medians, ratios from readings of one run."""

Measured = Mapping[str, list[tuple[float, str]]]


def table_of(measured: Measured, about: str) -> str:
    """All budgets as a Markdown page: of each the measurement that is nearest to missing it.

    Parameters:
        measured: key of `BUDGETS` -> measurements, each with what it is of.
        about: machine, date and load.
    """
    worst = {key: min(found, key=lambda one: BUDGETS[key].room(one[0])) for key, found in measured.items() if found}
    missed = [key for key in BUDGETS if key in worst and not BUDGETS[key].met(worst[key][0])]
    unknown = [key for key in BUDGETS if key not in worst]
    lines = [
        "# Budgets",
        "",
        f"Written by `make benchmark` on {about}. Of several measurements the one nearest to missing is shown.",
        "",
        f"{len(worst) - len(missed)} of {len(BUDGETS)} budgets are met. {_named('Missed', missed)} "
        f"{_named('Not measured', unknown)}",
        "",
        "| what | budget | measured | | met |",
        "|---|---|---|---|---|",
    ]
    for key, budget in BUDGETS.items():
        value, detail = worst.get(key, (math.nan, ""))
        met = "not measured" if key not in worst else "**missed**" if key in missed else "yes"
        shown = "" if key not in worst else text_of(value, budget.unit)
        lines.append(f"| {budget.what} | {ends_of(budget)} | {shown} | {detail} | {met} |")
    return "\n".join(lines) + "\n"


def _named(what: str, keys: list[str]) -> str:
    return f"{what}: {'; '.join(BUDGETS[key].what for key in keys)}." if keys else f"{what}: none."


def ends_of(budget: Budget) -> str:
    """Both ends in words."""
    low, high = text_of(budget.low, budget.unit), text_of(budget.high, budget.unit)
    if math.isinf(budget.low):
        return f"at most {high}"
    return f"at least {low}" if math.isinf(budget.high) else f"{low} to {high}"


def text_of(value: float, unit: str) -> str:
    """A number with its unit, three digits or so.

    >>> text_of(0.0123, "s"), text_of(0.104, "1"), text_of(312_345.6, "requests/s"), text_of(2**30, "bytes")
    ('12.3 ms', '10.4 %', '312,346 requests/s', '1.00 GiB')
    """
    match unit:
        case "s":
            factor, name = next(
                (pair for pair in ((1, "s"), (1e3, "ms"), (1e6, "µs")) if abs(value) * pair[0] >= 1), (1e9, "ns")
            )
            return f"{value * factor:.0f} {name}" if abs(value) * factor >= 100 else f"{value * factor:.3g} {name}"
        case "1":
            return f"{value * 100:.3g} %"
        case "bytes":
            return f"{value / 2**30:.2f} GiB"
        case "requests/s":
            return f"{value:,.0f} {unit}"
    return f"{value:.3g} {unit}".strip()
