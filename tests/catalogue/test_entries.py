"""Every entry of the catalogue: it runs, draws, says a sentence, and is what its row in the facts promises."""

import json

import polars as pl
import pytest

import workbench as wb
from workbench.catalogue import published, running, spec
from workbench.errors import UnknownName
from workbench.figures import draw

IDS = list(spec.all_specs())
QUICK = {id: [name for name in spec.find(id).backends if name != "torch"] for id in IDS}


@pytest.fixture(scope="module")
def outcomes():
    """Each experiment, run once by all its backends but the real one."""
    return {id: running.run(spec.find(id), {}, backends=QUICK[id], quick=True) for id in IDS}


@pytest.mark.parametrize("id", IDS)
def test_it_runs_draws_and_speaks(outcomes, id):
    outcome = outcomes[id]
    assert outcome.sentence.endswith(".")
    assert "nan" not in outcome.sentence.lower()
    for table in outcome.tables.values():
        assert "backend" in table.columns
    figure = draw(outcome).to_dict()
    assert figure["data"], "an empty figure"
    assert figure["layout"]["title"]["text"]
    json.dumps(draw(outcome).to_json())


@pytest.mark.parametrize(("id", "panel"), [(id, panel) for id in IDS for panel in spec.find(id).panels])
def test_each_panel_can_be_drawn_alone(outcomes, id, panel):
    assert draw(outcomes[id], panel).to_dict()["data"]


def test_an_unknown_panel_lists_near_ones(outcomes):
    with pytest.raises(UnknownName, match="near names: links"):
        draw(outcomes["theory/schedule"], "link")


@pytest.mark.parametrize("id", IDS)
def test_backends_agree_within_what_is_allowed(outcomes, id):
    for agreement in outcomes[id].agreement:
        assert agreement.agrees, agreement
    declared = {pair for agree in spec.find(id).agrees for pair in agree.pairs if "torch" not in pair}
    assert {agreement.backends for agreement in outcomes[id].agreement} == declared


@pytest.mark.parametrize("id", IDS)
def test_computed_values_agree_and_never_count(outcomes, id):
    for verdict in outcomes[id].verdicts:
        if verdict.verdict == "computed":
            assert "it agrees" in verdict.reason, verdict
        if verdict.verdict == "reproduced":
            assert verdict.strength in ("ordering", "exact") or verdict.tolerance is not None


@pytest.mark.parametrize("id", IDS)
def test_each_differs_names_the_assumption_and_a_run_that_moves_it(outcomes, id):
    for verdict in outcomes[id].verdicts:
        if verdict.verdict == "differs":
            assert "Assumed here: " in verdict.reason, verdict
            if verdict.strength != "ordering" and "moves from" in verdict.reason:
                before, after = verdict.reason.split("moves from ")[1].split(" to ")[:2]
                assert float(before) != float(after.split()[0])


@pytest.mark.parametrize("id", [id for id in IDS if not id.startswith("theory/")])
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


ENDS = [
    (id, parameter.name, end)
    for id in IDS
    for parameter in spec.find(id).parameters
    if parameter.kind in (int, float) and not parameter.many
    for end in (parameter.about.low, parameter.about.high)
]


@pytest.mark.parametrize(("id", "name", "end"), ENDS)
def test_each_slider_can_be_dragged_to_its_ends(id, name, end, shared_data):
    entry = spec.find(id)
    outcome = running.run(entry, {name: end}, backends=entry.backends[0])
    assert draw(outcome).to_dict()["data"]


def test_off_the_papers_hardware_nothing_is_judged():
    result = wb.experiment("lambdascale/fig7").run("analytic", cluster="blitzscale-a")
    readings = set(result.verdicts()["verdict"])
    assert readings <= {"not comparable", "fitted", "computed"}
    diamonds = [trace for trace in result.figure().data if "recorded by the authors" in (trace.name or "")]
    assert {trace.marker.color for trace in diamonds} == {"#8c8c8c"}


def test_the_catalogue_table_and_an_unknown_id():
    table = wb.experiments()
    assert table["id"].to_list() == IDS
    assert table.filter(pl.col("id") == "lambdascale/fig7")["published_points"][0] == len(
        wb.experiment("lambdascale/fig7").published
    )
    with pytest.raises(UnknownName, match="near names: lambdascale/fig7"):
        wb.experiment("lamdascale/fig7")
