"""Aegaeon by formula: turns, loads, stages of a switch, shapes of caches, deadlines, markets and fleets."""

from textwrap import wrap

import polars as pl

from workbench.catalogue.aegaeon import fig1, fig3, fig10, fig18
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import (
    COLOURS,
    GREY,
    SYMBOLS,
    WORDS,
    Palette,
    figure,
    log_axis,
    published_marks,
)
from workbench.figures.canvas import Canvas, Trace, bar, scatter
from workbench.figures.panels import stack


def _line(x: list, y: list, name: str, palette: Palette, key: str = "", **settings: object) -> Trace:
    key = key or name
    line = {"color": palette.colour(key), "dash": palette.dash(key), "width": 2}
    return scatter(x, y, mode="lines", name=name, line=line, legendgroup=key, **settings)


def spans(rows: list[tuple[str, float, float]], name: str, colour: str, **settings: object) -> Trace:
    """Horizontal bars: (row, start, end)."""
    return {
        "type": "bar",
        "orientation": "h",
        "y": [row for row, _, _ in rows],
        "x": [end - begin for _, begin, end in rows],
        "base": [begin for _, begin, _ in rows],
        "name": name,
        "marker": {"color": colour},
        **settings,
    }


def quota(outcome: Outcome, panel: str | None = None) -> Canvas:
    """The worked example: turns of a round, and tokens that a reader of the first batch has in hand."""
    paces = outcome.tables["paces"]
    rounds, lead = outcome.tables.get("rounds"), outcome.tables.get("lead")
    caps = paces["cap_s"].unique(maintain_order=True).to_list()
    names = {cap: f"cap {cap:g} s" for cap in caps}
    palette = Palette(names.values())

    def turns(made: Canvas, row: int) -> None:
        for cap in caps:
            part = rounds.filter(pl.col("cap_s") == cap)
            rows = [
                (f"batch {batch + 1}, {names[cap]}", begin, begin + quota_s)
                for batch, begin, quota_s in part.select("batch", "begin_s", "quota_s").iter_rows()
            ]
            made.add(spans(rows, names[cap], palette.colour(names[cap]), legendgroup=names[cap]), row=row)
        made.x(row, title="seconds from the begin of a round; the gaps are switches", rangemode="tozero")
        made.y(row, autorange="reversed")

    def buffer(made: Canvas, row: int) -> None:
        for cap in caps:
            part = lead.filter(pl.col("cap_s") == cap)
            x, y = part["time_s"].to_list(), part["tokens"].to_list()
            made.add(_line(x, y, names[cap], palette, showlegend=panel == "buffer"), row=row)
        made.line(y=0, row=row, color=GREY, width=1)
        made.x(row, title="seconds").y(row, title="tokens in hand")

    def pace(made: Canvas, row: int) -> None:
        for cap in caps:
            for (backend,), part in paces.filter(pl.col("cap_s") == cap).group_by("backend", maintain_order=True):
                style = {"color": palette.colour(names[cap]), "symbol": SYMBOLS[backend], "size": 10}
                made.add(
                    scatter(
                        [f"batch {batch + 1}" for batch in part["batch"]], part["pace"].to_list(), mode="markers",
                        name=f"{names[cap]} ({WORDS[backend]})", marker=style, legendgroup=names[cap],
                    ),
                    row=row,
                )  # fmt: skip
        made.line(y=1, row=row, color=GREY, width=1)
        made.y(row, title="pace: above 1 readers wait", rangemode="tozero")

    painters = {"pace": ("time between tokens over the promised one", pace)}
    if rounds is not None:
        painters = {
            "turns": ("a round", turns),
            "buffer": ("what came less what was read: below 0 the reader waits", buffer),
            **painters,
        }
    return stack("Turns of batches", painters, panel)


def loads(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds against bytes by way of reckoning."""
    table = outcome.tables["curves"]
    ways = table["way"].unique(maintain_order=True).to_list()
    palette = Palette(ways)
    made = figure("Loading a model from host memory", "bytes", "seconds")
    for way in ways:
        part = table.filter(pl.col("way") == way)
        made.add(_line(part["bytes"].to_list(), part["seconds"].to_list(), f"{way} (formula)", palette, way))
    known = {"least time to load 13B in BF16": ways[0]}
    places = {"26 GB over 32 GB/s": 26e9}
    made.add(*published_marks(outcome, palette, series=known, x=places))
    return log_axis(made, "x", "y")


def shapes(outcome: Outcome, _: str | None = None) -> Canvas:
    """KV bytes of a token by model."""
    table = outcome.tables["shapes"].sort("kv_bytes_per_token")
    made = figure("KV cache of a token", "", "KiB per token")
    text = [
        f"{row['layers']} layers, {row['kv_heads']} KV heads of {row['head_dim']}, {row['slab_tokens']:,} tokens a slab"
        for row in table.to_dicts()
    ]
    made.add(
        bar(
            table["model"].to_list(),
            (table["kv_bytes_per_token"] / 1024).to_list(),
            name="from the model's shape (formula)",
            marker={"color": COLOURS[0]},
            text=text,
            textposition="none",
            hovertemplate="%{x}: %{y:,.0f} KiB<br>%{text}<extra></extra>",
        )
    )
    for trace in published_marks(outcome, Palette(), series={"KV bytes per token": "KV"}, on_bars=True):
        made.add({**trace, "y": [value / 1024 for value in trace["y"]]})
    return log_axis(made, "y")


def fleets(outcome: Outcome, _: str | None = None) -> Canvas:
    """GPUs of three fleets."""
    table = outcome.tables["fleets"]
    made = figure("GPUs for the same models", "", "GPUs")
    text = [f"{value:.1f} instances each" for value in table["instances_each"]]
    made.add(
        bar(table["fleet"].to_list(), table["gpus"].to_list(), name="GPUs", text=text, marker={"color": COLOURS[0]})
    )
    return made.set(showlegend=False)


def staircase(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Tokens produced against the staircase of deadlines; attainment by definition."""
    table, stalls = outcome.tables["tokens"], outcome.tables["stalls"]
    palette = Palette((fig3.EARLY, fig3.LATE, "deadlines"))

    def tokens(made: Canvas, row: int) -> None:
        due = table.filter(pl.col("case") == fig3.EARLY)
        made.add(_step(due["due_s"].to_list(), due["token"].to_list(), "deadlines", palette, "dot"), row=row)
        for case in (fig3.EARLY, fig3.LATE):
            part = table.filter(pl.col("case") == case)
            made.add(_step(part["time_s"].to_list(), part["token"].to_list(), case, palette, "solid"), row=row)
        made.x(row, title="seconds from the arrival", rangemode="tozero").y(row, title="tokens", rangemode="tozero")

    def definitions(made: Canvas, row: int) -> None:
        for case in stalls["case"].unique(maintain_order=True):
            part = stalls.filter(pl.col("case") == case)
            made.add(
                bar(part["definition"].to_list(), part["attainment"].to_list(), name=case,
                    marker={"color": palette.colour(case)}, showlegend=panel == "definitions" or case not in
                    (fig3.EARLY, fig3.LATE)),
                row=row,
            )  # fmt: skip
        made.y(row, title="attainment", range=[0, 1.05])

    painters = {
        "tokens": ("tokens that came, and when they were due", tokens),
        "definitions": ("what each definition makes of it", definitions),
    }
    return stack("When is a token late?", painters, panel).set(barmode="group")


def _step(x: list, y: list, name: str, palette: Palette, dash: str) -> Trace:
    line = {"color": palette.colour(name), "dash": dash, "width": 2, "shape": "hv"}
    return scatter(x, y, mode="lines", name=name, line=line)


def start(outcome: Outcome, _: str | None = None) -> Canvas:
    """Stages of an engine's start: as it is, with reuse, with a better load; of a small one that was really started."""
    table = outcome.tables["bars"]
    names = {
        engine: "<br>".join([*wrap(engine, 18), f"({WORDS[backend]})"])
        for engine, backend in table.select("engine", "backend").unique().iter_rows()
    }
    return _stacked(table.with_columns(pl.col("engine").replace_strict(names)), "engine", "Starting an engine")


def waterfall(outcome: Outcome, _: str | None = None) -> Canvas:
    """Stages of a switch for T0 to T3."""
    return _stacked(outcome.tables["stages"], "optimisation", "A switch after each optimisation")


def _stacked(table: pl.DataFrame, over: str, title: str) -> Canvas:
    stages = table["stage"].unique(maintain_order=True).to_list()
    palette, places = Palette(stages), table[over].unique(maintain_order=True).to_list()
    made = figure(title, "", "seconds")
    for stage in stages:
        seconds = dict(table.filter(pl.col("stage") == stage).select(over, "seconds").iter_rows())
        heights = [seconds.get(place, 0.0) for place in places]
        made.add(bar(places, heights, name=stage, marker={"color": palette.colour(stage)}))
    for place in places:
        total = float(table.filter(pl.col(over) == place)["seconds"].sum())
        made.note(f"{total:.3g} s", x=place, y=total, yanchor="bottom", font={"size": 12})
    return made.set(barmode="stack")


def streams(outcome: Outcome, _: str | None = None) -> Canvas:
    """When each stream is busy in a switch, one by one and side by side."""
    table = outcome.tables["streams"]
    palette, made = Palette(fig10.STREAMS), figure("Streams of a switch", "seconds from the last step", "")
    for stream in fig10.STREAMS:
        part = table.filter(pl.col("stream") == stream)
        rows = [
            (f"{stream}: {way}", begin, end) for way, begin, end in part.select("way", "start_s", "end_s").iter_rows()
        ]
        made.add(spans(rows, stream, palette.colour(stream)))
    order = [f"{stream}: {way}" for way in (fig10.ONE_BY_ONE, fig10.BESIDE) for stream in fig10.STREAMS]
    return made.y(autorange="reversed", categoryorder="array", categoryarray=order).x(rangemode="tozero")


def tail(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Aegaeon Figure 1: cumulative share of requests by share of models; a hot model's rate beside what it reserved."""
    table, bursts, parameters = outcome.tables.get("shares"), outcome.tables.get("bursts"), outcome.parameters
    palette = Palette(fig1.SHAPES)

    def shares(made: Canvas, row: int) -> None:
        for shape in fig1.SHAPES if table is not None else ():
            part = table.filter((pl.col("shape") == shape) & (pl.col("replication") == 0)).sort("top_share")
            x, y = (part["top_share"] * 100).to_list(), (part["request_share"] * 100).to_list()
            made.add(_line(x, y, f"{shape} (formula)", palette, shape), row=row)
        point = {"symbol": "diamond-open", "size": 12, "color": COLOURS[4], "line": {"width": 2}}
        x, y = 100 * (1 - parameters["tail_models"]), 100 * (1 - parameters["tail_requests"])
        made.add(scatter([x], [y], mode="markers", name="the tail as set", marker=point), row=row)
        made.x(row, title="most popular models, % of all").y(row, title="their requests, % of all")
        log_axis(made, "x", row=row)

    def over_time(made: Canvas, row: int) -> None:
        if bursts is not None:
            part = bursts.filter(pl.col("replication") == 0)
            hours = part["hour"].to_list()
            line = {"color": COLOURS[0], "width": 1.5}
            made.add(scatter(hours, part["rate_per_s"].to_list(), mode="lines", name="requests (one path)", line=line),
                     row=row)  # fmt: skip
            made.line(y=float(part["reserved_per_s"][0]), row=row, color=COLOURS[4], dash="dash", width=2)
        made.x(row, title="hours").y(row, title="requests/s (dashed: reserved)", rangemode="tozero")

    painters = {
        "shares": (f"{parameters['models']} models", shares),
        "bursts": ("a hot model", over_time),
    }
    return stack("A market of models", painters, panel)


def days(outcome: Outcome, _: str | None = None) -> Canvas:
    """Aegaeon Figure 18: utilisation hour by hour, synthetic."""
    table = outcome.tables["hours"].filter(pl.col("replication") == 0)
    palette, made = Palette(fig18.FLEETS), figure("Share of busy GPUs (synthetic)", "hour", "% of the GPUs")
    for fleet in fig18.FLEETS:
        part = table.filter(pl.col("fleet") == fleet)
        x, y = part["hour"].to_list(), (part["utilisation"] * 100).to_list()
        made.add(_line(x, y, f"{fleet} (synthetic)", palette, fleet))
    return made.y(range=[0, 100])
