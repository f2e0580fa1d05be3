"""Placement and allocation of server chains: who hosts what, which chains run, and how few are enough."""

import polars as pl

from workbench.catalogue.chains.gca import KINDS, SERIES
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, Palette, figure, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

IDLE = "rgba(128,128,128,.35)"


def example(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Blocks of each server as bars, GCA's chains as lines through them, and seconds and jobs of each chain."""
    servers, chains, links = (outcome.tables[name] for name in ("servers", "chains", "links"))

    def blocks(made: Canvas, row: int) -> None:
        for group in sorted(set(servers["chain"].to_list())):
            part = servers.filter(pl.col("chain") == group)
            colour = IDLE if group < 0 else COLOURS[group]
            name = "in no disjoint chain" if group < 0 else f"disjoint chain {group + 1}"
            made.add(
                {
                    "type": "bar",
                    "orientation": "h",
                    "y": part["server"].to_list(),
                    "x": part["blocks"].to_list(),
                    "base": [first - 0.5 for first in part["first_block"].to_list()],
                    "name": name,
                    "marker": {"color": colour},
                    "text": [
                        f"{slots} slots, {left} left" for slots, left in part.select("slots", "slots_left").rows()
                    ],
                    "textposition": "inside",
                    "insidetextanchor": "start",
                },
                row=row,
            )
        for index, ((name,), hops) in enumerate(links.group_by("chain", maintain_order=True)):
            aside = 0.07 * (index - 1)  # so that chains that share a hop are seen apart
            ends = hops.select(pl.concat_list("first_block", "last_block")).to_series().to_list()
            made.add(
                scatter(
                    [block + aside for pair in ends for block in pair],
                    [server for server in hops["server"].to_list() for _ in range(2)],
                    name=f"round {index + 1} of GCA: {name}",
                    mode="lines+markers",
                    line={"color": COLOURS[index + 2], "width": 3},
                ),
                row=row,
            )
        made.x(row, title="block", dtick=1, range=[0.4, (servers["first_block"] + servers["blocks"]).max() - 0.4])
        made.y(row, title="server", autorange="reversed")

    def seconds(made: Canvas, row: int) -> None:
        for index, (algorithm, text) in enumerate((("GBP-CR", "disjoint (GBP-CR)"), ("GCA", "allocated (GCA)"))):
            part = chains.filter(pl.col("algorithm") == algorithm)
            made.add(
                bar(
                    part["servers"].to_list(),
                    part["rate_per_s"].to_list(),
                    name=text,
                    marker={"color": COLOURS[6 + index]},
                    text=[f"{jobs} x {1 / s:.3g}/s" for jobs, s in part.select("capacity", "service_s").rows()],
                    textposition="auto",
                ),
                row=row,
            )
        made.x(row, title="chain", type="category").y(row, title="jobs/s", rangemode="tozero")

    painters = {"blocks": ("what each server hosts", blocks), "chains": ("what each chain serves", seconds)}
    return stack("Chains through five servers", painters, panel)


def greedy(outcome: Outcome, panel: str | None = None) -> Canvas:
    """c K(c) of greedy and of random placements by c, and of small instances how many chains too many."""
    objective, instances = outcome.tables["objective"], outcome.tables["instances"]

    def placements(made: Canvas, row: int) -> None:
        keys = ["fast_share", "reserved"]
        means = objective.group_by(keys, maintain_order=True).agg(pl.col("greedy", "least", "median", "most").mean())
        for index, ((share,), part) in enumerate(means.group_by("fast_share", maintain_order=True)):
            part = part.sort("reserved")
            x, colour = part["reserved"].to_list(), COLOURS[index]
            name = f"{share:.0%} fast servers"
            y, low, high = (part[column].to_list() for column in ("median", "least", "most"))
            spread = {
                "type": "data",
                "symmetric": False,
                "array": [None if a is None else b - a for a, b in zip(y, high, strict=True)],
                "arrayminus": [None if a is None else a - b for a, b in zip(y, low, strict=True)],
            }
            mark = {"color": colour, "symbol": "circle-open", "size": 8}
            text = f"{name}: random, median and range"
            made.add(scatter(x, y, mode="markers", name=text, marker=mark, error_y=spread, legendgroup=name), row=row)
            line = {"color": colour, "width": 2}
            y = part["greedy"].to_list()
            text = f"{name}: greedy"
            made.add(scatter(x, y, mode="lines+markers", name=text, line=line, legendgroup=name), row=row)
        made.x(row, title="jobs reserved for (c)").y(row, title="jobs held, c K(c)", rangemode="tozero")

    def small(made: Canvas, row: int) -> None:
        for index, ((memory,), part) in enumerate(instances.group_by("memory", maintain_order=True)):
            above = (part["greedy"] - part["fewest"]).value_counts(sort=False).drop_nulls().sort("greedy")
            counts = dict(above.rows())
            counts["not enough"] = int(part["greedy"].is_null().sum())
            places = [f"{key:+d}" if isinstance(key, int) and key else str(key) for key in counts]
            share = [100 * value / len(part) for value in counts.values()]
            made.add(bar(places, share, name=f"{memory} memory", marker={"color": COLOURS[index]}), row=row)
        order = {"categoryorder": "array", "categoryarray": ["0", "+1", "+2", "+3", "not enough"]}
        made.x(row, title="chains above the fewest", type="category", **order).y(row, title="% of instances")

    painters = {
        "placements": (
            f"{outcome.parameters['servers']} servers, mean of {outcome.parameters['draws']} draws",
            placements,
        ),
        "instances": ("six servers, against every grouping", small),
    }
    return stack("Greedy placement", painters, panel)


def job_servers(outcome: Outcome, _: str | None = None) -> Canvas:
    """Jobs that chains must hold at once, against the share of GCA's rate."""
    table = outcome.tables["needed"].group_by("fraction", maintain_order=True).agg(pl.col(*KINDS).mean())
    palette = Palette(KINDS)
    made = figure("Jobs at once that a rate takes", "share of the rate of all chains", "jobs at once (mean of draws)")
    for name, text in KINDS.items():
        part = table.filter(pl.col(name).is_not_null())
        line = {"color": palette.colour(name), "dash": palette.dash(name), "width": 2}
        made.add(scatter(part["fraction"].to_list(), part[name].to_list(), mode="lines+markers", name=text, line=line))
    made.add(*published_marks(outcome, palette, series={series: name for name, series in SERIES.items()}))
    return made.x(range=[0, 1]).y(rangemode="tozero")
