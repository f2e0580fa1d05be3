"""Placement and allocation of server chains: who hosts what, which chains run, and how few are enough."""

import polars as pl

from workbench.catalogue.chains.gca import KINDS, SERIES
from workbench.catalogue.chains.greedy_wrong import HOW
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, DASHES, SYMBOLS, Palette, figure, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack

IDLE = "rgba(128,128,128,.35)"
FEW = 5
"""Servers up to which those of a chain stand in the legend."""


def example(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Blocks of each server as bars, GCA's chains as lines through them, and seconds and jobs of each chain."""
    return _composed(outcome, "Chains through five servers", panel)


def built(outcome: Outcome, panel: str | None = None) -> Canvas:
    """The same for servers of the reader's choice."""
    count = len(outcome.tables["servers"])
    return _composed(outcome, f"Chains through {count} server{'s' if count > 1 else ''}", panel)


def _composed(outcome: Outcome, title: str, panel: str | None) -> Canvas:
    servers, chains, links = (outcome.tables[name] for name in ("servers", "chains", "links"))
    few = len(servers) <= FEW
    slots = dict(servers.select("server", pl.format("{} slots, {} left", "slots", "slots_left")).rows())
    label = {name: f"{name} ({text})" for name, text in slots.items()}

    def blocks(made: Canvas, row: int) -> None:
        for group in sorted(set(servers["chain"].to_list())):
            part = servers.filter(pl.col("chain") == group)
            made.add(
                {
                    "type": "bar",
                    "orientation": "h",
                    "y": [label[name] for name in part["server"]],
                    "x": part["blocks"].to_list(),
                    "base": [first - 0.5 for first in part["first_block"].to_list()],
                    "name": "in no disjoint chain" if group < 0 else f"disjoint chain {group + 1}",
                    "marker": {"color": IDLE if group < 0 else COLOURS[group % len(COLOURS)]},
                },
                row=row,
            )
        for index, ((name,), hops) in enumerate(links.group_by("chain", maintain_order=True)):
            aside = 0.07 * (index - 1)  # so that chains that share a hop are seen apart
            ends = hops.select(pl.concat_list("first_block", "last_block")).to_series().to_list()
            look = {"color": COLOURS[(index + 2) % len(COLOURS)], "dash": DASHES[index // len(COLOURS)]}
            made.add(
                scatter(
                    [block + aside for pair in ends for block in pair],
                    [label[server] for server in hops["server"].to_list() for _ in range(2)],
                    name=f"round {index + 1} of GCA: {name}" if few else f"round {index + 1}",
                    mode="lines+markers",
                    line={**look, "width": 3 if few else 2},
                    hovertext=name,
                ),
                row=row,
            )
        last = max(1, (servers["first_block"] + servers["blocks"]).max())
        made.x(row, title="block", range=[0.4, last - 0.4], **({"dtick": 1} if last <= 12 else {}))
        made.y(row, autorange="reversed", type="category",
               categoryorder="array", categoryarray=list(label.values()))  # fmt: skip

    def seconds(made: Canvas, row: int) -> None:
        for index, (algorithm, text) in enumerate((("GBP-CR", "disjoint (GBP-CR)"), ("GCA", "allocated (GCA)"))):
            part = chains.filter(pl.col("algorithm") == algorithm)
            word = "disjoint" if algorithm == "GBP-CR" else "round"
            made.add(
                bar(
                    part["servers"].to_list() if few else [f"{word} {place + 1}" for place in range(len(part))],
                    part["rate_per_s"].to_list(),
                    name=text,
                    marker={"color": COLOURS[6 + index]},
                    text=[f"{jobs} x {1 / s:.3g}/s" for jobs, s in part.select("capacity", "service_s").rows()],
                    textposition="auto",
                    hovertext=part["servers"].to_list(),
                ),
                row=row,
            )
        made.x(row, title="chain", type="category").y(row, title="jobs/s", rangemode="tozero")

    painters = {"blocks": ("what each server hosts", blocks), "chains": ("what each chain serves", seconds)}
    return stack(title, painters, panel, heights=(max(1.0, len(servers) / 9), 1.0))


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


def wrong(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Chains too many in random instances; one instance's groups both ways; bounds and simulation of its response."""
    instances, groups, ends, runs = (outcome.tables.get(name) for name in ("instances", "groups", "bounds", "response"))
    palette = Palette(HOW)

    def counts(made: Canvas, row: int) -> None:
        if instances is not None:
            above = (instances["greedy"] - instances["fewest"]).drop_nulls().value_counts(sort=True)
            share = {f"{key:+d}" if key else "0": 100 * value / len(instances) for key, value in above.rows()}
            share["not enough"] = 100 * instances["greedy"].null_count() / len(instances)
            x = ["0", "+1", "+2", "not enough"]
            y = [share.get(place, 0.0) for place in x]
            look = {"text": [f"{value:.1f}" for value in y], "textposition": "outside", "cliponaxis": False}
            made.add(bar(x, y, showlegend=False, name="instances", marker={"color": COLOURS[4]}, **look), row=row)
        made.x(row, title="chains of greedy placement above the fewest", type="category")
        made.y(row, title="% of instances", range=[0, 112])

    def chosen(made: Canvas, row: int) -> None:
        for how in HOW if groups is not None else ():
            part = groups.filter(pl.col("how") == how)
            chains = part.group_by("chain", maintain_order=True).agg(
                pl.concat_str("server", pl.lit(" ("), "blocks", pl.lit(")")).str.join(" "), pl.col("chain_s").first()
            )
            x = [f"chain {number}" for number in chains["chain"]]
            look = {"marker": {"color": palette.colour(how)}, "text": chains["server"].to_list()}
            y = chains["chain_s"].to_list()
            made.add(bar(x, y, name=f"{how}: servers (blocks)", textposition="auto", **look), row=row)
        made.x(row, type="category").y(row, title="seconds of a job", rangemode="tozero")

    def response(made: Canvas, row: int) -> None:
        for how, low, high in () if ends is None else ends.select("how", "lower_s", "upper_s").rows():
            line = {"color": palette.colour(how), "width": 9}
            y = [low, high] if low is not None else []
            name = f"bounds of Theorem 4, {how}"
            made.add(scatter([how] * len(y), y, mode="lines", name=name, line=line, opacity=0.45), row=row)
        for how, mean in () if runs is None else runs.select("how", "response_s").rows():
            mark = {"color": palette.colour(how), "symbol": SYMBOLS["compiled"], "size": 11}
            x, y = ([how], [mean]) if mean is not None else ([], [])
            made.add(scatter(x, y, mode="markers", name=f"simulated, {how}", marker=mark), row=row)
        made.x(row, type="category", categoryorder="array", categoryarray=list(HOW), range=[-0.5, 1.5])
        made.y(row, title="mean response, s", rangemode="tozero")

    painters = {
        "instances": ("random instances, against every grouping", counts),
        "groups": ("the instance shown", chosen),
        "response": ("the same, with as many chains as the best grouping has", response),
    }
    return stack("When greedy placement is wrong", painters, panel)


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
