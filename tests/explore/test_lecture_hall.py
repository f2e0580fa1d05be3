"""Before a class: one button puts every control back, another makes letters and marks large."""

import math

import ipywidgets as w
import pytest

from workbench.catalogue import running, spec
from workbench.explore.browser import Browser
from workbench.explore.controls import Control
from workbench.explore.explorer import Explorer
from workbench.figures import sketch
from workbench.figures.projector import PROJECTOR

IDS = list(spec.all_specs())
DRAWN = list({
    entry.draw.split(".")[0]: entry.id
    for entry in spec.all_specs().values()
    if entry.seconds.get(entry.backends[0], 0.0) <= 0.05
}.values())  # fmt: skip
"""One quick experiment of each module that draws."""


def explore(id, **parameters):
    return Explorer(spec.find(id), parameters)


def moved(control):
    """Another value that a control admits, and that nothing else need follow."""
    value, about = control.value, control.parameter.about
    if isinstance(value, w.Checkbox):
        return not value.value
    if control.slider is not None:
        return value.max if value.value != value.max else value.min
    if isinstance(value, w.Dropdown):
        return value.options[-1][1]
    if isinstance(value, w.SelectMultiple):
        return value.options[-1:]
    if about.trace:
        return value.options[0]
    return value.value


@pytest.mark.parametrize("id", IDS)
def test_every_control_of_every_experiment_goes_back(id):
    entry = spec.find(id)
    values = entry.bind({})
    controls = [Control(item, values[item.name]) for item in entry.parameters]
    first = [control.get() for control in controls]
    for control in controls:
        control.value.value = moved(control)
    assert [control.get() for control in controls] != first
    for control in controls:
        control.reset()
    assert [control.get() for control in controls] == first


def test_a_reset_is_answered_once(monkeypatch):
    explorer = explore("lambdascale/block-count")
    first, asked = explorer.values(), []
    monkeypatch.setattr(Explorer, "_answer", lambda self, draw: asked.append(self.values()))
    for control in explorer.controls.values():
        control.value.value = moved(control)
    assert len(asked) >= len(first) - 1
    asked.clear()
    explorer._reset_button.click()
    assert asked == [first]


def test_after_a_reset_the_figure_and_the_words_are_those_of_the_first_settings():
    """The first settings are those that the explorer was opened with, and an alert goes away."""
    explorer = explore("lambdascale/block-count", nodes=16)
    title, words = explorer._figure.layout.title.text, explorer._below.value
    explorer.controls["nodes"].slider.value = 64
    assert explorer._figure.layout.title.text != title
    explorer._message.value = "something is wrong"
    explorer._reset_button.click()
    assert (explorer._figure.layout.title.text, explorer._below.value) == (title, words)
    assert explorer.controls["nodes"].slider.value == 16
    assert explorer._message.value == ""


def test_a_reset_stops_what_plays():
    control = explore("theory/schedule").controls["step"]
    control.play.playing = True
    control.reset()
    assert not control.play.playing


def test_larger_text_enlarges_letters_marks_and_their_room_and_nothing_else():
    explorer = explore("lambdascale/block-count")
    figure = explorer._figure
    before = figure.to_dict()
    explorer._size_button.click()
    assert explorer._size_button.description == "Usual text"
    assert "workbench-projector" in explorer.widget._dom_classes
    assert figure.layout.title.font.size == 15 * PROJECTOR
    assert figure.layout.template.layout.font.size == 13 * PROJECTOR
    assert figure.layout.template.layout.xaxis.title.font.size == 13 * PROJECTOR
    assert figure.layout.height >= before["layout"]["height"] * PROJECTOR
    for old, new in zip(before["data"], figure.data, strict=True):
        assert list(new.x) == list(old["x"])
        assert list(new.y) == list(old["y"])
        assert new.marker.size == old["marker"]["size"] * PROJECTOR
    explorer.controls["nodes"].slider.value = 64  # stays large
    assert figure.layout.title.font.size == 15 * PROJECTOR
    explorer._reset_button.click()
    explorer._size_button.click()
    assert "workbench-projector" not in explorer.widget._dom_classes
    assert figure.to_dict() == before


@pytest.mark.parametrize("id", DRAWN)
def test_no_letter_of_an_enlarged_figure_is_small(id):
    """Every size that a figure states, times the factor; bars stay as wide as their data say."""
    entry = spec.find(id)
    outcome = running.run(entry, {}, backends=entry.backends[0])
    usual, large = dict(sizes(sketch(outcome))), dict(sizes(sketch(outcome, scale=PROJECTOR)))
    assert set(usual) == set(large)
    for place, size in usual.items():
        grown = size * PROJECTOR if place[-1] == "size" else size
        assert math.isclose(large[place], grown), place


def sizes(part, place=()):
    """Font and marker sizes, and the widths of bars, by their place in a figure."""
    if isinstance(part, dict):
        for name, item in part.items():
            inside = bool(place) and str(place[-1]).endswith(("font", "marker"))
            if isinstance(item, int | float) and ((name == "size" and inside) or (name == "width" and len(place) == 2)):
                yield (*place, name), item
            else:
                yield from sizes(item, (*place, name))
    elif isinstance(part, list | tuple):
        for index, item in enumerate(part):
            yield from sizes(item, (*place, index))


def test_an_alert_stays_when_letters_grow():
    explorer = explore("blitzscale/fig14")
    explorer.controls["cluster"].value.value = "lambdascale-testbed1"
    alert = explorer._message.value
    explorer._size_button.click()
    assert alert
    assert explorer._message.value == alert


def test_an_explorer_without_an_answer_yet_is_large_too():
    entry = spec.find("lambdascale/fig5")
    explorer = Explorer(entry._replace(seconds=dict.fromkeys(entry.backends, 9.0)), {}, large=True)
    assert explorer._figure.layout.template.layout.font.size == 13 * PROJECTOR
    explorer._size_button.click()
    assert explorer._figure.layout.template.layout.font.size == 13


def test_browsing_on_keeps_the_size():
    browser = Browser("lambdascale")
    browser._shown._size_button.click()
    for label in ("Tab 1", "Fig 5"):  # the first has no explorer
        browser.select.value = next(value for text, value in browser.select.options if label in text)
    assert browser._shown.large
    assert browser._shown._figure.layout.title.font.size == 15 * PROJECTOR
