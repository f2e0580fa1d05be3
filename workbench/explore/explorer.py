"""The explorer of one experiment: controls generated from its parameters, and a figure that follows them."""

import threading
from typing import Any

import ipywidgets as w

from workbench.catalogue import running
from workbench.catalogue.context import Stopped
from workbench.catalogue.sourcing import all_sources
from workbench.catalogue.spec import Spec
from workbench.explore.controls import Control
from workbench.explore.live import Polish, follow, guard, live
from workbench.figures import sketch
from workbench.figures.base import WORDS
from workbench.figures.text import below_html, escape

PATIENCE_S = 0.5
"""A backend that takes longer than this is run when its button is pressed, not at every move of a slider."""


class Explorer:
    """Widgets round one experiment.

    The first backend answers at every move of a control; the others have a button each, and their marks are cleared as
    soon as a control moves again, so that marks and controls always belong together.
    """

    def __init__(self, spec: Spec, parameters: dict[str, Any]):
        self.spec = spec
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._worker: threading.Thread | None = None
        self._message = w.HTML()
        self._status = w.HTML()
        self._below = w.HTML()
        self._figure = live()
        values = self.spec.bind(parameters)
        profiles_first = sorted(
            self.spec.parameters, key=lambda item: item.about.profile not in ("cluster", "accelerator")
        )
        self.controls = {item.name: Control(item, values[item.name]) for item in profiles_first}
        self._guard = guard(self._message, self._lock)
        for control in self.controls.values():
            control.value.observe(self._guard(self._moved), names="value")
        self.buttons = {name: self._button(name) for name in self._extra()}
        self._stop_button = w.Button(description="Stop", disabled=True, icon="stop", tooltip="Stop what is running")
        self._stop_button.on_click(lambda _: self._stop.set())
        self.widget = self._layout()
        self._guard(self._moved)(None)

    def values(self) -> dict[str, Any]:
        """The parameters as the controls stand."""
        return {name: control.get() for name, control in self.controls.items()}

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until what a button started has ended (for scripts and tests)."""
        if self._worker is not None:
            self._worker.join(timeout_s)

    def _instant(self) -> tuple[str, ...]:
        first = self.spec.backends[0]
        return (first,) if self.spec.seconds.get(first, 0.0) <= PATIENCE_S else ()

    def _extra(self) -> list[str]:
        return [name for name in self.spec.backends if name not in self._instant()]

    def _moved(self, _change) -> None:
        self._stop.set()
        if self._instant():
            self._show(running.run(self.spec, self.values(), backends=self._instant()))
            if self._extra():
                self._status.value = ""
        else:
            self._status.value = "<em>Press a button to run with these settings.</em>"

    def _show(self, outcome) -> None:
        follow(self._figure, sketch(outcome))
        self._below.value = below_html(outcome, all_sources(outcome))

    def _button(self, backend: str) -> w.Button:
        seconds = self.spec.seconds.get(backend, 0.0)
        about = f"about {seconds:.0f} s" if seconds >= 1 else "under 1 s"
        words = {"simpy": "Simulate", "compiled": "Simulate (compiled)", "torch": "Run for real", "analytic": "Compute"}
        button = w.Button(
            description=f"{words[backend]} ({about})", layout=w.Layout(width="auto"),
            tooltip=f"Answer by {WORDS[backend]} with the settings above",
        )  # fmt: skip
        button.on_click(lambda _: self._guard(self._start)(backend))
        return button

    def _start(self, backend: str) -> None:
        if self._worker is not None and self._worker.is_alive():
            self._status.value = "<em>Still busy; press Stop first.</em>"
            return
        self._stop = stop = threading.Event()
        values = self.values()
        self._status.value = f"<em>Running by {WORDS[backend]} …</em>"
        self._stop_button.disabled = False
        names = (*self._instant(), backend)

        def tell(text: str) -> None:
            self._status.value = f"<em>{escape(text)}</em>"

        def finish(_: object) -> None:
            said = ""
            try:
                outcome = running.run(self.spec, values, backends=names, stop=stop, progress=tell)
                with self._lock:
                    if values == self.values():
                        self._show(outcome)
            except Stopped as stopped:
                said = f"<em>{escape(stopped)}</em>"
            finally:
                self._status.value, self._stop_button.disabled = said, True

        unlocked = guard(self._message, threading.RLock())
        self._worker = threading.Thread(target=unlocked(finish), args=(None,), daemon=True)
        self._worker.start()

    def _layout(self) -> w.Widget:
        head = w.HTML(
            f'<h3 style="margin:4px 0">{escape(self.spec.title)}</h3><p style="margin:0 0 6px">'
            f"{escape(self.spec.question)}</p>"
        )
        grid = w.GridBox(
            [control.widget for control in self.controls.values()],
            layout=w.Layout(grid_template_columns="repeat(auto-fit, minmax(330px, 1fr))", grid_gap="4px 24px"),
        )
        bar = w.HBox([*self.buttons.values(), *([self._stop_button] if self.buttons else []), self._status])
        bar.layout.flex_flow = "row wrap"
        parts = [head, grid, bar, self._message, self._figure, self._below, Polish()]
        return w.VBox(parts, layout=w.Layout(width="100%", overflow="hidden"))
