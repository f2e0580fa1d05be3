"""A run as files: an HTML page that works offline, and still images where a Chrome is found."""

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import plotly.graph_objects as go

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.sourcing import all_sources
from workbench.errors import MissingExtra, UserError
from workbench.explore.library import library_in
from workbench.figures import draw
from workbench.figures.base import BUTTONS
from workbench.figures.text import below_html, escape
from workbench.paths import write_atomic

_STYLE = """
:root { color-scheme: light dark; }
body { font-family: system-ui, sans-serif; margin: 1.2rem auto; max-width: 1100px; padding: 0 1rem;
       background: Canvas; color: CanvasText; line-height: 1.45; }
table { border-collapse: collapse; } td, th { border-bottom: 1px solid rgba(128,128,128,.3); }
summary { cursor: pointer; padding: 4px 0; }
"""


def write_page(outcome: Outcome, title: str, question: str, folder: str | Path) -> Path:
    """Write `NAME.html` for a run into a folder, and beside it the plotly library that all its pages share."""
    folder = Path(folder)
    plot = draw(outcome).to_html(full_html=False, include_plotlyjs=False, config=dict(BUTTONS))
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>'
        f'<script src="{library_in(folder)}"></script></head><body><h1>{escape(title)}</h1>'
        f"<p>{escape(question)}</p>{plot}{below_html(outcome, all_sources(outcome))}</body></html>"
    )
    return write_atomic(folder / f"{file_name(outcome)}.html", page)


def file_name(outcome: Outcome) -> str:
    """The experiment's id as a file name."""
    return outcome.experiment.replace("/", "-")


def chrome_found() -> bool:
    """Whether still images can be made: the `lab` extra's kaleido and a Chrome or Chromium."""
    try:
        from choreographer.browsers.chromium import Chromium
    except ImportError:
        return False
    return Chromium.find_browser(skip_local=False) is not None


def require_chrome(feature: str) -> None:
    """Refuse what cannot be done without still images, in one sentence, before any work is done for it."""
    from importlib.util import find_spec

    if find_spec("kaleido") is None:
        raise MissingExtra(feature, "kaleido", "lab")
    if not chrome_found():
        raise UserError(f"{feature} needs a browser; install Chrome or Chromium.")


def write_images(figures: Mapping[Path, go.Figure], *, width: int = 1000) -> Sequence[Path]:
    """Write still images (the suffix says the format: .svg, .png, .pdf), all or none, with one browser start."""
    import plotly.io

    if not figures:
        return []
    folder = next(iter(figures)).parent
    beside = Path(tempfile.mkdtemp(prefix=".images.", dir=folder))
    try:
        drawn = {path: beside / path.name for path in figures}
        heights = [figure.layout.height for figure in figures.values()]
        plotly.io.write_images(
            list(figures.values()), [str(path) for path in drawn.values()], width=[width] * len(drawn), height=heights
        )
        for path, made in drawn.items():
            os.replace(made, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return list(figures)
