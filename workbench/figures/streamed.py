"""Serving while the weights arrive, by real processes: first tokens by formula and for real, and tokens over time."""

from workbench.catalogue.lambdascale.streamed_start import MODES
from workbench.catalogue.outcome import Outcome
from workbench.figures.base import SYMBOLS, WORDS, Palette, published_marks
from workbench.figures.canvas import Canvas, bar, scatter
from workbench.figures.panels import stack


def start(outcome: Outcome, _: str | None = None) -> Canvas:
    """Seconds to the first token against replicas, formula as bars; tokens made over time by the real run."""
    tables = outcome.tables
    palette = Palette(tuple(MODES))

    def first(made: Canvas, row: int) -> None:
        for (backend, mode), part in tables["first"].group_by("backend", "mode", maintain_order=True):
            places = [f"k = {k}" for k in part["sources"]]
            common = {"name": f"{mode} ({WORDS[backend]})", "legendgroup": mode, "offsetgroup": mode}
            if backend == "analytic":
                mark = {"color": palette.colour(mode), "opacity": 0.75}
                made.add(bar(places, part["first_token_s"].to_list(), marker=mark, **common), row=row)
            else:
                mark = {"symbol": SYMBOLS[backend], "size": 11, "color": palette.colour(mode), "line": {"width": 2}}
                trace = scatter(places, part["first_token_s"].to_list(), mode="markers", marker=mark, **common)
                made.add(trace, row=row)
        made.add(*published_marks(outcome, palette), row=row)
        made.x(row, title="replicas at first").y(row, title="first token, s", rangemode="tozero")

    def tokens(made: Canvas, row: int) -> None:
        marks = ["backend", "sources", "mode"]
        for (backend, sources, mode), part in tables["tokens"].group_by(marks, maintain_order=True):
            dash = ("solid", "dash", "dot")[(sources - 1) % 3]
            line = {"color": palette.colour(mode), "dash": dash, "width": 2, "shape": "hv"}
            name = f"{mode}, k = {sources} ({WORDS[backend]})"
            trace = scatter(part["time_s"].to_list(), part["made"].to_list(), mode="lines", name=name, line=line)
            made.add(trace, row=row)
        made.x(row, title="seconds since the scale-out began, at full size", rangemode="tozero").y(
            row, title="tokens", rangemode="tozero"
        )

    painters = {"first": ("Time to the first token", first)}
    if "tokens" in tables:  # which only a real run tells
        painters["tokens"] = ("Tokens of all requests", tokens)
    title = f"{outcome.parameters['model']} to {outcome.parameters['nodes']} nodes, served while it loads"
    return stack(title, painters, None).set(barmode="group", scattermode="group")
