"""What a button started: a thread beside the controls, which may write only as long as it is the latest thing asked."""

import threading
from collections.abc import Callable

import ipywidgets as w

from workbench.catalogue.context import Stopped
from workbench.catalogue.outcome import Outcome
from workbench.explore.live import alert_of
from workbench.figures.text import escape

Tell = Callable[[str], None]
Show = Callable[[Outcome], None]
Work = Callable[[threading.Event, Tell, Show], Outcome]


class Background:
    """Runs work in a thread and shows its end, unless something newer was asked meanwhile.

    Every run has a number. A run whose number is no longer the present one has been overtaken: it is told to stop, and
    whatever it still says, shows or fails with is dropped, so that figure, message and controls always belong together.

    Attributes:
        lock: held while anything of the explorer is written; control callbacks take it too.
    """

    def __init__(self, message: w.HTML, status: w.HTML, stop_button: w.Button):
        self.lock = threading.RLock()
        self._message, self._status, self._stop_button = message, status, stop_button
        self._number = 0
        self._stop = threading.Event()
        self._worker: threading.Thread | None = None
        stop_button.on_click(lambda _: self._ask_to_stop())

    @property
    def busy(self) -> bool:
        """Whether a run that has not been overtaken is still going on (its Stop button says the same)."""
        return not self._stop_button.disabled

    def overtake(self) -> None:
        """Stop what is running and let nothing of it be shown any more."""
        with self.lock:
            self._number += 1
            self._stop.set()
            self._status.value, self._stop_button.disabled = "", True

    def start(self, work: Work, show: Show, first: str):
        """Run `work(stop, tell, show)` in a thread and show what it returns, too; `first` is said at once."""
        with self.lock:
            self.overtake()
            self._stop = threading.Event()
            self._stop_button.disabled = False
            number, stop = self._number, self._stop
            self._say(number, first)
            self._worker = threading.Thread(target=self._run, args=(number, stop, work, show), daemon=True)
            self._worker.start()

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the thread that was started last has ended, overtaken or not."""
        if self._worker is not None:
            self._worker.join(timeout_s)

    def _run(self, number: int, stop: threading.Event, work, show) -> None:
        said, wrong = "", ""
        try:
            outcome = work(stop, lambda text: self._say(number, text), lambda early: self._show(number, show, early))
        except Stopped as stopped:
            outcome, said = None, f"<em>{escape(stopped)}</em>"
        except Exception as error:
            outcome, wrong = None, alert_of(error)
        with self.lock:
            if number != self._number:
                return
            try:
                if outcome is not None:
                    show(outcome)
            except Exception as error:
                wrong = alert_of(error)
            self._message.value, self._status.value, self._stop_button.disabled = wrong, said, True

    def _show(self, number: int, show: Show, outcome: Outcome) -> None:
        with self.lock:
            if number == self._number:
                show(outcome)

    def _say(self, number: int, text: str) -> None:
        with self.lock:
            if number == self._number:
                self._status.value = f"<em>{escape(text)}</em>"

    def _ask_to_stop(self) -> None:
        with self.lock:
            if self.busy:
                self._stop.set()
                self._say(self._number, "Stopping …")
