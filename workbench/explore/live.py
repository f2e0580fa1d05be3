"""Figures that follow their controls, callbacks that cannot fail in silence, and names for screen readers."""

import functools
import threading
from collections.abc import Callable

import anywidget
import ipywidgets as w
import plotly.graph_objects as go

from workbench.errors import WorkbenchError
from workbench.figures.text import alert


class Polish(anywidget.AnyWidget):
    """Invisible helper, one an explorer: gives slider handles their accessible name, and figures their first resize.

    ipywidgets does not tie a slider's visible label to its handle, and a `FigureWidget` ignores the width of its
    container until the window is resized (plotly.py issues 5208 and 4027).
    """

    _esm = """
    export default { render({ el }) {
      const name = () => document.querySelectorAll('.widget-hslider').forEach(box => {
        const label = box.querySelector('.widget-label');
        if (label) box.querySelectorAll('[role=slider]').forEach(h => h.setAttribute('aria-label', label.textContent));
      });
      const watch = new MutationObserver(name);
      watch.observe(document.body, { childList: true, subtree: true });
      name();
      const kicks = [100, 400, 1200, 2500].map(ms => setTimeout(() => window.dispatchEvent(new Event('resize')), ms));
      return () => { watch.disconnect(); kicks.forEach(clearTimeout); };
    } }
    """


def live(figure: go.Figure) -> go.FigureWidget:
    """A `FigureWidget` that follows the width of its container (needs `Polish` on the page for the first draw)."""
    widget = go.FigureWidget(figure)
    widget._config = {"responsive": True, "displaylogo": False}
    return widget


def follow(widget: go.FigureWidget, figure: go.Figure) -> None:
    """Make a shown figure look like another one, touching only what differs where the traces are of the same kinds."""
    same = len(widget.data) == len(figure.data) and all(
        old.type == new.type for old, new in zip(widget.data, figure.data, strict=False)
    )
    with widget.batch_update():
        if same:
            for old, new in zip(widget.data, figure.data, strict=True):
                old.update(new.to_plotly_json(), overwrite=True)
        widget.update_layout(figure.layout.to_plotly_json(), overwrite=True)
    if not same:
        widget.data = []
        widget.add_traces(figure.data)


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
                except WorkbenchError as error:
                    message.value = alert(str(error))
                except Exception as error:
                    message.value = alert(f"{type(error).__name__}: {error}")

        return run

    return wrap
