"""Tokens per second while weights arrive, and what that is worth: λScale's Figure 8 and the studies round it."""

import polars as pl

from workbench.catalogue.lambdascale import early_serving as early
from workbench.catalogue.lambdascale import warm_start as warm
from workbench.catalogue.lambdascale.systems import LAMBDASCALE, SYSTEMS
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.figures.base import COLOURS, DASHES, GREY, SYMBOLS, WORDS, Palette, curve, log_axis, published_marks
from workbench.figures.blocks import landing_grid
from workbench.figures.canvas import Canvas, Trace, scatter
from workbench.figures.panels import Painter, stack

OF_SOURCES = {1: DASHES[0], 2: DASHES[1], 4: DASHES[2]}
COLOURS_OF_K = {1: COLOURS[0], 2: COLOURS[5], 4: COLOURS[7]}


def steps(table: pl.DataFrame, x: str, y: str, name: str, colour: str, **settings) -> Trace:
    """A staircase: each value holds until the next."""
    line = {"color": colour, "width": 2, "shape": "hv", **settings.pop("line", {})}
    return scatter(table[x].to_list(), table[y].to_list(), mode="lines", name=name, line=line, **settings)


def scaling_out(outcome: Outcome, panel: str | None = None) -> Canvas:
    """λScale Figure 8: tokens per second over time by system and number of replicas; first tokens against k."""
    palette = Palette(SYSTEMS)

    def of_model(label: str) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            table = outcome.tables["rates"].filter(pl.col("model") == label)
            times = outcome.tables["starts"].filter(pl.col("model") == label)
            first, last = times["first_s"].min() * 0.6, times["last_s"].max() * 1.3
            lead = table["backend"][0]
            for (backend, system, k), part in table.group_by("backend", "system", "sources", maintain_order=True):
                ours = system == LAMBDASCALE
                if not ours and (k > 1 or backend != lead):
                    continue  # they do not move with k, and the first backend tells enough of them
                name = f"{system}, k = {k} ({WORDS[backend]})" if ours else f"{system} ({WORDS[backend]})"
                colour = COLOURS_OF_K[k] if ours else palette.colour(system)
                if backend == lead:
                    end = part.tail(1).with_columns(time_s=pl.lit(last))
                    part = pl.concat([part.with_columns(pl.col("time_s").clip(lower_bound=first)), end])
                    dash = OF_SOURCES[k] if ours else "solid"
                    trace = steps(part, "time_s", "tokens_per_s", name, colour, line={"dash": dash})
                else:
                    mark = {"symbol": SYMBOLS[backend], "color": colour, "size": 6}
                    x, y = part["time_s"].to_list(), part["tokens_per_s"].to_list()
                    trace = scatter(x, y, mode="markers", name=name, marker=mark)
                made.add({**trace, "showlegend": label == "7B" or panel == "large"}, row=row)
            made.x(row, title="seconds since the scale-out began")
            made.y(row, title="tokens/s of the new nodes", rangemode="tozero")
            log_axis(made, "x", row=row, span=(first, last))

        return paint

    def starts(made: Canvas, row: int) -> None:
        table = outcome.tables["starts"].filter(pl.col("model") == "7B")
        for system in SYSTEMS:
            for trace in curve(table.filter(pl.col("system") == system), "sources", "first_s", system, palette):
                made.add({**trace, "showlegend": panel == "starts"}, row=row)
        known = {f"first tokens, {system} 7B": system for system in SYSTEMS[:3:2]}
        places = {f"k={k}": k for k in OF_SOURCES}
        made.add(*published_marks(outcome, palette, series=known, x=places), row=row)
        made.x(row, title="replicas at the start (k)", tickvals=list(OF_SOURCES)).y(row, title="first tokens, s")
        log_axis(made, "y", row=row)

    parameters = outcome.parameters
    painters = {
        "small": (f"7B on {parameters['nodes']} nodes", of_model("7B")),
        "large": (f"70B on {parameters['large_nodes']} nodes of 4 GPUs", of_model("70B")),
        "starts": ("first tokens of 7B", starts),
    }
    return stack("Tokens per second while scaling out", painters, panel)


def warm_start(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Blocks landing from host memory, joint and full copies by number of nodes, and tokens per second meanwhile."""
    tables, parameters = outcome.tables, outcome.parameters
    palette = Palette((warm.JOINT, warm.COMPLETE, warm.PIPED, warm.WAITING))

    def loads(made: Canvas, row: int) -> None:
        table = tables["loads"].sort("node", "block")
        nodes = table["node"].n_unique()
        labels = [f"node {node + 1}" for node in range(nodes)]
        seconds = table["time_s"].to_numpy().reshape(nodes, -1).round(3)
        landing_grid(made, row, seconds, labels, float(seconds.max()), unit="s")

    def milestones(made: Canvas, row: int) -> None:
        table = tables["milestones"]
        made.add(*curve(table, "nodes", "joint_s", warm.JOINT, palette), row=row)
        made.add(*curve(table, "nodes", "complete_s", warm.COMPLETE, palette), row=row)
        known = {warm.JOINT: warm.JOINT, "both nodes complete": warm.COMPLETE}
        made.add(*published_marks(outcome, palette, series=known, x={"2 nodes": 2}), row=row)
        made.x(row, title="nodes that load").y(row, title="seconds", rangemode="tozero")

    def rates(made: Canvas, row: int) -> None:
        for how in (warm.PIPED, warm.WAITING):
            part = tables["rates"].filter(pl.col("how") == how)
            made.add(steps(part, "time_s", "tokens_per_s", how, palette.colour(how)), row=row)
        made.x(row, title="seconds").y(row, title="tokens/s", rangemode="tozero")

    painters = {
        "loads": (f"{parameters['nodes']} nodes, seconds at which a block is there", loads),
        "milestones": ("copies by number of nodes", milestones),
        "rates": (f"tokens per second of {parameters['nodes']} nodes", rates),
    }
    return stack(f"{name_of(parameters['model'])} from host memory", painters, panel)


def mode_switch(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds to recompute and to move KV against tokens."""
    table = outcome.tables["times"]

    def paint(made: Canvas, row: int) -> None:
        labels = table["model"].unique(maintain_order=True).to_list()
        for (backend, label), part in table.group_by("backend", "model", maintain_order=True):
            colour = COLOURS[labels.index(label)]
            for column, words, dash in (("recompute_s", "recompute", "solid"), ("move_s", "move", "dot")):
                x, y = part["tokens"].to_list(), (part[column] * 1e3).to_list()
                if backend == "analytic":
                    line = {"color": colour, "dash": dash, "width": 2}
                    made.add(scatter(x, y, mode="lines", name=f"{label}: {words}", line=line), row=row)
                else:
                    mark = {"symbol": SYMBOLS[backend], "size": 11, "color": colour, "line": {"width": 2}}
                    name = f"{label}: {words} ({WORDS[backend]})"
                    made.add(scatter(x, y, mode="markers", name=name, marker=mark), row=row)
        made.line(x=outcome.parameters["tokens"], row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="tokens so far").y(row, title="ms")
        log_axis(made, "x", "y", row=row)

    nodes = outcome.parameters["nodes"]
    return stack("KV at the switch", {"times": (f"from a pipeline of {nodes} nodes to one", paint)}, None)


def early_serving(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Two staircases, what they make, and what early serving gains against the overhead of a dispatch."""
    tables, parameters = outcome.tables, outcome.parameters
    palette = Palette((early.EARLY, early.WAITING))

    def over_time(column: str, title: str, **shape) -> Painter:
        def paint(made: Canvas, row: int) -> None:
            for (backend, how), part in tables["rates"].group_by("backend", "how", maintain_order=True):
                if backend == "analytic":
                    trace = steps(part, "time_s", column, f"{how} ({WORDS[backend]})", palette.colour(how), line=shape)
                else:
                    mark = {"symbol": SYMBOLS[backend], "color": palette.colour(how), "size": 6}
                    trace = scatter(
                        part["time_s"].to_list(), part[column].to_list(), mode="markers", marker=mark,
                        name=f"{how} ({WORDS[backend]})",
                    )  # fmt: skip
                made.add({**trace, "showlegend": column == "tokens_per_s" or panel is not None}, row=row)
            made.x(row, title="seconds since the scale-out began").y(row, title=title, rangemode="tozero")

        return paint

    def gain(made: Canvas, row: int) -> None:
        table = tables["gain"]
        x, y = (table["overhead_s"] * 1e3).to_list(), table["gained"].to_list()
        line = {"color": COLOURS[2], "width": 2}
        made.add(scatter(x, y, mode="lines", name="tokens gained by serving early", line=line), row=row)
        made.line(y=0, row=row, color=GREY, width=1)
        made.line(x=parameters["overhead_s"] * 1e3, row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="overhead of a dispatch, ms (dotted: chosen)").y(row, title="tokens")
        log_axis(made, "x", row=row)

    painters = {
        "rates": ("tokens per second", over_time("tokens_per_s", "tokens/s")),
        "made": ("tokens made", over_time("made", "tokens", shape="linear")),
        "gain": ("what serving early gains", gain),
    }
    return stack(f"{parameters['model']}: serve early or wait, k = {tables['gain']['sources'][0]}", painters, panel)
