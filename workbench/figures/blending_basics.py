"""BlendServe's ideas: lengths and densities, the memory split, a small tree, overlap and balance."""

import polars as pl

from workbench.catalogue.blendserve import fig2, fig6
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.parameters import name_of
from workbench.figures.base import GREY, Palette, figure, log_axis, published_marks
from workbench.figures.blending import first
from workbench.figures.canvas import Canvas, scatter
from workbench.figures.panels import stack


def sources(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Figure 2: how long prompts and outputs of each source are, and their densities beside the printed ones."""
    lengths, densities = first(outcome.tables["lengths"]), first(outcome.tables["densities"]).sort("density")
    names = lengths["source"].unique(maintain_order=True).to_list()
    palette = Palette(names)

    def histogram(side: str):
        def paint(made: Canvas, row: int) -> None:
            for name in names:
                part = lengths.filter((pl.col("source") == name) & (pl.col("side") == side))
                made.add(
                    scatter(
                        part["tokens"].to_list(), part["share"].to_list(), name=name, mode="lines",
                        line={"color": palette.colour(name), "dash": palette.dash(name), "shape": "hv", "width": 2},
                        legendgroup=name, showlegend=row == 1,
                    ),
                    row=row,
                )  # fmt: skip
            made.x(row, title=f"{side} tokens").y(row, title="share of requests")
            log_axis(made, "x", row=row)

        return paint

    def density(made: Canvas, row: int) -> None:
        marks = [palette.colour(name) for name in densities["source"]]
        made.add(
            scatter(
                densities["source"].to_list(), densities["density"].to_list(), mode="markers", name="ours",
                marker={"size": 11, "color": marks, "symbol": "circle"},
            ),
            row=row,
        )  # fmt: skip
        made.add(*published_marks(outcome, Palette(), series={fig2.DENSITY: fig2.DENSITY}), row=row)
        made.line(y=1.0, row=row, color=GREY, dash="dot", width=1)
        made.y(row, title="compute density")
        log_axis(made, "y", row=row)

    painters = {
        "prompts": ("prompts", histogram("prompt")),
        "outputs": ("outputs", histogram("output")),
        "densities": ("density: above 1 computes, below 1 reads memory", density),
    }
    return stack("Lengths and densities of the sources", painters, panel)


def sharing_and_density(outcome: Outcome, _: str | None = None) -> Canvas:
    """Table 4: each source by sharing ratio and density, ours and printed."""
    table = first(outcome.tables["sources"])
    palette = Palette(table["source"].to_list())
    made = figure("Sharing ratio and density of the sources", "sharing ratio", "compute density")
    printed = {(row["series"], row["x"]): row["value"] for row in outcome.published.iter_rows(named=True)}
    for row in table.iter_rows(named=True):
        name, colour = row["source"], palette.colour(row["source"])
        made.add(
            scatter(
                [row["sharing"]], [row["density"]], mode="markers", name=name, legendgroup=name,
                marker={"size": 12, "color": colour},
            )
        )  # fmt: skip
        if (tab4_point := printed.get(("prefix sharing ratio", name))) is not None:
            look = {"symbol": "diamond-open", "size": 14, "line": {"width": 2}}
            made.add(
                scatter(
                    [tab4_point], [printed["compute density", name]], mode="markers", name=f"{name} (published)",
                    legendgroup=name, showlegend=False,
                    marker={**look, "color": colour if outcome.comparable else GREY},
                )
            )  # fmt: skip
    made.line(y=1.0, color=GREY, dash="dot", width=1)
    return log_axis(made, "y").x(tickformat=".0%", rangemode="tozero")


def density_by_output(outcome: Outcome, _: str | None = None) -> Canvas:
    """Figure 4: density against output length by prompt, with four sources marked."""
    curves, marks = outcome.tables["curves"], outcome.tables["marks"]
    prompts = sorted(curves["prompt_tokens"].unique())
    palette = Palette(map(str, prompts))
    made = figure("Density against output length", "output tokens", "compute density")
    for prompt in prompts:
        part = curves.filter(pl.col("prompt_tokens") == prompt)
        width = 3 if prompt == outcome.parameters["prompt"] else 2
        made.add(
            scatter(
                part["output_tokens"].to_list(), part["density"].to_list(), mode="lines", name=f"prompt of {prompt:,}",
                line={"color": palette.colour(str(prompt)), "dash": palette.dash(str(prompt)), "width": width},
            )
        )  # fmt: skip
    made.add(
        scatter(
            marks["output_tokens"].to_list(), marks["density"].to_list(), mode="markers+text",
            name="sources at their means", text=marks["source"].to_list(), textposition="top right",
            marker={"size": 9, "color": GREY, "symbol": "star"},
        )
    )  # fmt: skip
    made.line(y=1.0, color=GREY, dash="dot", width=1)
    return log_axis(made, "x", "y")


def operations(outcome: Outcome, _: str | None = None) -> Canvas:
    """Table 1: times of both operations by batch, ours as lines, printed as diamonds."""
    table = outcome.tables["operations"]
    palette = Palette()
    made = figure("Times of a layer's operations", "requests (1,024 tokens each)", "seconds")
    known = {}
    for (operation, how), part in table.group_by("operation", "how", maintain_order=True):
        name = f"{operation}, {how}"
        known[name] = name
        made.add(
            scatter(
                part["batch"].to_list(), part["seconds"].to_list(), mode="lines+markers",
                name=name if how == "estimated" else f"{operation}, kernel sweeps",
                line={"color": palette.colour(name), "dash": palette.dash(name), "width": 2},
            )
        )  # fmt: skip
    made.add(*published_marks(outcome, palette, series=known))
    return made.y(rangemode="tozero").x(tickvals=sorted(table["batch"].unique()))


def five(outcome: Outcome, _: str | None = None) -> Canvas:
    """Figure 5: the five requests in three orders, coloured by their group; a request that moved is ringed."""
    table = outcome.tables["order"]
    stages = table["stage"].unique(maintain_order=True).to_list()
    palette = Palette(["group 1", "group 2"])
    made = figure("Five requests: down the tree, sorted, split", "place", "")
    for group in (1, 2):
        part = table.filter(pl.col("group") == group)
        made.add(
            scatter(
                part["place"].to_list(), part["stage"].to_list(), mode="markers+text", name=f"group {group}",
                text=part["request"].cast(pl.String).to_list(), textfont={"color": "white", "size": 13},
                marker={
                    "size": 30, "color": palette.colour(f"group {group}"), "symbol": "circle",
                    "line": {"width": [4 if moved else 0 for moved in part["moved"]], "color": "#d1495b"},
                },
                customdata=part["density"].to_list(),
                hovertemplate="request %{text}: density %{customdata:.2f}<extra></extra>",
            )
        )  # fmt: skip
    return made.x(tickvals=[1, 2, 3, 4, 5], range=[0.5, 5.5]).y(categoryorder="array", categoryarray=stages[::-1])


def split(outcome: Outcome, _: str | None = None) -> Canvas:
    """Figure 6: both shares against the density of all requests, the chosen one marked."""
    curve, chosen = outcome.tables["curve"], outcome.tables["split"].row(0, named=True)
    palette = Palette(["left", "right"])
    root = outcome.parameters["root"]
    made = figure("KV memory of both ends", "density of all requests", "bytes")
    for side in ("left", "right"):
        part = curve.filter(pl.col("side") == side)
        label = f"{side} end (density {outcome.parameters[side]:g})"
        made.add(
            scatter(
                part["root"].to_list(), part["bytes"].to_list(), mode="lines", name=label,
                line={"color": palette.colour(side), "dash": palette.dash(side), "width": 2},
            ),
            scatter(
                [root], [chosen[f"{side}_bytes"]], mode="markers+text", name=f"{side}, chosen", showlegend=False,
                text=[f"{chosen[f'{side}_bytes'] / 1e9:.2f} GB"], textposition="top right",
                marker={"size": 11, "color": palette.colour(side)},
            ),
        )  # fmt: skip
    known = {f"memory of the {side} side, as printed": side for side in ("left", "right")}
    made.add(*published_marks(outcome, palette, series=known, x={fig6.PLACE: fig6.PRINTED[2]}))
    return log_axis(made, "x").y(rangemode="tozero")


def overlap(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Measured rates of products and attention beside each other with their hull; the gain that overlapping allows."""
    rates, gain, largest = (outcome.tables[name] for name in ("rates", "gain", "largest"))
    palette = Palette(["measured", "hull", *gain["overlap"].unique(maintain_order=True)])

    def shares(made: Canvas, row: int) -> None:
        for kind in ("measured", "hull"):
            part = rates.filter(pl.col("kind") == kind)
            made.add(
                scatter(
                    part["products"].to_list(), part["attention"].to_list(), name=kind,
                    mode="markers" if kind == "measured" else "lines",
                    marker={"symbol": "diamond-open", "size": 11, "color": palette.colour(kind), "line": {"width": 2}},
                    line={"color": palette.colour(kind), "width": 2},
                ),
                row=row,
            )  # fmt: skip
        made.x(row, title="rate of matrix products", range=[0, 1.05]).y(row, title="rate of attention", range=[0, 1.05])

    def gains(made: Canvas, row: int) -> None:
        for (name,), part in gain.group_by("overlap", maintain_order=True):
            made.add(
                scatter(
                    part["density"].to_list(), part["gain"].to_list(), mode="lines", name=str(name),
                    line={"color": palette.colour(str(name)), "dash": palette.dash(str(name)), "width": 2},
                ),
                row=row,
            )  # fmt: skip
        made.add(
            scatter(
                largest["density"].to_list(), largest["gain"].to_list(), mode="markers+text", name="largest gain",
                text=[f"{value:.2f}" for value in largest["gain"]], textposition="top center",
                marker={"symbol": "star", "size": 11, "color": GREY},
            ),
            row=row,
        )  # fmt: skip
        made.x(row, title="density of all requests").y(row, title="gain over no overlap", range=[1, 2.2])
        log_axis(made, "x", row=row)

    painters = {"rates": ("rates reached beside each other", shares), "gain": ("the most that any order gains", gains)}
    return stack("What overlapping can bring", painters, panel)


def batches(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Balanced dense batch by density and accelerator; idle shares of a step by its batch."""
    lines, idle, parameters = outcome.tables["lines"], outcome.tables["idle"], outcome.parameters
    names = lines["accelerator"].unique(maintain_order=True).to_list()
    palette, kinds = Palette(names), Palette(["compute", "memory"])

    def batch(made: Canvas, row: int) -> None:
        for name in names:
            part = lines.filter(pl.col("accelerator") == name)
            made.add(
                scatter(
                    part["density"].to_list(), part["tokens"].to_list(), mode="lines", name=name,
                    line={"color": palette.colour(name), "dash": palette.dash(name), "width": 2},
                ),
                row=row,
            )  # fmt: skip
        made.line(x=parameters["density"], row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="density of the requests").y(row, title="tokens", rangemode="tozero")

    def left(made: Canvas, row: int) -> None:
        for kind in ("compute", "memory"):
            made.add(
                scatter(
                    idle["batch"].to_list(), idle[f"idle_{kind}"].to_list(), mode="lines", name=f"{kind} idle",
                    line={"color": kinds.colour(kind), "dash": kinds.dash(kind), "width": 2}, fill="tozeroy",
                ),
                row=row,
            )  # fmt: skip
        made.line(x=parameters["batch"], row=row, color=GREY, dash="dot", width=1)
        made.x(row, title="dense batch, tokens").y(row, title="idle share of a step", tickformat=".0%", range=[0, 1])

    about = f"{name_of(parameters['model'])} on {name_of(parameters['accelerator'])}"
    painters = {
        "batch": ("balanced dense batch", batch),
        "idle": (f"a full pool and a fixed batch: {about}", left),
    }
    return stack("How large is a balanced batch?", painters, panel)
