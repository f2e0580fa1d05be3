"""What a job spends on a server: computing by blocks and tokens, and under way."""

import polars as pl

from workbench.catalogue.chains import communication_profile, compute_profile
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import Palette, curve
from workbench.figures.canvas import Canvas
from workbench.figures.panels import stack


def compute(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds of a job on a server against its blocks, the tokens in and the tokens out, one panel each."""
    parameters = outcome.parameters
    kept = {
        "blocks": parameters["blocks"],
        "tokens in": parameters["tokens_in"],
        "tokens out": parameters["tokens_out"],
    }
    return _stacked(outcome, "Seconds of a job on a server", compute_profile.AXES, kept, panel)


def communication(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds under way for one server against the tokens out and in, one panel each."""
    parameters = outcome.parameters
    kept = {"tokens in": parameters["tokens_in"], "tokens out": parameters["tokens_out"]}
    return _stacked(outcome, "Seconds under way, one server", communication_profile.AXES, kept, panel)


def _stacked(outcome: Outcome, title: str, axes: tuple[str, ...], kept: dict[str, int], panel: str | None) -> Canvas:
    table = outcome.tables["curves"]
    palette = Palette(table["server"].unique(maintain_order=True).to_list())

    def painter(axis: str, first: bool):
        def paint(made: Canvas, row: int) -> None:
            part = table.filter(pl.col("axis") == axis)
            for server in part["server"].unique(maintain_order=True):
                for trace in curve(part.filter(pl.col("server") == server), "value", "seconds", server, palette):
                    made.add({**trace, "showlegend": first or panel is not None}, row=row)
            made.x(row, title=axis, rangemode="tozero").y(row, title="seconds", rangemode="tozero")

        return paint

    def fixed(axis: str) -> str:
        return ", ".join(f"{value:,} {name}" for name, value in kept.items() if name != axis)

    return stack(title, {axis: (fixed(axis), painter(axis, axis == axes[0])) for axis in axes}, panel)
