"""The explorer of one experiment: controls generated from its parameters, and a figure that follows them."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import ipywidgets as w
import plotly.graph_objects as go

from workbench.catalogue import running
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.sourcing import all_sources
from workbench.catalogue.spec import Spec
from workbench.explore.background import Background
from workbench.explore.closing import close_tree
from workbench.explore.compiling import compiling
from workbench.explore.controls import Control
from workbench.explore.live import EMPTY, Polish, follow, guard, live
from workbench.explore.turns import real_turn
from workbench.figures import sketch
from workbench.figures.base import WORDS
from workbench.figures.projector import PROJECTOR, enlarged
from workbench.figures.text import below_html, escape

PATIENCE_S = 0.5
"""A backend that takes longer than this is run when its button is pressed, not at every move of a slider."""

QUICK_LOOK_S = 1.0
"""A simulation that takes longer shows fewer and smaller runs first."""

FIRST_LOOK, QUICK_LOOK = "A quick look comes first:", "A quick look; the whole goes on:"

_WARM: set[str] = set()
"""Experiments whose live backends have answered once in this process."""


class Explorer:
    """Widgets round one experiment.

    The first backend answers at every move of a control, and so do those that the experiment calls live, from the
    second time on: at first they run in the background, because compiling may take long, with what the first one says
    already drawn. The others have a button each, and their marks are cleared as soon as a control moves again, so that
    marks and controls always belong together. Where a button takes long it shows a quick run first, of fewer and
    smaller runs; that stays when Stop ends the whole one. Reset puts all controls back; larger text is for a projector.

    Attributes:
        large: whether letters and marks are those for a projector.
    """

    def __init__(self, spec: Spec, parameters: dict[str, Any], large: bool = False):
        self.spec = spec
        self.large, self._quiet = large, False
        self._outcome: Outcome | None = None
        self._shown, self._took_s = ("", ""), 0.0
        self._message = w.HTML()
        self._status = w.HTML()
        self._below = w.HTML()
        self._stop_button = w.Button(description="Stop", disabled=True, icon="stop", tooltip="Stop what is running")
        self._reset_button = w.Button(
            description="Reset", icon="undo", tooltip="Put every control back as it stood first"
        )
        self._size_button = w.Button(tooltip="Letters and marks for a projector, or for a desk")
        self._background = Background(self._message, self._status, self._stop_button)
        values = self.spec.bind(parameters)
        profiles_first = sorted(
            self.spec.parameters, key=lambda item: item.about.profile not in ("cluster", "accelerator")
        )
        self.controls = {item.name: Control(item, values[item.name]) for item in profiles_first}
        self._guard = guard(self._message, self._background.lock)
        for control in self.controls.values():
            control.value.observe(self._guard(self._moved), names="value")
        self.buttons = {name: self._button(name) for name in self._extra()}
        self._reset_button.on_click(self._guard(lambda _: self._reset()))
        self._size_button.on_click(lambda _: self._resize())
        self._figure = self._first_figure()
        self.widget = self._layout()
        self._say_size()
        if self.spec.live and self.spec.id not in _WARM:
            self._warm_up()

    def values(self) -> dict[str, Any]:
        """The parameters as the controls stand."""
        return {name: control.get() for name, control in self.controls.items()}

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until what a button started has ended (for scripts and tests)."""
        self._background.wait(timeout_s)

    def stop(self) -> None:
        """Stop what is running, and show nothing of it any more."""
        self._background.overtake()

    def close(self) -> None:
        """Stop, and give back every widget."""
        self.stop()
        close_tree(self.widget)

    def _instant(self) -> tuple[str, ...]:
        """What answers at once."""
        first = self.spec.backends[0]
        quick = (first,) if self.spec.seconds.get(first, 0.0) <= PATIENCE_S else ()
        return quick + self.spec.live if self.spec.id in _WARM else quick

    def _extra(self) -> list[str]:
        return [name for name in self.spec.backends if name not in (*self._instant(), *self.spec.live)]

    def _first_figure(self) -> go.FigureWidget:
        begun: list[dict[str, Any]] = []
        self._guard(lambda: self._answer(begun.append))()
        return live(*begun or [self._sketch(None)])

    def _moved(self, _change) -> None:
        if self._quiet:
            return
        before = self._shown
        self._answer(self._redraw)
        if self._outcome is not None and self._shown == before and not self._background.busy:
            button = "; what a button starts may change" if self.buttons else ""
            self._status.value = f"<em>What is drawn stays the same{button}.</em>"

    def _reset(self) -> None:
        """Every control as it stood first, answered once."""
        self._quiet = True
        try:
            for control in self.controls.values():
                control.reset()
        finally:
            self._quiet = False
        self._answer(self._redraw)

    def _resize(self) -> None:
        """Larger letters, or the usual ones again; what is drawn stays."""
        with self._background.lock:  # what is said above the figure stays too, so this is no guarded callback
            self.large = not self.large
            self._say_size()
            follow(self._figure, self._sketch(self._outcome), template=True)

    def _say_size(self) -> None:
        self._size_button.description = "Usual text" if self.large else "Larger text"
        (self.widget.add_class if self.large else self.widget.remove_class)("workbench-projector")

    def _sketch(self, outcome: Outcome | None) -> dict[str, Any]:
        scale = PROJECTOR if self.large else 1.0
        return enlarged(EMPTY, scale) if outcome is None else sketch(outcome, scale=scale)

    def _answer(self, draw: Callable[[dict[str, Any]], object]) -> None:
        self._background.overtake()
        if self._instant():
            self._answered(draw)
        else:
            self._outcome, self._shown = None, ("", "")
            draw(self._sketch(None))
            self._below.value = ""
            self._status.value = "<em>Press a button to run with these settings.</em>"
        if self.spec.live and self.spec.id not in _WARM and draw == self._redraw:
            self._warm_up()

    def _answered(self, draw: Callable[[dict[str, Any]], object]) -> None:
        """Show what answers at every move, verdicts last; where it took long the last time, that is said meanwhile."""
        began = time.monotonic()
        if self._took_s > PATIENCE_S:
            self._status.value = "<em>Computing …</em>"
        try:
            outcome, judged = running.run_unjudged(self.spec, self.values(), backends=self._instant())
            self._draw(outcome, draw)
            self._tell(outcome.model_copy(update={"verdicts": judged()}))
        finally:
            self._took_s, self._status.value = time.monotonic() - began, ""

    def _warm_up(self) -> None:
        """Run what is live for the first time, in the background."""
        values, names = self.values(), (*self._instant(), *self.spec.live)

        def work(stop, tell, _show):
            with compiling(tell):
                outcome = running.run(self.spec, values, backends=names, stop=stop, progress=tell)
            _WARM.add(self.spec.id)
            return outcome

        self._background.start(work, partial(self._show, draw=self._redraw), "Running for the first time …")

    def _show(self, outcome: Outcome, draw: Callable[[dict[str, Any]], object]) -> None:
        self._draw(outcome, draw)
        self._tell(outcome)

    def _draw(self, outcome: Outcome, draw: Callable[[dict[str, Any]], object]) -> None:
        self._outcome, sketched = outcome, self._sketch(outcome)
        draw(sketched)
        self._shown = str(sketched), outcome.sentence

    def _tell(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._below.value = below_html(outcome, all_sources(outcome))

    def _redraw(self, sketched: dict[str, Any]) -> None:
        follow(self._figure, sketched)

    def _button(self, backend: str) -> w.Button:
        words = {"simpy": "Simulate", "compiled": "Simulate (compiled)", "torch": "Run for real", "analytic": "Compute"}
        button = w.Button(
            description=f"{words[backend]} ({self._about(backend)})", layout=w.Layout(width="auto"),
            tooltip=f"Answer by {WORDS[backend]} with the settings above",
        )  # fmt: skip
        button.on_click(lambda _: self._press(backend))
        return button

    def _about(self, backend: str) -> str:
        seconds = self.spec.seconds.get(backend, 0.0)
        return f"about {seconds:.0f} s" if seconds >= 1 else "under 1 s"

    def _press(self, backend: str) -> None:
        with self._background.lock:
            if self._background.busy:
                self._status.value = "<em>Still busy; press Stop first.</em>"
            else:
                self._guard(self._start)(backend)

    def _start(self, backend: str) -> None:
        values, names = self.values(), (*self._instant(), backend)

        def work(stop, tell, show):
            how = {"backends": names, "stop": stop}
            early = backend != "torch" and self.spec.seconds.get(backend, 0.0) > QUICK_LOOK_S
            with real_turn(stop, tell) if backend == "torch" else compiling(tell):
                if early:
                    first = {**how, "quick": True, "progress": lambda text: tell(f"{FIRST_LOOK} {text}")}
                    show(running.run_unjudged(self.spec, values, **first, so_far=show)[0])
                told = (lambda text: tell(f"{QUICK_LOOK} {text}")) if early else tell
                outcome, judged = running.run_unjudged(self.spec, values, **how, progress=told)
                show(outcome)
                tell("Laying it beside what was published …")
                return outcome.model_copy(update={"verdicts": judged()})

        self._background.start(
            work, partial(self._show, draw=self._redraw), f"Running by {WORDS[backend]}, {self._about(backend)} …"
        )

    def _layout(self) -> w.Widget:
        head = w.HTML(
            f'<h3 style="margin:4px 0">{escape(self.spec.title)}</h3><p style="margin:0 0 6px">'
            f"{escape(self.spec.question)}</p>"
        )
        grid = w.GridBox(
            [control.widget for control in self.controls.values()],
            layout=w.Layout(grid_template_columns="repeat(auto-fit, minmax(330px, 1fr))", grid_gap="4px 24px"),
        )
        stop = [self._stop_button] if self.buttons or self.spec.live else []
        bar = w.HBox([*self.buttons.values(), *stop, self._reset_button, self._size_button, self._status])
        bar.layout.flex_flow = "row wrap"
        parts = [head, grid, bar, self._message, self._figure, self._below, Polish()]
        return w.VBox(parts, layout=w.Layout(width="100%", overflow="hidden"))
