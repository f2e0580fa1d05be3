"""Explorers without a browser: setting a control runs its callback at once, and errors become visible text."""

import re
import threading
import time

import ipywidgets as w
import plotly.graph_objects as go
import pytest

import workbench as wb
from workbench.catalogue import running, spec
from workbench.explore import explorer as explorer_module
from workbench.explore.controls import Control
from workbench.explore.explorer import Explorer
from workbench.explore.live import guard
from workbench.figures.base import BUTTONS
from workbench.figures.text import escape

IDS = list(spec.all_specs())
LONG_S = 2.0
"""Seconds of a run beyond which its button is not pressed here; the catalogue's tests make a quick one."""


def explore(id, **parameters):
    return Explorer(spec.find(id), parameters)


@pytest.mark.parametrize("id", IDS)
def test_every_experiment_gets_its_explorer(id):
    explorer = explore(id)
    assert set(explorer.controls) == {parameter.name for parameter in spec.find(id).parameters}
    assert explorer._message.value == ""
    if not explorer._instant():
        assert "Press a button" in explorer._status.value
        first = spec.find(id).backends[0]
        if spec.find(id).seconds.get(first, 0.0) > LONG_S:
            assert first in explorer.buttons
            return
        explorer.buttons[first].click()
        explorer.wait(60)
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


@pytest.mark.parametrize(
    ("id", "idle", "moving"),
    [("serving/throughput", "requests", "slots"), ("blitzscale/fig3", "tick_s", None)],
)
def test_a_control_that_changes_nothing_drawn_says_so(id, idle, moving):
    """Some settings are used only by what a button starts; a figure that stands still without a word looks broken."""
    explorer = explore(id)
    same = "What is drawn stays the same"
    for name in filter(None, (idle, moving)):
        before, slider = str(explorer._figure.to_dict()), explorer.controls[name].slider
        slider.value = slider.max
        assert (str(explorer._figure.to_dict()) == before) == (name == idle)
        assert (same in explorer._status.value) == (name == idle)
    explorer._reset_button.click()
    assert explorer._status.value == ""


def test_what_took_long_at_the_last_move_says_that_it_computes(monkeypatch):
    explorer = explore("theory/schedule")
    run, said = running.run_unjudged, []

    def slow(*asked, **how):
        said.append(explorer._status.value)
        time.sleep(explorer_module.PATIENCE_S + 0.01)
        return run(*asked, **how)

    monkeypatch.setattr(running, "run_unjudged", slow)
    explorer.controls["nodes"].value.value = 9
    explorer.controls["nodes"].value.value = 10
    assert said == ["", "<em>Computing …</em>"]
    assert explorer._status.value == ""


def test_slider_and_number_box_stay_together():
    control = explore("lambdascale/block-count").controls["nodes"]
    slider, box = control.slider, control.value
    slider.value = 33
    assert box.value == 33
    box.value = 12
    assert slider.value == 12
    assert control.get() == 12


def test_a_logarithmic_slider_gives_the_value_not_the_exponent():
    control = explore("lambdascale/block-count").controls["bandwidth_factor"]
    slider, box = control.slider, control.value
    slider.value = 10.0
    assert box.value == pytest.approx(10.0)
    assert control.get() == pytest.approx(10.0)


def test_a_slider_gives_as_many_digits_as_its_box_shows_and_what_is_typed_stays():
    control = explore("lambdascale/block-count").controls["bandwidth_factor"]
    control.slider.value = 2 / 3
    assert control.get() == 0.666667
    assert control.slider.value == 2 / 3  # the handle does not jump
    control.value.value = 1.23456789
    assert (control.get(), control.slider.value) == (1.23456789, 1.23456789)


def test_a_play_button_walks_through_the_steps():
    explorer = explore("theory/schedule")
    play = explorer.controls["step"].play
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


def test_where_no_backend_is_quick_a_moved_control_clears_the_figure():
    entry = spec.find("lambdascale/fig5")
    explorer = Explorer(entry._replace(seconds=dict.fromkeys(entry.backends, 9.0)), {})
    assert len(explorer._figure.data) == 0
    explorer.buttons["analytic"].click()
    explorer.wait(30)
    assert len(explorer._figure.data) > 0
    explorer.controls["blocks"].value.value = 5
    assert len(explorer._figure.data) == 0
    assert explorer._below.value == ""
    assert "Press a button" in explorer._status.value


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
    assert "mine network card, nominal" in explorer._below.value


def test_every_end_of_every_slider_keeps_the_explorer_alive():
    explorer = explore("theory/schedule")
    for name in ("nodes", "blocks", "step"):
        slider = explorer.controls[name].slider
        for end in (slider.min, slider.max):
            slider.value = end
            assert explorer._message.value == "", (name, end)


@pytest.mark.parametrize("id", IDS)
def test_no_end_of_a_slider_meets_an_error_that_nobody_planned(id):
    """A setting may be refused in a sentence; an error with the name of a class is a fault of ours."""
    explorer = explore(id)
    for name, control in explorer.controls.items():
        if control.slider:
            first = control.slider.value
            for end in (control.slider.min, control.slider.max):
                control.slider.value = 10**end if control.parameter.about.log else end
                assert not re.search(r"\w+(Error|Exception): ", explorer._message.value), (name, end)
            control.slider.value = first
            assert explorer._message.value == "", name


@pytest.mark.parametrize("id", IDS)
def test_controls_of_all_kinds_know_their_value(id):
    """What a control says is accepted as the parameter's value, and is the one that it was given."""
    entry = spec.find(id)
    values = entry.bind({})
    said = {item.name: Control(item, values[item.name]).get() for item in entry.parameters}
    bound = entry.bind(said)
    assert {
        name: pytest.approx(value) if isinstance(value, float) else value for name, value in values.items()
    } == bound


@pytest.mark.parametrize("id", IDS)
def test_a_label_stands_above_what_it_names_and_play_on_a_line_of_its_own(id):
    for control in explore(id).controls.values():
        if isinstance(control.widget, w.Checkbox):
            continue
        label, row, *below = control.widget.children
        assert escape(control.parameter.about.label) in label.value
        assert below == ([control.play] if control.play else [])
        if control.slider:
            assert row.children == (control.slider, control.value)
            assert control.slider.layout.min_width == "120px"
            assert not control.slider.description
        else:
            assert row is control.value
            assert row.layout.width == "calc(100% - 4px)"  # 2 pixels of margin on either side


def test_a_cluster_that_nothing_can_be_sent_in_says_so_in_the_list():
    options = {name: label for label, name in explore("lambdascale/fig7").controls["cluster"].value.options}
    assert options["lambdascale-testbed1"] == "lambdascale-testbed1"
    assert options["aegaeon-h800"] == "aegaeon-h800 (no network card stated)"
    assert options["server-chains-testbed"] == "server-chains-testbed (unlike hosts)"


@pytest.mark.parametrize("id", ["lambdascale/fig7", "blitzscale/fig14"])
def test_what_a_list_does_not_mark_can_be_chosen(id):
    explorer = explore(id)
    control = explorer.controls["cluster"].value
    for label, name in control.options:
        control.value = name
        if "one accelerator" not in explorer._message.value and "no link between" not in explorer._message.value:
            assert bool(explorer._message.value) == (label != name), (label, explorer._message.value)


def test_all_kinds_of_controls_are_met():
    parameters = [parameter for id in IDS for parameter in spec.find(id).parameters]
    assert {parameter.kind for parameter in parameters} == {int, float, bool, str}
    assert {parameter.many for parameter in parameters} == {True, False}


@pytest.mark.parametrize("id", ["theory/multicast", "blitzscale/fig14", "lambdascale/reorder"])
def test_what_is_shown_first_is_in_the_widget_when_the_browser_hears_of_it(id, monkeypatch):
    """What is said later travels as messages, which a browser that still loads plotly does not hear."""
    opened, real = [], go.FigureWidget.open

    def open_(self):
        real(self)
        opened.append((len(self._widget_data), self._widget_layout.get("title", {}).get("text"), dict(self._config)))

    monkeypatch.setattr(go.FigureWidget, "open", open_)
    figure = explore(id)._figure
    assert opened == [(len(figure.data), figure.layout.title.text, BUTTONS)]
    assert len(figure.data) > 0


def test_figures_have_the_projects_template_and_no_upload_button():
    """A new `FigureWidget` brings plotly's own template along: a white box in a dark notebook."""
    explorer = explore("lambdascale/block-count")
    assert explorer._figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
    explorer.controls["nodes"].value.value = 64
    assert explorer._figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"
    assert explorer._figure.layout.template.layout.legend.orientation == "h"
    assert explorer._figure._config["showSendToCloud"] is False


def test_an_entry_that_waits_for_its_button_can_be_live(monkeypatch):
    """The figure is there from the beginning and follows every move; no button is left for it."""
    entry = spec.find("blendserve/run-length")
    given = {"sizes": (5_000,), "video_tokens": 2_000}
    assert "compiled" in Explorer(entry, given).buttons
    made = []
    monkeypatch.setattr(explorer_module, "Explorer", lambda *about: made.append(Explorer(*about)) or made[0])
    assert wb.experiment(entry.id).explore(live=True, **given) is made[0].widget
    assert not made[0].buttons
    before = made[0]._below.value
    assert "reaches" in before
    assert made[0]._figure.data
    made[0].controls["video_tokens"].value.value = 4_000
    assert "reaches" in made[0]._below.value != before
    made[0].close()
