"""One control a parameter: the widget, with a number box beside each slider."""

import math
from typing import Any

import ipywidgets as w
import polars as pl

from workbench import profiles, workloads
from workbench.catalogue.parameters import Parameter
from workbench.errors import UserError
from workbench.figures.text import escape

DIGITS = 6
"""Of a number that a slider gives; more are cut by the box beside it."""

_STYLE = {"description_width": "initial"}
TRACK_PIXELS = 120
"""A slider is never narrower than this."""


class Control:
    """The widget of one parameter: its label on a line of its own, what sets it below.

    Attributes:
        widget: what is displayed.
        value: the traitlet-bearing widget whose `value` is the parameter.
        slider, play: what else moves it; None where there is no such thing.
    """

    def __init__(self, parameter: Parameter, value: Any):
        self.parameter = parameter
        self._make(parameter, value)
        self._first = self.value.value

    def _make(self, parameter: Parameter, value: Any) -> None:
        self.slider = self.play = None
        about = parameter.about
        label = f"{about.label} ({about.unit})" if about.unit else about.label
        if parameter.many:
            self.value = _several(parameter, value)
        elif parameter.kind is bool:
            self.value = self.widget = w.Checkbox(
                value=value, description=label, indent=False, style=_STYLE, layout=_wide()
            )
            return
        elif parameter.kind is str:
            self.value = _choice(parameter, value)
        else:
            self.slider, self.value = _slider(parameter, value)
            self.play = _play_button(self.slider) if about.play else None
        self.value.tooltip = label
        row = w.HBox([self.slider, self.value], layout=w.Layout(width="100%")) if self.slider else self.value
        lines = [_label(label), row, *([self.play] if self.play else [])]
        self.widget = w.VBox(lines, layout=w.Layout(width="100%"))
        self.widget.add_class("workbench-control")

    def get(self) -> Any:
        """The parameter's present value."""
        return self.value.value

    def reset(self) -> None:
        """Stand as at first; what plays stops."""
        if self.play:
            self.play.playing = False
        self.value.value = self._first


def _label(text: str) -> w.HTML:
    """A label that breaks into lines where it is too long; `Polish` finds it by its class."""
    return w.HTML(f'<div class="workbench-label" style="line-height:1.4;padding-top:4px">{escape(text)}</div>')


def _wide() -> w.Layout:
    return w.Layout(width="calc(100% - 4px)")  # a margin of 2 pixels on each side belongs to every widget


def _several(parameter: Parameter, value: Any) -> w.Widget:
    if choices := parameter.about.choices:
        return w.SelectMultiple(options=choices, value=value, rows=min(len(choices), 7), layout=_wide())
    text = ", ".join(f"{item:g}" if isinstance(item, float) else str(item) for item in value)
    return w.Text(value=text, continuous_update=False, layout=_wide())


def _choice(parameter: Parameter, value: Any) -> w.Widget:
    about = parameter.about
    if about.trace:
        return w.Combobox(
            value=value, options=_trace_names(), ensure_option=False, continuous_update=False, layout=_wide()
        )
    if not about.profile and not about.choices:
        return w.Text(value=value, continuous_update=False, layout=_wide())
    options = _profiles(about.profile) if about.profile else {choice: choice for choice in about.choices}
    if value not in options.values():
        options = {getattr(value, "name", value): value, **options}
    return w.Dropdown(options=list(options.items()), value=value, layout=_wide())


def _profiles(kind: str) -> dict[str, str]:
    """What a list shows -> the name it stands for; a cluster that no transfer can run on says so."""
    table = {"cluster": profiles.clusters, "accelerator": profiles.accelerators, "model": profiles.models}[kind]()
    marks = dict(table.select("name", _unlike()).rows()) if kind == "cluster" else dict.fromkeys(table["name"], "")
    if kind != "model" and "local" not in marks and (mark := _local_mark(kind)) is not None:
        marks["local"] = mark
    return {f"{name}{mark}": name for name, mark in marks.items()}


UNLIKE, NO_CARD = " (unlike hosts)", " (no network card stated)"


def _unlike() -> pl.Expr:
    """Why no transfer can run on a cluster, "" where one can."""
    card = pl.any_horizontal(pl.col("nic_nominal_bytes_per_s", "nic_achievable_bytes_per_s").is_not_null())
    return pl.when(~pl.col("uniform")).then(pl.lit(UNLIKE)).when(card).then(pl.lit("")).otherwise(pl.lit(NO_CARD))


def _local_mark(kind: str) -> str | None:
    """The same for this machine's own profile; None where it was never measured."""
    try:
        found = (profiles.cluster if kind == "cluster" else profiles.accelerator)("local")
    except UserError:
        return None
    return "" if kind != "cluster" or found.groups[0].nic else NO_CARD


def _trace_names() -> list[str]:
    """Traces that are here, then generated stand-ins; a path may be typed."""
    table = workloads.traces()
    held = table.filter(pl.col("held").is_not_null())["name"].to_list()
    return [*held, *table["stand_in"].drop_nulls().to_list()]


def _slider(parameter: Parameter, value: float) -> tuple[w.Widget, w.Widget]:
    """A slider, and the number box beside it, which moves with it."""
    about, whole = parameter.about, parameter.kind is int
    low, high = about.low, about.high
    if low is None or high is None:
        raise TypeError(f"parameter {parameter.name!r} needs a range to have a slider")
    grow = w.Layout(flex="1 1 auto", min_width=f"{TRACK_PIXELS}px", width="auto")
    common = {"continuous_update": False, "readout": False, "layout": grow}
    if about.log:
        step = about.step or 0.02
        slider = w.FloatLogSlider(value=value, base=10, min=math.log10(low), max=math.log10(high), step=step, **common)
    elif whole:
        slider = w.IntSlider(value=value, min=int(low), max=int(high), step=int(about.step or 1), **common)
    else:
        slider = w.FloatSlider(value=value, min=low, max=high, step=about.step or (high - low) / 100, **common)
    kind = w.BoundedIntText if whole else w.BoundedFloatText
    extra = {"step": int(about.step or 1)} if whole else {"step": about.step if about.step and not about.log else None}
    beside = w.Layout(width="124px", flex="0 0 auto")
    box = kind(value=value, min=parameter.kind(low), max=parameter.kind(high), layout=beside, **extra)
    within = 1e-9 if whole else 10.0 ** (1 - DIGITS)  # else they would round each other's values
    slider.observe(lambda change: _set(box, _short(parameter.kind(change["new"])), within), names="value")
    box.observe(lambda change: _set(slider, change["new"], within), names="value")
    return slider, box


def _short(value: float) -> float:
    """What a slider gives, in so many digits as the box beside it has room for; whole numbers stay."""
    return value if isinstance(value, int) else float(f"{value:.{DIGITS}g}")


def _set(widget: w.Widget, value: Any, within: float = 1e-9) -> None:
    """Set a widget to a value, unless it stands there but for a relative difference within this."""
    if not math.isclose(float(widget.value), float(value), rel_tol=within, abs_tol=1e-300):
        widget.value = value


def _play_button(slider: w.IntSlider) -> w.Play:
    """A play button that moves a slider (animations are not supported by live figures)."""
    play = w.Play(
        value=slider.value, min=slider.min, max=slider.max, step=slider.step, interval=700, repeat=False,
        description="Play", show_repeat=False, layout=w.Layout(flex="0 0 auto"),
    )  # fmt: skip
    play.observe(lambda change: _set(slider, change["new"]), names="value")
    slider.observe(lambda change: _set(play, change["new"]), names="value")
    return play
