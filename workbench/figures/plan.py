"""A plan drawn upon its cluster: leaf switches, hosts, NVLink groups, accelerators and the chains between them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from workbench.catalogue.blitzscale.plan_cluster import IN_MEMORY, OTHER
from workbench.catalogue.blitzscale.planners import ARTIFACT, PLANNERS
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import COLOURS, DASHES, GREY, INK
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import ROW, stack

PIXELS = 21
"""Of one accelerator's place in the drawing, top to bottom."""
HALF, GUTTER, GAP = 0.27, 0.17, 0.3
"""Half the width of a host's boxes, what lies beside them for lines, and the room between leaf switches; a host and its
lines take 1."""
LEAF, SPINE, TOP, BELOW = (1.1, 2.3), (3.1, 4.3), 5.3, 3.1
"""Heights of the bars of switches, and of the drawing, in places of an accelerator above the first one; and what the
drawing has below the last one, for the copy in memory and the names of leaf switches."""
WIDE = 10
"""Hosts beyond which marks are small."""
SHOWN_LEAVES = 4
"""Leaf switches up to which the bytes that cross their uplinks stand beside their names."""
LEFT_OUT = "#d1495b"
LETTERS = {"prefill": "P", "decode": "D", "host": "M"}


class Spot(NamedTuple):
    """Where something is drawn."""

    x: float
    y: float
    leaf: int


class Map(NamedTuple):
    """Where each accelerator and each host is drawn."""

    spots: dict[str, Spot]
    columns: dict[int, float]
    deep: float
    small: bool

    @property
    def mark(self) -> int:
        """Size of an accelerator's mark, pixels."""
        return 7 if self.small else 14


def map_of(places: pl.DataFrame) -> Map:
    """Hosts stand side by side below their leaf switches, their accelerators one below the other."""
    leaves = dict(places.select("host", "leaf").unique().sort("host").iter_rows())
    columns = {host: host + GAP * leaf for host, leaf in leaves.items()}
    deep = places["place"].max() + 1
    spots = {
        row["name"]: Spot(columns[row["host"]], -(deep if row["place"] == IN_MEMORY else row["place"]), row["leaf"])
        for row in places.to_dicts()
    }
    return Map(spots, columns, deep, len(columns) > WIDE)


def topology(outcome: Outcome, panel: str | None = None) -> Canvas:
    """The plan upon the cluster, and beside it how long each planner's takes and what it sends over the spine."""
    tables, parameters = outcome.tables, outcome.parameters
    where = map_of(tables["places"])

    def drawing(made: Canvas, row: int) -> None:
        _switches(made, row, outcome, where)
        _groups(made, row, tables["places"], where)
        made.add(*_idle(tables["places"], where), row=row)
        if parameters["planner"] == ARTIFACT:
            made.add(_gathered(tables["edges"], where), row=row)
        for key, edges in tables["edges"].group_by("round", "chain", maintain_order=True):
            made.add(*_chain(key, edges, outcome, where), row=row)
        made.add(*_sources(outcome, where), *_words(tables["places"], where), row=row)
        hosts = list(where.columns)
        every = 2 if where.small else 1
        made.x(
            row, title="host (boxes: NVLink groups, bars: leaf switches)",
            tickvals=[where.columns[host] for host in hosts], tickangle=0,
            ticktext=[str(host) if host % every == 0 else "" for host in hosts],
            range=[-0.55, max(where.columns.values()) + 0.55], showgrid=False, zeroline=False,
        )  # fmt: skip
        made.y(row, range=[-where.deep - BELOW, TOP], showgrid=False, zeroline=False, showticklabels=False)

    def bars(column: str, title: str, unit: str, scale: float, colour: str):
        def paint(made: Canvas, row: int) -> None:
            table = tables["plans"]
            values, names = (table[column] / scale).to_list(), table["planner"].to_list()
            made.add(
                bar(
                    values, names, orientation="h", showlegend=False, marker={"color": colour},
                    text=[f"{name}: {value:.3g} {unit}" for name, value in zip(names, values, strict=True)],
                    textposition="outside", cliponaxis=False,
                ),
                row=row,
            )  # fmt: skip
            made.x(row, title=title, range=[0, 2.0 * max(values, default=0.0) or 1.0])
            made.y(row, categoryorder="array", categoryarray=list(PLANNERS[::-1]), showticklabels=False)

        return paint

    chosen = tables["plans"].filter(planner=parameters["planner"])
    about = "no accelerator is spare"
    if len(chosen):
        about = f"{chosen['reached'][0]} accelerators in {chosen['last_s'][0]:.3g} s"
    time = bars("last_s", "seconds until the last one holds all", "s", 1.0, COLOURS[0])
    bytes_up = bars("uplink_bytes", "GB up from leaf switches to the spine", "GB", 1e9, COLOURS[1])
    painters = {
        "topology": ("who sends to whom, over which switches", drawing),
        "time": ("how long each planner's plan takes", time),
        "uplinks": ("what it sends over the spine", bytes_up),
    }
    tall = (where.deep + BELOW + TOP) * PIXELS / ROW
    return stack(
        f"{parameters['planner'].capitalize()}: {about}", painters, panel, heights=(max(tall, 1.0), 0.45, 0.45)
    )


def _box(made: Canvas, row: int, x: tuple[float, float], y: tuple[float, float], **style: Any) -> None:
    number = "" if row == 1 else str(row)
    shape = {"type": "rect", "xref": f"x{number}", "yref": f"y{number}", "layer": "below"}
    made.layout.setdefault("shapes", []).append(
        {**shape, "x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1], "line": {"width": 1, "color": GREY}, **style}
    )


def _label(made: Canvas, row: int, text: str, x: float, y: float, anchor: str = "center") -> None:
    number = "" if row == 1 else str(row)
    place = {"xref": f"x{number}", "yref": f"y{number}", "xanchor": anchor, "yanchor": "bottom"}
    made.note(text, x=x, y=y, font={"size": 11, "color": INK}, **place)


def _switches(made: Canvas, row: int, outcome: Outcome, where: Map) -> None:
    """The bars of leaf switches and of the spine, with what crosses the uplinks of the plan that is drawn."""
    hosts = outcome.tables["places"].group_by("leaf", maintain_order=True).agg(pl.col("host").unique().sort())
    crossing = outcome.tables["uplinks"].filter(planner=outcome.parameters["planner"])
    bytes_of = {leaf: (up, down) for leaf, up, down in crossing.select("leaf", "up_bytes", "down_bytes").iter_rows()}
    shade = {"fillcolor": "rgba(128,128,128,.10)"}
    for leaf, below in hosts.sort("leaf").iter_rows():
        ends = (where.columns[below[0]] - 0.5, where.columns[below[-1]] + 0.5)
        _box(made, row, ends, LEAF, **shade)
        text = f"L{leaf}"
        if len(hosts) <= SHOWN_LEAVES:
            up, down = bytes_of.get(leaf, (0.0, 0.0))
            text += f"<br>↑ {up / 1e9:.3g} GB<br>↓ {down / 1e9:.3g} GB"
        elif len(hosts) > WIDE and leaf % 2:
            continue
        _label(made, row, text, sum(ends) / 2, -where.deep - BELOW)
    if len(hosts) > 1:
        _box(made, row, (-0.5, max(where.columns.values()) + 0.5), SPINE, **shade)
        _label(made, row, "spine", -0.5, SPINE[1], "left")


def _groups(made: Canvas, row: int, places: pl.DataFrame, where: Map) -> None:
    for _, group in places.filter(pl.col("place") != IN_MEMORY).group_by("domain", maintain_order=True):
        spots = [where.spots[name] for name in group["name"]]
        x, ys = spots[0].x, [spot.y for spot in spots]
        _box(made, row, (x - HALF, x + HALF), (min(ys) - 0.44, max(ys) + 0.44))


def _idle(places: pl.DataFrame, where: Map) -> Iterator[Trace]:
    """Accelerators that the plan does not touch."""
    for role, symbol, size in (("spare", "square-open", where.mark), (OTHER, "square", 5)):
        part = places.filter(role=role)
        spots = [where.spots[name] for name in part["name"]]
        yield scatter(
            [spot.x for spot in spots] or [None], [spot.y for spot in spots] or [None], mode="markers", name=role,
            marker={"symbol": symbol, "size": size, "color": GREY}, text=part["name"].to_list(),
            hovertemplate="%{text}<extra>%{fullData.name}</extra>",
        )  # fmt: skip


def route(start: Spot, end: Spot, share: float, wide: bool) -> tuple[list[float], list[float]]:
    """The line from one spot to another: up beside its host, along a switch, down beside the other host.

    Parameters:
        start, end: what it joins.
        share: from 0 to 1, where within gutters and switches it runs, so that chains lie beside each other.
        wide: whether it begins at the edge of a box, and not in its middle.
    """
    low, high = LEAF if start.leaf == end.leaf else SPINE
    level = high - (high - low) * (0.15 + 0.7 * share)
    out, into = start.x + HALF + GUTTER * (0.15 + 0.75 * share), end.x - HALF - GUTTER * (0.15 + 0.75 * share)
    first = start.x + (HALF if wide else 0.0)
    xs = [first, out, out, into, into, end.x - HALF]
    return xs, [start.y, start.y, level, level, end.y, end.y]


def _chain(key: tuple[Any, ...], edges: pl.DataFrame, outcome: Outcome, where: Map) -> list[Trace]:
    """One chain: its line, and what it reaches."""
    number, index = key
    tables = outcome.tables
    lanes = outcome.parameters["planner"] == ARTIFACT
    colour = COLOURS[index % len(COLOURS)]
    count = tables["edges"]["chain"].max() + 1
    share = index / max(count - 1, 1)
    xs: list[float | None] = []
    ys: list[float | None] = []
    heads: list[Spot] = []
    for senders, members in edges.select("senders", "members").iter_rows():
        start, end = middle(senders, where), middle(members, where)
        line = route(start, end, share, wide=bool(xs) and not lanes)
        xs += [*line[0], None]
        ys += [*line[1], None]
        heads.append(end._replace(x=end.x - HALF))
    what = f"{'lane' if lanes else 'chain'} {index + 1}: {edges['senders'][0][0]}"
    what += f", round {number + 1}" if tables["edges"]["round"].max() else ""
    name = f"{'lane' if lanes else 'chain'} {index + 1}"
    thin = 1.4 if where.small else 2
    dash = DASHES[(number + index // len(COLOURS)) % len(DASHES)]
    line = scatter(
        xs, ys, mode="lines", name=what, legendgroup=f"{key}", hoverinfo="skip",
        line={"color": colour, "width": thin, "dash": dash},
    )  # fmt: skip
    live = dict(tables["places"].select("name", "live").iter_rows())
    found = [(name, row["complete_s"]) for row in edges.to_dicts() for name in row["members"]]
    targets = scatter(
        [where.spots[one].x for one, _ in found] + [head.x for head in heads],
        [where.spots[one].y for one, _ in found] + [head.y for head in heads],
        mode="markers", name=what, legendgroup=f"{key}", showlegend=False,
        marker={
            "color": colour, "opacity": 1, "line": {"width": 0},
            "symbol": ["circle" if live[one] else "square" for one, _ in found] + ["triangle-right"] * len(heads),
            "size": [where.mark] * len(found) + [where.mark] * len(heads),
        },
        text=[f"{one}: {name}, holds all after {seconds:.3g} s" for one, seconds in found] + [name] * len(heads),
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    return [line, targets]


def _gathered(edges: pl.DataFrame, where: Map) -> Trace:
    """Lanes end in different accelerators of a group, which gather the stripes over NVLink."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    columns = edges.group_by("round", "hop", maintain_order=True).agg(pl.col("members").list.first())
    for members in columns["members"]:
        spots = [where.spots[name] for name in members]
        xs += [spots[0].x, spots[0].x, None]
        ys += [min(spot.y for spot in spots), max(spot.y for spot in spots), None]
    line = {"color": INK, "width": 4}
    return scatter(xs, ys, mode="lines", name="stripes gathered over NVLink", line=line, hoverinfo="skip")


def middle(names: list[str], where: Map) -> Spot:
    """The middle of some accelerators of one group."""
    spots = [where.spots[name] for name in names]
    return spots[0]._replace(y=sum(spot.y for spot in spots) / len(spots))


def _sources(outcome: Outcome, where: Map) -> Iterator[Trace]:
    """Copies of the weights, with a letter for their role; those that are left out crossed."""
    tables = outcome.tables
    edges = tables["edges"].filter(hop=0)
    colours = {
        senders[0]: COLOURS[chain % len(COLOURS)] for senders, chain in edges.select("senders", "chain").iter_rows()
    }
    for kind, pruned in (
        ("holds the weights (P: prefill, D: decode, M: memory)", False),
        ("left out as a source", True),
    ):
        part = tables["sources"].filter(pruned=pruned)
        spots = [where.spots[name] for name in part["name"]]
        said = part.select("name", "why").iter_rows()
        yield scatter(
            [spot.x for spot in spots] or [None], [spot.y for spot in spots] or [None],
            mode="markers+text", name=kind,
            marker={
                "symbol": "diamond-open" if pruned else "diamond", "size": where.mark + (4 if where.small else 6),
                "color": LEFT_OUT if pruned else [colours.get(name, GREY) for name in part["name"]] or GREY,
                "line": {"width": 2 if pruned else 0},
            },
            text=[LETTERS[role] for role in part["role"]],
            textfont={"size": 9 if where.small else 11, "color": LEFT_OUT if pruned else "white"},
            hovertext=[f"{name}: {why}" for name, why in said], hovertemplate="%{hovertext}<extra></extra>",
        )  # fmt: skip


def _words(places: pl.DataFrame, where: Map) -> Iterator[Trace]:
    """What squares and circles mean, in the legend alone."""
    for name, symbol in (("receives, and forwards", "square"), ("end of a chain: may serve meanwhile", "circle")):
        yield scatter([None], [None], mode="markers", name=name, marker={"symbol": symbol, "color": GREY, "size": 11})
