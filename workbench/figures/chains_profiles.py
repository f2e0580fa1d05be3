"""What a job spends on a server: computing by blocks and tokens, and under way."""

import polars as pl

from workbench.catalogue.chains import communication_profile, compute_profile
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import SYMBOLS, WORDS, Palette, curve
from workbench.figures.canvas import Canvas, scatter
from workbench.figures.panels import Painter, stack


def compute(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds of a job on a server against its blocks, the tokens in and the tokens out, one panel each; and measured
    jobs against the linear form."""
    parameters = outcome.parameters
    kept = {
        "blocks": parameters["blocks"],
        "tokens in": parameters["tokens_in"],
        "tokens out": parameters["tokens_out"],
    }
    title = "Seconds of a job on a server"
    if "curves" not in outcome.tables:
        return stack(title, _measured(outcome), panel)
    return stack(title, _axes(outcome, compute_profile.AXES, kept, panel) | _measured(outcome), panel)


def communication(outcome: Outcome, panel: str | None = None) -> Canvas:
    """Seconds under way for one server against the tokens out and in, one panel each."""
    parameters = outcome.parameters
    kept = {"tokens in": parameters["tokens_in"], "tokens out": parameters["tokens_out"]}
    return stack("Seconds under way, one server", _axes(outcome, communication_profile.AXES, kept, panel), panel)


def _measured(outcome: Outcome) -> dict[str, tuple[str, Painter]]:
    """The panel of measured jobs against the seconds of the fitted form; none where nothing was measured."""
    if (table := outcome.tables.get("jobs")) is None:
        return {}
    kinds = {f"along {axis}": axis for axis in compute_profile.AXES} | {"not fitted": compute_profile.LEFT_OUT}
    palette = Palette(list(kinds))

    def paint(made: Canvas, row: int) -> None:
        end = 1.05 * max(table["seconds"].max(), table["fitted_s"].max())
        line = {"color": palette.colour("not fitted"), "dash": "dot", "width": 1.2}
        made.add(scatter([0, end], [0, end], mode="lines", line=line, name="as the linear form has it"), row=row)
        for (backend,), part in table.group_by("backend", maintain_order=True):
            for name, axis in kinds.items():
                seen = part.filter(pl.col("axis") == axis)
                size = 12 if axis == compute_profile.LEFT_OUT else 8
                mark = {"color": palette.colour(name), "symbol": SYMBOLS[backend], "size": size, "line": {"width": 2}}
                x, y = seen["fitted_s"].to_list(), seen["seconds"].to_list()
                made.add(scatter(x, y, mode="markers", marker=mark, name=f"{name} ({WORDS[backend]})"), row=row)
        made.x(row, title="τc + m (t_o + t_I n_in + t_O (n_out - 1)), fitted, s", rangemode="tozero")
        made.y(row, title="measured, s", rangemode="tozero")

    return {"measured": ("jobs in a small transformer on this machine", paint)}


def _axes(
    outcome: Outcome, axes: tuple[str, ...], kept: dict[str, int], panel: str | None
) -> dict[str, tuple[str, Painter]]:
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

    return {axis: (fixed(axis), painter(axis, axis == axes[0])) for axis in axes}
