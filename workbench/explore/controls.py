"""One control a parameter: the widget, with a number box beside each slider."""

import math
from typing import Any

import ipywidgets as w
import polars as pl

from workbench import profiles, workloads
from workbench.catalogue.parameters import Parameter
from workbench.errors import UserError

_STYLE = {"description_width": "initial"}


class Control:
    """The widget of one parameter.

    Attributes:
        widget: what is displayed.
        value: the traitlet-bearing widget whose `value` is the parameter.
    """

    def __init__(self, parameter: Parameter, value: Any):
        self.parameter = parameter
        about = parameter.about
        label = f"{about.label} ({about.unit})" if about.unit else about.label
        if parameter.many:
            self.value = _several(parameter, label, value)
            self.widget = self.value
        elif parameter.kind is bool:
            self.value = w.Checkbox(value=value, description=label, indent=False, style=_STYLE)
            self.widget = self.value
        elif parameter.kind is str:
            self.value = _choice(parameter, label, value)
            self.widget = self.value
        else:
            self.value, self.widget = _slider(parameter, label, value)

    def get(self) -> Any:
        """The parameter's present value."""
        return self.value.value


def _several(parameter: Parameter, label: str, value: Any) -> w.Widget:
    if parameter.about.choices:
        return w.SelectMultiple(
            options=parameter.about.choices, value=value, description=label, rows=min(len(parameter.about.choices), 7),
            style=_STYLE, layout=w.Layout(width="100%"),
        )  # fmt: skip
    text = ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
    return w.Text(value=text, description=label, continuous_update=False, style=_STYLE, layout=w.Layout(width="100%"))


def _choice(parameter: Parameter, label: str, value: Any) -> w.Widget:
    if parameter.about.profile:
        options = _profile_names(parameter.about.profile)
        if value not in options:
            options = [value, *options]
    elif parameter.about.choices:
        options = list(parameter.about.choices)
    else:
        common = {"value": value, "description": label, "continuous_update": False, "style": _STYLE}
        if parameter.about.trace:
            return w.Combobox(options=_trace_names(), ensure_option=False, layout=w.Layout(width="100%"), **common)
        return w.Text(**common)
    shown = [(getattr(option, "name", option), option) for option in options]
    return w.Dropdown(options=shown, value=value, description=label, style=_STYLE, layout=w.Layout(width="100%"))


def _profile_names(kind: str) -> list[str]:
    table = {"cluster": profiles.clusters, "accelerator": profiles.accelerators, "model": profiles.models}[kind]()
    names = table["name"].to_list()
    if kind != "model" and "local" not in names:
        try:
            (profiles.cluster if kind == "cluster" else profiles.accelerator)("local")
        except UserError:
            return names
        names.append("local")
    return names


def _trace_names() -> list[str]:
    """Traces that are here, then generated stand-ins; a path may be typed."""
    table = workloads.traces()
    held = table.filter(pl.col("held").is_not_null())["name"].to_list()
    return [*held, *table["stand_in"].drop_nulls().to_list()]


def _slider(parameter: Parameter, label: str, value: float) -> tuple[w.Widget, w.Widget]:
    about, whole = parameter.about, parameter.kind is int
    low, high = about.low, about.high
    if low is None or high is None:
        raise TypeError(f"parameter {parameter.name!r} needs a range to have a slider")
    grow = w.Layout(flex="1 1 auto", min_width="150px")
    common = {"description": label, "continuous_update": False, "readout": False, "style": _STYLE, "layout": grow}
    box_layout = w.Layout(width="110px", flex="0 0 auto")
    if about.log:
        step = about.step or 0.02
        slider = w.FloatLogSlider(value=value, base=10, min=math.log10(low), max=math.log10(high), step=step, **common)
    elif whole:
        slider = w.IntSlider(value=value, min=int(low), max=int(high), step=int(about.step or 1), **common)
    else:
        slider = w.FloatSlider(value=value, min=low, max=high, step=about.step or (high - low) / 100, **common)
    kind = w.BoundedIntText if whole else w.BoundedFloatText
    extra = {"step": int(about.step or 1)} if whole else {"step": about.step if about.step and not about.log else None}
    box = kind(value=value, min=parameter.kind(low), max=parameter.kind(high), layout=box_layout, **extra)
    box.add_class("workbench-number")
    box.tooltip = label
    slider.observe(lambda change: _set(box, parameter.kind(change["new"])), names="value")
    box.observe(lambda change: _set(slider, change["new"]), names="value")
    parts = [slider, box, play_button(slider)] if about.play else [slider, box]
    return box, w.HBox(parts, layout=w.Layout(width="100%"))


def _set(widget: w.Widget, value: Any) -> None:
    if not math.isclose(float(widget.value), float(value), rel_tol=1e-9, abs_tol=1e-300):
        widget.value = value


def play_button(slider: w.IntSlider) -> w.Play:
    """A play button that moves a slider (animations are not supported by live figures)."""
    play = w.Play(
        value=slider.value, min=slider.min, max=slider.max, step=slider.step, interval=700, repeat=False,
        description="Play", show_repeat=False, layout=w.Layout(flex="0 0 auto"),
    )  # fmt: skip
    play.observe(lambda change: _set(slider, change["new"]), names="value")
    slider.observe(lambda change: _set(play, change["new"]), names="value")
    return play
