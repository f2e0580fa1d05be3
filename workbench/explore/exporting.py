"""An explorer as one file for readers without Python: every position of its sliders is computed beforehand."""

import base64
import gzip
import itertools
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from plotly.io.json import to_json_plotly
from plotly.offline import get_plotlyjs

from workbench.catalogue import running
from workbench.catalogue.parameters import name_of
from workbench.catalogue.sourcing import all_sources
from workbench.catalogue.spec import Spec
from workbench.errors import UserError
from workbench.explore.library import library_in
from workbench.explore.positions import MOST_POSITIONS, Slider, sliders_of
from workbench.figures import sketch
from workbench.figures.base import BUTTONS, TEMPLATE
from workbench.figures.text import below_html, escape
from workbench.paths import figures_folder, make_folder, write_atomic
from workbench.records import check_watching, given_path

LIMIT_BYTES = 6_000_000
"""A page is never larger."""

DIGITS = 6
"""Significant digits of what is drawn."""

SHARED = 8
"""Lists of so many numbers, and texts of ten times as many letters, are stored once for all positions."""


def export_page(
    entry: Spec,
    path: str | Path | None,
    sliders: Mapping[str, Any] | Iterable[str] | None,
    parameters: Mapping[str, Any],
    *,
    backend: str | Iterable[str] | None = None,
    quick: bool = False,
    progress: Callable[[str], object] | None = None,
    share: bool = False,
) -> Path:
    """Run an experiment at every position of some sliders and write the page; see `Experiment.export_html`.

    A position that the experiment refuses says so on the page. With `share` the page does not carry the plotly library
    but reads that of its folder, where all pages share one.
    """
    name = entry.id.replace("/", "-")
    check_watching(progress)
    file = given_path(path, "path") if path is not None else figures_folder() / f"{name}-explorer.html"
    values = entry.bind(parameters)
    moving = sliders_of(entry, values, sliders)
    combinations = list(itertools.product(*(slider.values for slider in moving)))
    if len(combinations) > MOST_POSITIONS:
        raise UserError(
            _too_many(entry, moving, f"{len(combinations):,} positions", MOST_POSITIONS / len(combinations))
        )
    _require_place(file)
    backends = backend or entry.backends[0]
    positions: list[dict[str, Any]] = []
    refused: list[UserError] = []
    for number, combination in enumerate(combinations, start=1):
        if progress is not None:
            progress(f"position {number} of {len(combinations)}")
        given = {**parameters, **dict(zip((slider.name for slider in moving), combination, strict=True))}
        try:
            outcome = running.run(entry, given, backends=backends, quick=quick)
        except UserError as error:
            refused.append(error)
            positions.append({"data": [], "layout": {}, "below": [], "alert": str(error)})
            continue
        drawn = json.loads(to_json_plotly(sketch(outcome)))
        del drawn["layout"]["template"]
        words, end, folds = below_html(outcome, all_sources(outcome)).partition("</p>")
        positions.append({**drawn, "below": [words + end, folds], "alert": ""})
    if len(refused) == len(positions):
        raise refused[0]
    fixed = {name: value for name, value in values.items() if name not in {slider.name for slider in moving}}
    library = f'<script src="{library_in(file.parent)}"></script>' if share else _carried(get_plotlyjs(), "library")
    page = _page(entry, moving, positions, fixed, library)
    if len(page) > LIMIT_BYTES:
        room = (LIMIT_BYTES - len(library)) / (len(page) - len(library))
        raise UserError(_too_many(entry, moving, f"{len(page) / 1e6:.1f} MB", room))
    return write_atomic(file, page)


def _require_place(file: Path) -> None:
    """Refuse what could not be written before all positions are computed for it."""
    if file.exists() and not file.is_file():
        raise UserError(f"{file} is no file that can be replaced; name another.")
    if not os.access(make_folder(file.parent), os.W_OK | os.X_OK):
        raise UserError(f"{file.parent} cannot be written to; choose another folder.")


def _too_many(entry: Spec, sliders: Sequence[Slider], what: str, room: float) -> str:
    """What to cut: the slider of most positions, and how many of them leave the page small enough."""
    most = max(sliders, key=lambda slider: len(slider.values))
    fit = max(1, int(len(most.values) * room))
    limit = f"{MOST_POSITIONS:,} positions and {LIMIT_BYTES / 1e6:g} MB"
    return (
        f"{entry.id}: the page would have {what}, and at most {limit} are allowed; slider {most.name!r} has "
        f"{len(most.values)} positions, give about {fit} (sliders={{{most.name!r}: {fit}}}), or fewer sliders."
    )


def _page(
    entry: Spec, sliders: Sequence[Slider], positions: list[dict[str, Any]], fixed: Mapping[str, Any], library: str
) -> bytes:
    shared: dict[str, int] = {}
    content = {
        "positions": [_stored(position, shared) for position in positions],
        "sizes": [len(slider.values) for slider in sliders],
        "template": TEMPLATE,
        "config": BUTTONS,
    }
    content["shared"] = [json.loads(text) for text in shared]
    settings = ", ".join(f"{name} = {name_of(value)}" for name, value in fixed.items())
    return (
        Template((files("workbench.explore") / "offline.html").read_text(encoding="utf-8"))
        .substitute(
            title=escape(entry.title),
            question=escape(entry.question),
            controls="".join(_control(slider, f"slider-{index}") for index, slider in enumerate(sliders)),
            fixed=escape(f"{entry.id}; fixed: {settings}" if settings else entry.id),
            library=library,
            beside=" 'self' file:" if "src=" in library[:20] else "",
            content=_carried(json.dumps(content, separators=(",", ":")), "content"),
        )
        .encode()
    )


def _stored(part: Any, shared: dict[str, int]) -> Any:
    """A part of a position, numbers rounded, with what may recur replaced by its number in the shared list."""
    if isinstance(part, dict):
        return {key: "".join(item) if key == "below" else _stored(item, shared) for key, item in part.items()}
    if isinstance(part, float):
        return float(f"{part:.{DIGITS}g}")
    if isinstance(part, list):
        part = [_stored(item, shared) for item in part]
    plain = isinstance(part, list) and not any(isinstance(item, dict | list) for item in part)
    if (plain and len(part) >= SHARED) or (isinstance(part, str) and len(part) >= 10 * SHARED):
        return {"$": shared.setdefault(json.dumps(part, separators=(",", ":")), len(shared))}
    return part


def _control(slider: Slider, id: str) -> str:
    texts = escape(json.dumps(slider.texts))
    label = f'<div><label for="{id}">{escape(slider.label)}</label>'
    if slider.choice:
        options = "".join(
            f'<option value="{index}"{" selected" if index == slider.start else ""}>{escape(text)}</option>'
            for index, text in enumerate(slider.texts)
        )
        return f'{label}<select id="{id}" data-texts="{texts}">{options}</select></div>'
    return (
        f'{label}<input type="range" id="{id}" min="0" max="{len(slider.values) - 1}" step="1" value="{slider.start}" '
        f'data-texts="{texts}"><output for="{id}"></output></div>'
    )


def _carried(text: str, id: str) -> str:
    """A text packed into an element of the page."""
    packed = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
    return f'<script type="text/plain" id="{id}">{packed}</script>'
