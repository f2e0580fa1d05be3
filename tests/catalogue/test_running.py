"""Running an experiment: backends, replications, parameters, verdicts, agreement and sources."""

import threading

import pytest

import workbench as wb
from workbench.catalogue import running
from workbench.catalogue.context import Context, Stopped
from workbench.errors import UnknownName, UserError


def readings(outcome):
    return [verdict.verdict for verdict in outcome.verdicts]


def test_default_backends_leave_the_real_run_out(toy):
    outcome = running.run(toy, {})
    assert outcome.backends == ("analytic", "simpy")
    assert set(outcome.tables["line"]["backend"]) == {"analytic", "simpy"}
    assert outcome.not_run == {}


def test_missing_torch_is_said_and_the_rest_runs(toy):
    outcome = running.run(toy, {}, backends=("analytic", "torch"))
    assert outcome.backends == ("analytic",)
    assert outcome.not_run["torch"].startswith("not run: The real run needs torch")
    assert "pip install" in outcome.not_run["torch"]


def test_nothing_but_a_missing_backend_is_an_error(toy):
    with pytest.raises(UserError, match="nothing ran"):
        running.run(toy, {}, backends="torch")


def test_every_reading(toy, points):
    outcome = running.run(toy, {}, backends="analytic", points=points)
    assert readings(outcome) == [
        "reproduced",  # 2 against 2.05 within 5 %
        "differs",  # 4 against 5
        "reproduced",  # 6, at least 5
        "fitted",
        "not comparable",  # no such x
        "computed",
        "not comparable",  # another unit
        "not comparable",  # no such series
        "not comparable",  # none, for a reason
        "reproduced",  # the ordering
    ]
    differs = outcome.verdicts[1]
    assert differs.reason.endswith(
        "Assumed here: the slope is two; with slope = 3.0 ours moves from 4 to 6 m, beyond the band on the other side"
    )
    assert differs.tolerance == pytest.approx((4.75, 5.25))
    assert outcome.verdicts[2].published == "at least 5 m"
    assert outcome.verdicts[0].strength == "within 5 %"
    assert outcome.verdicts[-1].strength == "ordering"


def test_a_number_that_is_missing_says_why(toy, points):
    """Another x of the same series, nothing at all, and what the experiment itself says of it."""
    missing = [v.reason for v in running.run(toy, {"points": 5}, points=points).verdicts if v.ours == ""]
    assert missing == [
        "this run holds the number for 1, 2, 3, ... instead; other parameters may give it",
        "it is given in 'km', ours in 'm'",
        "this run holds no such number",
        "a line has none",
    ]


def test_published_points_grey_off_the_papers_setting_but_own_points_are_judged(toy, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("series,x,value,unit\nheight,1,3,m\n")
    outcome = running.run(toy, {"slope": 3.0}, backends="analytic", points=path)
    assert not outcome.comparable
    assert "slope = 3.0 is not the paper's setting (2.0)" in outcome.reason
    assert readings(outcome) == ["reproduced", "not comparable"]
    assert running.run(toy, {"points": 5}, backends="analytic").comparable


def test_undecided_when_the_interval_straddles_the_band(toy, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("series,x,value,low,high,unit\nheight,1,,2,100,m\n")
    outcome = running.run(toy, {"noisy": True}, backends="analytic", replications=6, points=path)
    verdict = outcome.verdicts[0]
    assert verdict.interval[0] < 2 < verdict.interval[1]
    assert verdict.verdict == "undecided"
    assert len(set(verdict.seeds)) == 6


def test_same_seed_same_tables_and_other_seed_other_tables(toy):
    def heights(seed):
        return running.run(toy, {"noisy": True}, seed=seed, replications=3).tables["line"]["y_m"].to_list()

    assert heights(7) == heights(7)
    assert heights(7) != heights(8)


def test_backends_meet_the_same_random_numbers(toy):
    table = running.run(toy, {"noisy": True, "slope": 0.0}, replications=2).tables["line"]
    sides = table.partition_by("backend", as_dict=True)
    assert sides["analytic",]["y_m"].to_list() == sides["simpy",]["y_m"].to_list()


def test_agreement_is_the_largest_relative_difference(toy):
    (agreement,) = running.run(toy, {}).agreement
    assert agreement.backends == ("analytic", "simpy")
    assert agreement.difference == pytest.approx(0.01)
    assert agreement.agrees
    assert agreement.independent
    assert agreement.rows == 3


def test_sources_name_parameters_and_what_was_cited(toy):
    sources = {source.quantity: source for source in running.run(toy, {"points": 4}).sources}
    assert (sources["Slope"].status, sources["Slope"].source) == ("published", "the test")
    assert (sources["Points"].status, sources["Points"].value) == ("user", "4")
    assert sources["gravity"].source == "a sheet"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"slope": 11}, "toy/line: parameter 'slope' is out of range, got 11; give a value from 0 to 10 m."),
        ({"slope": "steep"}, "toy/line: parameter 'slope' takes a number, got 'steep'; give a value from 0 to 10 m."),
        ({"points": True}, "toy/line: parameter 'points' takes a number, got True; give a value from 1 to 100."),
        ({"slope": float("nan")}, "toy/line: parameter 'slope' takes a number, got nan; give a value from 0 to 10 m."),
        ({"points": 2.5}, "toy/line: parameter 'points' takes a whole number, got 2.5; give a value from 1 to 100."),
        ({"noisy": "perhaps"}, "toy/line: parameter 'noisy' is a switch, got 'perhaps'; give true or false."),
        ({"which": ()}, "toy/line: parameter 'which' is empty; give at least one of a, b, c."),
        ({"kind": 3}, "toy/line: parameter 'kind' takes a text, got 3; give one of straight, bent."),
    ],
)
def test_bad_values_are_refused_in_one_sentence(toy, given, sentence):
    with pytest.raises(UserError) as caught:
        running.run(toy, given)
    assert str(caught.value) == sentence


def test_unknown_names_list_near_ones(toy):
    with pytest.raises(UnknownName, match="near names: slope"):
        running.run(toy, {"slpe": 1})
    with pytest.raises(UnknownName, match="near names: straight"):
        running.run(toy, {"kind": "strait"})
    with pytest.raises(UnknownName, match="near names: simpy"):
        running.run(toy, {}, backends="sympy")
    with pytest.raises(UserError, match="has no compiled backend; it answers by analytic, simpy, torch"):
        running.run(toy, {}, backends="compiled")


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1"])
def test_bad_seeds_are_refused(toy, seed):
    with pytest.raises(UserError, match="A seed is a whole number of 0 or more"):
        running.run(toy, {}, seed=seed)


def test_texts_from_a_command_line_become_values(toy):
    outcome = running.run(toy, {"slope": "2.0", "points": "4", "which": "c, a", "noisy": "no"}, backends="analytic")
    assert outcome.parameters == {"slope": 2.0, "points": 4, "kind": "straight", "which": ("c", "a"), "noisy": False}


def test_stop_ends_the_run_between_pieces(toy):
    stop = threading.Event()
    stop.set()
    with pytest.raises(Stopped):
        running.run(toy, {}, stop=stop)


def test_streams_are_independent_of_each_other():
    first = Context("analytic", seed=3)
    first.random("lengths").random(10)
    assert first.random("arrivals").random() == Context("simpy", seed=3).random("arrivals").random()
    assert Context("analytic", seed=3).random("a").random() != Context("analytic", seed=3).random("b").random()


def test_a_result_is_judged_once_and_when_it_is_first_asked_how_it_reads(toy, monkeypatch):
    judge, drafts = running.judge, []
    monkeypatch.setattr(running, "judge", lambda draft: drafts.append(draft) or judge(draft))
    result = wb.experiment(toy.id).run("analytic")
    assert len(result.tables["line"]) == 3
    assert result.sentence
    assert result.agreement().is_empty()
    assert not drafts
    readings = [result.verdicts()["claim"].to_list() for _ in range(2)]
    assert len(drafts) == 1
    assert readings == [[one.claim for one in running.run(toy, {}, backends="analytic").verdicts]] * 2
