"""Explorers without a browser: setting a control runs its callback at once, and errors become visible text."""

import threading

import ipywidgets as w
import pytest

from workbench.catalogue import running, spec
from workbench.catalogue.context import Stopped
from workbench.explore.browser import Browser
from workbench.explore.controls import Control
from workbench.explore.explorer import Explorer
from workbench.explore.live import guard

IDS = list(spec.all_specs())


def explore(id, **parameters):
    return Explorer(spec.find(id), parameters)


@pytest.mark.parametrize("id", IDS)
def test_every_experiment_gets_its_explorer(id):
    explorer = explore(id)
    assert set(explorer.controls) == {parameter.name for parameter in spec.find(id).parameters}
    assert explorer._message.value == ""
    assert len(explorer._figure.data) > 0
    assert "seed 0" in explorer._below.value


def test_the_hardware_comes_first():
    assert next(iter(explore("lambdascale/block-count").controls)) == "cluster"


def test_moving_a_control_moves_the_figure():
    explorer = explore("lambdascale/block-count")
    before = explorer._figure.data[0].y[5]
    explorer.controls["nodes"].value.value = 64
    assert explorer._figure.data[0].y[5] > before
    assert explorer._figure.layout.title.text.endswith("to 64 nodes, by number of blocks")
    assert "to 64 nodes" in explorer._below.value


def test_slider_and_number_box_stay_together():
    control = explore("lambdascale/block-count").controls["nodes"]
    slider, box = control.widget.children
    slider.value = 33
    assert box.value == 33
    box.value = 12
    assert slider.value == 12
    assert control.get() == 12


def test_a_logarithmic_slider_gives_the_value_not_the_exponent():
    control = explore("lambdascale/block-count").controls["bandwidth_factor"]
    slider, box = control.widget.children
    slider.value = 10.0
    assert box.value == pytest.approx(10.0)
    assert control.get() == pytest.approx(10.0)


def test_a_play_button_walks_through_the_steps():
    explorer = explore("theory/schedule")
    play = explorer.controls["step"].widget.children[2]
    assert isinstance(play, w.Play)
    play.value = 3
    assert explorer.controls["step"].get() == 3
    assert "held after step 3" in explorer._figure.layout.annotations[0].text


def test_an_error_is_a_visible_alert_and_goes_away_again():
    explorer = explore("blitzscale/fig14")
    explorer.controls["cluster"].value.value = "lambdascale-testbed1"
    assert 'role="alert"' in explorer._message.value
    assert "one accelerator per host" in explorer._message.value
    explorer.controls["cluster"].value.value = "blitzscale-a"
    assert explorer._message.value == ""


def test_texts_from_data_are_escaped():
    message = w.HTML()

    @guard(message, threading.RLock())
    def fails():
        raise ValueError("<script>alert(1)</script>")

    fails()
    assert "<script>" not in message.value
    assert "&lt;script&gt;" in message.value


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

    monkeypatch.setattr(running, "run", slow)
    explorer.buttons["simpy"].click()
    assert started.wait(30)
    explorer._stop_button.click()
    explorer.wait(30)
    assert not gone_on.is_set()
    assert "Stopped" in explorer._status.value
    assert explorer._message.value == ""
    assert explorer._stop_button.disabled


def test_off_the_papers_hardware_the_marks_turn_grey():
    explorer = explore("lambdascale/nccl-honest")

    def diamonds():
        return {
            trace.marker.color for trace in explorer._figure.data if "recorded by the authors" in (trace.name or "")
        }

    assert diamonds() != {"#8c8c8c"}
    explorer.controls["cluster"].value.value = "blitzscale-a"
    assert diamonds() == {"#8c8c8c"}


def test_an_own_profile_appears_among_the_choices(tmp_path):
    import workbench as wb

    mine = wb.cluster(hosts=4, accelerators=1, accelerator="h100-80gb-sxm", nic_bytes_per_s=25e9, nics=1, name="mine")
    explorer = explore("lambdascale/block-count", cluster=mine, rate="nominal")
    assert explorer.controls["cluster"].value.options[0][0] == "mine"
    assert "mine NIC, nominal" in explorer._below.value


def test_every_end_of_every_slider_keeps_the_explorer_alive():
    explorer = explore("theory/schedule")
    for name in ("nodes", "blocks", "step"):
        slider = explorer.controls[name].widget.children[0]
        for end in (slider.min, slider.max):
            slider.value = end
            assert explorer._message.value == "", (name, end)


def test_controls_of_all_kinds_know_their_value():
    kinds = {parameter.kind for id in IDS for parameter in spec.find(id).parameters}
    assert kinds == {int, float, bool, str}
    for id in IDS:
        values = spec.find(id).bind({})
        for parameter in spec.find(id).parameters:
            assert Control(parameter, values[parameter.name]).get() == pytest.approx(
                values[parameter.name]
            ) or isinstance(values[parameter.name], str | tuple)


def test_browsing_a_paper_shows_what_is_there_and_why_the_rest_is_not():
    browser = Browser("lambdascale")
    labels = [label for label, _ in browser.select.options]
    assert any(label.startswith("● Fig 5") for label in labels)
    missing = next(value for label, value in browser.select.options if label.startswith("○ Fig 8"))
    browser.select.value = missing
    assert "no entry in this version" in browser._place.children[0].value
    table1 = next(value for label, value in browser.select.options if "Tab 1" in label)
    browser.select.value = table1
    assert "no entry" not in browser._place.children[0].value
    assert browser._message.value == ""
