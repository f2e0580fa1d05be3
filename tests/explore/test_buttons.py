"""What buttons start: a run in the background, which Stop ends, a control overtakes, and an error turns into text."""

import threading

import pytest

from workbench.catalogue import running, spec
from workbench.catalogue.context import Stopped
from workbench.explore.explorer import Explorer


def explore(id, **parameters):
    return Explorer(spec.find(id), parameters)


def test_a_button_simulates_and_moving_on_clears_its_marks():
    explorer = explore("lambdascale/fig5")
    assert not any("simulation" in (trace.name or "") for trace in explorer._figure.data)
    explorer.buttons["simpy"].click()
    explorer.wait(60)
    assert any("simulation" in (trace.name or "") for trace in explorer._figure.data)
    assert "Agreement of backends: 1 of 1" in explorer._below.value
    explorer.controls["blocks"].value.value = 5
    assert not any("simulation" in (trace.name or "") for trace in explorer._figure.data)


def test_stop_ends_a_run_and_says_so(monkeypatch):
    explorer = explore("lambdascale/fig5")
    started, gone_on = threading.Event(), threading.Event()

    def slow(entry, values, *, backends, stop, progress):
        started.set()
        stop.wait(30)
        if stop.is_set():
            raise Stopped("Stopped before it was finished.")
        gone_on.set()

    monkeypatch.setattr(running, "run_unjudged", slow)
    explorer.buttons["simpy"].click()
    assert started.wait(30)
    explorer._stop_button.click()
    explorer.wait(30)
    assert not gone_on.is_set()
    assert "Stopped" in explorer._status.value
    assert explorer._message.value == ""
    assert explorer._stop_button.disabled


@pytest.mark.parametrize("stopped", [False, True])
def test_a_long_run_shows_a_quick_one_first_which_stays_where_it_is_stopped(monkeypatch, stopped):
    entry = spec.find("theory/queues")
    explorer = Explorer(entry._replace(seconds={**entry.seconds, "compiled": 60.0}), {})
    real, modes = running.run_unjudged, []

    def watched(entry, values, *, backends, quick=False, **how):
        modes.append((quick, simulation_drawn(explorer, "compiled"), "the whole goes on" in explorer._status.value))
        if not quick:
            how["progress"]("half of it")
            modes.append(explorer._status.value)
            if stopped:
                explorer._stop_button.click()
        return real(entry, values, backends=backends, quick=quick, **how)

    monkeypatch.setattr(running, "run_unjudged", watched)
    explorer.buttons["compiled"].click()
    explorer.wait(60)
    said = "<em>A quick look; the whole goes on: half of it</em>"
    assert modes == [(True, False, False), (False, True, False), said]
    assert simulation_drawn(explorer, "compiled")
    assert explorer._status.value == ("<em>Stopped before it was finished.</em>" if stopped else "")
    assert f"{'quick' if stopped else 'full'} mode" in explorer._below.value
    assert explorer._message.value == ""


def simulation_drawn(explorer, backend="simulation"):
    return any(backend in (trace.name or "") for trace in explorer._figure.data)


@pytest.mark.parametrize("deaf", [False, True])
def test_an_overtaken_run_clears_no_alert_and_draws_nothing(held_run, deaf):
    """A control that is moved to an invalid value during a run: the alert is the control's, not the run's."""
    held_run.deaf = deaf
    explorer = explore("blitzscale/fig14")
    title, names = explorer._figure.layout.title.text, [trace.name for trace in explorer._figure.data]
    explorer.buttons["simpy"].click()
    assert held_run.started.wait(30)
    assert not explorer._stop_button.disabled
    explorer.controls["cluster"].value.value = "lambdascale-testbed1"
    alert = explorer._message.value
    assert "one accelerator per host" in alert
    assert explorer._stop_button.disabled
    held_run.release.set()
    explorer.wait(60)
    assert explorer._message.value == alert
    assert explorer._status.value == ""
    assert [trace.name for trace in explorer._figure.data] == names
    assert explorer._figure.layout.title.text == title


def test_a_failed_run_shows_its_alert_and_an_overtaken_one_does_not(monkeypatch):
    explorer = explore("lambdascale/fig5")
    real, go_on = running.run_unjudged, threading.Event()

    def fails(entry, values, *, backends, stop=None, progress=None):
        if "simpy" not in backends:
            return real(entry, values, backends=backends)
        assert go_on.wait(30)
        raise ValueError("no such luck")

    monkeypatch.setattr(running, "run_unjudged", fails)
    explorer.buttons["simpy"].click()
    explorer.controls["blocks"].value.value = 5
    go_on.set()
    explorer.wait(30)
    assert explorer._message.value == ""
    explorer.buttons["simpy"].click()
    explorer.wait(30)
    assert "ValueError: no such luck" in explorer._message.value
    assert explorer._stop_button.disabled
    explorer.controls["blocks"].value.value = 6
    assert explorer._message.value == ""


def test_a_run_can_be_started_while_an_overtaken_one_still_goes_on(held_run):
    explorer = explore("lambdascale/fig5")
    explorer.buttons["simpy"].click()
    assert held_run.started.wait(30)
    explorer.buttons["simpy"].click()
    assert "Still busy" in explorer._status.value
    explorer.controls["blocks"].value.value = 5
    explorer.buttons["simpy"].click()
    assert "Still busy" not in explorer._status.value
    held_run.release.set()
    explorer.wait(60)
    assert simulation_drawn(explorer)
    assert explorer._figure.layout.title.text == explore("lambdascale/fig5", blocks=5)._figure.layout.title.text
