"""Every entry of the catalogue: it runs, draws, says a sentence, and is what its row in the facts promises."""

import csv
import json
import math
import pathlib
import re
import sys
from importlib import import_module

import numpy as np
import polars as pl
import pytest
from quick_runs import alone, tables_of, whole_run
from tick_labels import value_of_tick

import workbench as wb
from workbench.blending import simulated as blending_simulated
from workbench.caching import simulated as caching_simulated
from workbench.caching.model import Evictions, KeepAliveRun, ScaleUps
from workbench.catalogue import published, spec
from workbench.chains import simulated as chains_simulated
from workbench.errors import UnknownName
from workbench.figures import base, draw, sketch
from workbench.figures.base import AXIS_ROOM
from workbench.queueing import ActivePath, Path, simulated
from workbench.scaling import simulated as scaling_simulated
from workbench.serving.model import Outcome as Served

IDS = list(spec.all_specs())
SIMULATORS = {
    "simulate",
    *simulated.__all__,
    *caching_simulated.__all__,
    *scaling_simulated.__all__,
    *chains_simulated.__all__,
    *blending_simulated.__all__,
}


@pytest.mark.parametrize("id", IDS)
def test_it_runs_draws_and_speaks(id):
    outcome = whole_run(id)
    assert outcome.sentence.endswith(".")
    assert not re.search(r"\bnan\b", outcome.sentence.lower())
    for table in outcome.tables.values():
        assert "backend" in table.columns
    drawn = draw(outcome)
    figure = drawn.to_dict()
    assert figure["data"], "an empty figure"
    assert figure["layout"]["title"]["text"]
    json.loads(drawn.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("id", IDS)
def test_the_legend_has_room_of_its_own_and_axes_are_named(id):
    """In every panel the axis of the numbers says what they are: across where bars lie, else up."""
    figure = draw(alone(id, spec.find(id).backends[0]))
    layout = figure.layout
    plot = layout.height - layout.margin.t - layout.margin.b
    assert -layout.legend.y * plot == pytest.approx(AXIS_ROOM)
    assert plot > 250
    axes = layout.to_plotly_json()
    titled = {name[1:] for name, axis in axes.items() if "axis" in name and axis.get("title", {}).get("text")}
    assert titled == {name[1:] for name in axes if name.startswith("yaxis")}


@pytest.mark.parametrize("id", IDS)
def test_every_logarithmic_axis_states_its_ticks(id):
    layout = sketch(alone(id, spec.find(id).backends[0]))["layout"]
    axes = [axis for name, axis in layout.items() if name[1:].startswith("axis") and axis.get("type") == "log"]
    for axis in axes:
        assert len(axis["tickvals"]) >= 2
        assert len(axis["ticktext"]) == len(axis["tickvals"])
        for text, place in zip(axis["ticktext"], axis["tickvals"], strict=True):
            assert math.isclose(value_of_tick(text), place, rel_tol=1e-5)


@pytest.mark.parametrize("id", IDS)
def test_only_axes_of_categories_show_texts_that_look_like_numbers(id):
    """Plotly tells an axis by its data once they change: texts are categories, and numbers are not."""
    made = sketch(alone(id, spec.find(id).backends[0]))
    for trace in made["data"]:
        for letter in "xy":
            axis = made["layout"].get(f"{letter}axis{trace.get(f'{letter}axis', letter)[1:]}", {})
            values = [value for value in trace.get(letter) or () if value is not None]
            if axis.get("type") == "category":
                assert all(isinstance(value, str) for value in values)
            else:
                assert not any(re.fullmatch(r"[-+]?[\d.]+(e[-+]?\d+)?", str(v)) for v in values if isinstance(v, str))


ALONE = [
    (id, name)
    for id in IDS
    for name in spec.find(id).backends[1:]
    if name != "torch" and spec.find(id).seconds.get(name, 0.0) <= 5
]
"""The second backends that take some seconds at most; the others run beside the first one only. For real ones see
`test_real_entries`."""


@pytest.mark.parametrize(("id", "backend"), ALONE)
def test_each_backend_can_be_asked_alone(id, backend):
    outcome = alone(id, backend)
    assert outcome.backends == (backend,)
    assert outcome.sentence.endswith(".")
    assert draw(outcome).to_dict()["data"]


class Slow:
    """What the simulator of transfers returns, with every time tripled."""

    def __init__(self, run):
        self.finish_s, self.arrival_s = 3 * run.finish_s, 3 * run.arrival_s
        self.completion = run.completion.with_columns(pl.col("complete_s") * 3)


def slowed(run):
    """What a simulator returned, as if everything, or every customer, had taken three times as long."""
    if isinstance(run, Path):
        arrival = run.arrival_s
        return run._replace(
            start_s=arrival + 3 * (run.start_s - arrival), finish_s=arrival + 3 * (run.finish_s - arrival)
        )
    if isinstance(run, Served):
        instants = ("first_token_s", "finish_s", "wait_s", "iteration_end_s")
        return run._replace(**{name: 3 * getattr(run, name) for name in instants})
    if isinstance(run, blending_simulated.Simulated):
        return run._replace(finish_s=3 * run.finish_s)
    if isinstance(run, KeepAliveRun):
        return run._replace(copy_s=3 * run.copy_s)
    if isinstance(run, Evictions):
        return Evictions(3 * run.stay_s, 3 * run.idle_s)
    if isinstance(run, ScaleUps):
        return run._replace(missed=3 * run.missed)
    if isinstance(run, float | np.ndarray):
        return 3 * run
    return run._replace(active=3 * run.active) if isinstance(run, ActivePath) else Slow(run)


COUNTED = ("expected active models", "host-cache misses")
"""Series without a unit of time that grow threefold all the same."""


def slow(simulator):
    return lambda *args, **options: slowed(simulator(*args, **options))


SHARES = "lambdascale/slow-link"


def test_a_simulated_share_comes_from_the_simulator(monkeypatch):
    """A ratio does not change when all is slower; it does when only the runs with a slow link are."""
    entry = spec.find(SHARES)
    before = alone(entry.id, "simpy").tables["share"]
    module = import_module("workbench.catalogue.lambdascale.slow_link")
    true = module.simulate

    def simulator(schedule, network, size):
        run = true(schedule, network, size)
        return Slow(run) if network.links else run

    monkeypatch.setattr(module, "simulate", simulator)
    after = tables_of(entry.id, "simpy")["share"]
    for one, other in zip(before.to_dicts(), after.to_dicts(), strict=True):
        assert other["kept"] == pytest.approx(one["kept"] / (1 if one["slow_share"] == 1 else 3)), one


PROMISES = ("blitzscale/fig3", "serving/startup-cliff", "serving/detection")


@pytest.mark.parametrize("id", PROMISES)
def test_promises_kept_come_from_the_simulator(id, monkeypatch):
    """A simulator whose first tokens come an hour later keeps no promise."""
    module = import_module("workbench.catalogue.serving.bursts")
    true = module.simulate

    def simulator(lowered):
        run = true(lowered)
        return run._replace(first_token_s=run.first_token_s + 3600.0, finish_s=run.finish_s + 3600.0)

    entry = spec.find(id)
    before = alone(entry.id, "simpy").tables["kept"]
    monkeypatch.setattr(module, "simulate", simulator)
    after = tables_of(entry.id, "simpy")["kept"]
    assert before["ttft_kept"].min() > 0
    assert after["ttft_kept"].max() == 0


WATCHED = ("lambdascale/fig8", "lambdascale/fig9", "lambdascale/fig11")


@pytest.mark.parametrize("id", WATCHED)
def test_first_tokens_come_from_the_simulator(id, monkeypatch):
    """A simulator in which everything happens an hour later shows in all that is told of first tokens."""
    module = import_module("workbench.catalogue.lambdascale.replaying")
    true = module.simulate

    def simulator(lowered, *rest):
        run = true(lowered, *rest)
        instants = ("first_token_s", "finish_s", "iteration_end_s")
        return run._replace(**{name: getattr(run, name) + 3600.0 for name in instants})

    entry = spec.find(id)
    first = pl.col("series").str.starts_with("first tokens")
    before = alone(entry.id, "simpy").tables["headline"].filter(first)
    monkeypatch.setattr(module, "simulate", simulator)
    after = tables_of(entry.id, "simpy")["headline"].filter(first)
    assert len(before)
    assert (after["value"] - before["value"]).to_list() == pytest.approx([3600.0] * len(before))


def test_tokens_made_come_from_the_simulator(monkeypatch):
    """A simulator whose steps end an hour later makes no token in time."""
    module = import_module("workbench.catalogue.lambdascale.replaying")
    true = module.simulate
    entry = spec.find("lambdascale/early-serving")
    before = alone(entry.id, "simpy").tables["ends"]
    monkeypatch.setattr(module, "simulate", lambda *run: _later(true(*run)))
    after = tables_of(entry.id, "simpy")["ends"]
    assert before["made"].min() > 0
    assert after["made"].max() == 0


def _later(run):
    return run._replace(iteration_end_s=run.iteration_end_s + 3600.0)


def test_gpu_time_comes_from_the_simulator(monkeypatch):
    """A simulator in which all takes twice as long holds GPUs for twice the time."""
    module = import_module("workbench.catalogue.lambdascale.replaying")
    true = module.simulate
    entry = spec.find("lambdascale/fig10")
    before = tables_of(entry.id, "simpy", reconstructions=1)["gpu_time"]

    def simulator(lowered, *rest):
        run = true(lowered, *rest)
        return run._replace(states=run.states * [2, 1, 1], finish_s=2 * run.finish_s)

    monkeypatch.setattr(module, "simulate", simulator)
    after = tables_of(entry.id, "simpy", reconstructions=1)["gpu_time"]
    assert (after["gpu_s"] / before["gpu_s"]).to_list() == pytest.approx([2.0] * len(before))


WITHOUT_SECONDS = (
    SHARES, *PROMISES, *WATCHED, "lambdascale/early-serving", "lambdascale/fig10", "serving/replay",
)  # fmt: skip


POOLS = {id for id in IDS if id.startswith("aegaeon/")} - {"aegaeon/fig4"}
"""Tried with a simulator of their own, in test_pooling_experiments."""
LIVE = {f"blitzscale/{name}" for name in ("fig8", "fig9", "fig15", "fig19", "fig21", "redundancy")}
"""Likewise, in test_live_experiments."""
SHOWDOWN = {id for id in IDS if id.startswith("showdown/")}
"""Likewise, in test_showdown_experiments."""
APART = {*WITHOUT_SECONDS, *POOLS, *LIVE, *SHOWDOWN}
SECONDS = [id for id in IDS if "simpy" in spec.find(id).backends and id not in APART]


@pytest.mark.parametrize("id", SECONDS)
def test_a_simulated_number_comes_from_the_simulator(id, monkeypatch):
    """A simulator that gives three times as much shows in every number of its units that is labelled so."""
    entry = spec.find(id)
    before = alone(entry.id, "simpy").tables["headline"]
    using = [module for name, module in sys.modules.items() if name.startswith("workbench.catalogue.")]
    for module in using:
        if hasattr(module, "_known") and hasattr(module._known, "cache_clear"):
            monkeypatch.setattr(module, "_known", module._known.__wrapped__)
        for name in SIMULATORS & set(vars(module)):
            monkeypatch.setattr(module, name, slow(getattr(module, name)))
    after = tables_of(entry.id, "simpy")["headline"]
    assert before["series"].to_list() == after["series"].to_list()
    tripled = [
        (one, other)
        for one, other in zip(before.to_dicts(), after.to_dicts(), strict=True)
        if one["unit"] in ("s", "steps", "bytes s") or one["series"].startswith(COUNTED)
    ]
    assert tripled
    for one, other in tripled:
        assert other["value"] == pytest.approx(3 * one["value"]), one


@pytest.mark.parametrize(("id", "panel"), [(id, panel) for id in IDS for panel in spec.find(id).panels])
def test_each_panel_can_be_drawn_alone(id, panel):
    assert draw(whole_run(id), panel).to_dict()["data"]


def test_an_unknown_panel_lists_near_ones():
    with pytest.raises(UnknownName, match="near names: links"):
        draw(whole_run("theory/schedule"), "link")


@pytest.mark.parametrize("id", [id for id in IDS if len(published.published(id))])
def test_figures_name_published_series_that_exist(id, monkeypatch):
    """One that no row of the facts bears is not drawn, and nobody notices."""
    entry, named, true = spec.find(id), set(), base.published_marks

    def marks(outcome, palette, **options):
        named.update(options.get("series") or ())
        return true(outcome, palette, **options)

    outcome = alone(id, entry.backends[0])
    draw(outcome)  # imports the module that draws it
    for name, module in list(sys.modules.items()):
        if name.startswith("workbench.figures") and hasattr(module, "published_marks"):
            monkeypatch.setattr(module, "published_marks", marks)
    for panel in (None, *entry.panels):
        draw(outcome, panel)
    assert named <= set(published.published(id)["series"])


@pytest.mark.parametrize("id", IDS)
def test_backends_agree_within_what_is_allowed(id):
    for agreement in whole_run(id).agreement:
        assert agreement.agrees, agreement
    declared = {pair for agree in spec.find(id).agrees for pair in agree.pairs if "torch" not in pair}
    assert {agreement.backends for agreement in whole_run(id).agreement} == declared


@pytest.mark.parametrize("id", IDS)
def test_computed_values_agree_and_never_count(id):
    for verdict in whole_run(id).verdicts:
        if verdict.verdict == "computed":
            assert "it agrees" in verdict.reason, verdict
        if verdict.verdict == "reproduced":
            assert verdict.strength in ("ordering", "exact") or verdict.tolerance is not None


@pytest.mark.parametrize("id", IDS)
def test_each_differs_names_the_assumption_and_a_run_that_moves_it(id):
    for verdict in whole_run(id).verdicts:
        if verdict.verdict == "differs":
            assert "Assumed here: " in verdict.reason, verdict
            if verdict.strength == "ordering" or "moves from" not in verdict.reason:
                continue
            moves = re.findall(r"moves from ([-+.e\d]+) to ([-+.e\d]+)", verdict.reason)
            assert moves, verdict
            assert all(float(before) != float(after) for before, after in moves), verdict
            assert re.search("inside the band|closes|beyond the band", verdict.reason), verdict


@pytest.mark.parametrize("id", [id for id in IDS if not id.startswith(("theory/", "serving/", "showdown/"))])
def test_it_stands_in_the_papers_catalogue(id):
    assert id in set(published.rows()["experiment"])


@pytest.mark.parametrize("id", IDS)
def test_every_parameter_has_a_range_and_a_source_or_is_said_to_be_chosen(id):
    table = wb.experiment(id).parameters
    assert table["source"].str.len_chars().min() > 0
    for parameter in spec.find(id).parameters:
        if parameter.kind in (int, float) and not parameter.many:
            assert parameter.about.low is not None, parameter.name
            assert parameter.about.high is not None, parameter.name


def test_off_the_papers_hardware_nothing_is_judged():
    result = wb.experiment("lambdascale/fig7").run("analytic", cluster="blitzscale-a")
    readings = set(result.verdicts()["verdict"])
    assert readings <= {"not comparable", "fitted", "computed"}
    diamonds = [trace for trace in result.figure().data if "recorded by the authors" in (trace.name or "")]
    assert {trace.marker.color for trace in diamonds} == {"#8c8c8c"}


def test_the_catalogue_table_and_an_unknown_id():
    table = wb.experiments()
    assert table["id"].to_list() == IDS
    folder = pathlib.Path(__file__).parents[2] / "data" / "published"
    texts = [file.read_text(encoding="utf-8").splitlines() for file in folder.glob("lambdascale*.csv")]
    rows = [row for lines in texts for row in csv.DictReader(lines)]
    points = sum(row["experiment"] == "lambdascale/fig7" for row in rows)
    assert table.filter(pl.col("id") == "lambdascale/fig7")["published_points"][0] == points > 0
    with pytest.raises(UnknownName, match="near names: lambdascale/fig7"):
        wb.experiment("lamdascale/fig7")
