"""What tests of explorers and of the browser share."""

import threading

import pytest

from workbench.catalogue import running
from workbench.catalogue.context import Stopped


@pytest.fixture
def held_run(monkeypatch):
    """Simulations that go on until released; the formula answers as ever. `deaf` ones do not notice a Stop."""

    class Held:
        started, release, deaf = threading.Event(), threading.Event(), False

    real = running.run_unjudged

    def run(entry, values, *, backends, stop=None, progress=None, quick=False, so_far=None):
        if "simpy" not in backends:
            return real(entry, values, backends=backends)
        Held.started.set()
        assert Held.release.wait(30)
        if stop.is_set() and not Held.deaf:
            raise Stopped("Stopped before it was finished.")
        progress("nearly done")
        return real(entry, values, backends=backends, progress=progress, quick=quick, so_far=so_far)

    monkeypatch.setattr(running, "run_unjudged", run)
    return Held
