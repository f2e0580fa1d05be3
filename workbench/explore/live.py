"""Figures that follow their controls, callbacks that cannot fail in silence, and names for screen readers."""

import functools
import threading
from collections.abc import Callable, Mapping
from copy import deepcopy
from importlib.resources import files
from typing import Any
from uuid import uuid4

import anywidget
import ipywidgets as w
import plotly.graph_objects as go
from plotly.offline import get_plotlyjs_version
from traitlets import Unicode

from workbench.errors import WorkbenchError
from workbench.figures.base import BUTTONS, TEMPLATE
from workbench.figures.deferring import load_renderers
from workbench.figures.text import alert

load_renderers()


class Polish(anywidget.AnyWidget):
    """Invisible helper, one an explorer: gives controls their names for screen readers, figures their first resize.

    ipywidgets does not tie a slider's visible label to its handle, and a `FigureWidget` ignores the width of its
    container until the window is resized (plotly.py issues 5208 and 4027).
    """

    _esm = """
    export default { render({ el }) {
      const name = () => document.querySelectorAll('.workbench-control').forEach(control => {
        const label = control.querySelector('.workbench-label');
        const named = control.querySelectorAll('[role=slider], input, select');
        if (label) named.forEach(e => e.setAttribute('aria-label', label.textContent));
      });
      const watch = new MutationObserver(name);
      watch.observe(document.body, { childList: true, subtree: true });
      name();
      const kicks = [100, 400, 1200, 2500].map(ms => setTimeout(() => window.dispatchEvent(new Event('resize')), ms));
      return () => { watch.disconnect(); kicks.forEach(clearTimeout); };
    } }
    """

    _css = """
    .workbench-projector { --jp-widgets-font-size: 20px; --jp-widgets-inline-height: 42px;
      --jp-widgets-inline-width: 460px; --jp-ui-font-size1: 20px; --jp-content-font-size1: 20px; font-size: 20px; }
    .workbench-projector h3 { font-size: 28px; line-height: 1.25; }
    .workbench-projector :is(p, em, label, summary, select, option, input, button, table, .workbench-label) {
      font-size: 20px !important; line-height: 1.35; }
    """


_HIDDEN = {"visible": False}
EMPTY = {
    "data": [],
    "layout": {"template": TEMPLATE, "title": {"text": ""}, "height": 200, "xaxis": _HIDDEN, "yaxis": _HIDDEN},
}
"""The sketch of nothing: without it, plotly draws axes from -1 to 6."""


class _Library(w.Widget):
    """Plotly's part in the browser, sent once: all figures of a session share it (`figure.js` says why)."""

    source = Unicode().tag(sync=True)


_SENT: list[_Library] = []


def _library() -> _Library:
    """The library that the browser has; another one where somebody closed it."""
    if not _SENT or _SENT[-1].comm is None:
        _SENT.append(_Library(source=str(go.FigureWidget._esm)))
    return _SENT[-1]


class _Whole(go.FigureWidget):
    """A `FigureWidget` that the browser hears of when it is whole, and that shares plotly with all others.

    Plotly's own says that it is there while still empty and sends its content after.
    """

    _esm = (files("workbench.explore") / "figure.js").read_text(encoding="utf-8")
    _library, _own_id = Unicode().tag(sync=True), Unicode().tag(sync=True)
    _plotly_version = Unicode(get_plotlyjs_version()).tag(sync=True)
    _whole = False

    def open(self) -> None:
        """Called by ipywidgets in the midst of construction, and by `live` at its end."""
        if self._whole:
            super().open()

    def get_state(self, key=None, drop_defaults=False):
        """All that a page is told which asks anew: how the figure stands now (plotly's own says how it began)."""
        if key is None and self._whole:
            self._trait_values |= {
                "_widget_data": deepcopy(self._data), "_widget_layout": deepcopy(self._layout_obj._props)
            }  # fmt: skip
        return super().get_state(key, drop_defaults)


def live(sketch: Mapping[str, Any] = EMPTY) -> go.FigureWidget:
    """A figure that shows a sketch and follows the width of its container (needs `Polish` on the page to begin)."""
    widget = _Whole(data=sketch["data"], layout=sketch["layout"])
    widget._config, widget._library = dict(BUTTONS), _library().model_id
    widget._model_id = widget._own_id = uuid4().hex
    widget._whole = True
    widget.open()
    return widget


def follow(widget: go.FigureWidget, sketch: Mapping[str, Any], template: bool = False) -> None:
    """Make a shown figure look like a sketch (`figures.sketch`), moving its traces where they are of the same kinds.

    Parameters:
        template: whether the sketch has another template than what is shown.
    """
    traces, layout = sketch["data"], dict(sketch["layout"])
    same = [old.type for old in widget.data] == [new["type"] for new in traces]
    if not template:
        del layout["template"]  # it is there from the beginning, and costly to set again
    if bool(traces) != bool(widget.data):
        names = {*layout, *widget.layout.to_plotly_json()}
        axes = [name for name in names if name.startswith(("xaxis", "yaxis"))]
        layout |= {name: {"visible": bool(traces)} | layout.get(name, {}) for name in axes}
    lists = {name: list(layout.pop(name, ())) for name in ("shapes", "annotations")}
    known = widget.layout._props
    with widget.batch_update():
        if same:
            _replace(widget, lists)
            for old, new in zip(widget.data, traces, strict=True):
                old.update(_news(new, old._props), overwrite=True)
        news = _news(layout, known)
        for name in (name for name, value in news.items() if isinstance(value, Mapping) and name in known):
            news[name] = _news(news[name], known[name])
        widget.update_layout(news)  # at once: plotly says first which axes are new, and draws over each other otherwise
    if not same:
        widget.data = []
        widget.add_traces(traces)
        _replace(widget, lists)  # now that their axes are there


def _replace(widget: go.FigureWidget, lists: Mapping[str, list[Any]]) -> None:
    """Set lists of the layout as a whole, where they are not as they should be: to update one would keep its rest."""
    for name, items in lists.items():
        if not _same(items, list(widget.layout._props.get(name, ()))):
            widget.layout[name] = items


def _news(told: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """What of some properties is not known yet: plotly checks whatever it is told, and sends it."""
    return {name: value for name, value in told.items() if not _same(value, known.get(name))}


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except ValueError:  # arrays
        return False


def guard(message: w.HTML, lock: threading.RLock) -> Callable[[Callable], Callable]:
    """Decorate a widget callback: one at a time, and an error becomes a visible sentence instead of a log entry.

    JupyterLab runs widget messages in threads of their own beside a busy cell, hence the lock.
    """

    def wrap(callback: Callable) -> Callable:
        @functools.wraps(callback)
        def run(*args):
            with lock:
                try:
                    callback(*args)
                    message.value = ""
                except Exception as error:
                    message.value = alert_of(error)

        return run

    return wrap


def alert_of(error: Exception) -> str:
    """What went wrong as a visible sentence; an error that nobody planned is named by its class too."""
    return alert(str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}")
