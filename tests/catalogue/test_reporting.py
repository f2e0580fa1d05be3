"""REPORT.md: what it counts, and what it leaves out."""

import sys

import pytest

from workbench.catalogue import reporting, running, spec


def outcome(id, backends, **more):
    return running.run(spec.find(id), more, backends=backends, quick=True)


def report(*outcomes):
    return reporting.report(outcomes, {}, lambda _: None)


@pytest.fixture
def recorded(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    return outcome("blitzscale/fig13", ("analytic", "simpy", "torch"))


def test_recorded_runs_are_counted_apart(recorded):
    """Figure 13 declares two quantities, each compared by simulation and by real run."""
    text = report(recorded)
    assert "agree within what is allowed in 4 of 4 comparisons, with a recorded run in 2 of 2 of these." in text
    assert "Real runs: 1 recorded earlier, shown where a run could not be made here." in text
    assert "Recorded run: bytes over σ" in text
    assert "Real run: bytes" not in text


def test_a_run_whose_processes_worked_most_of_the_time_is_not_called_paced(recorded):
    assert "of the time (paced)" in report(recorded)
    busy = tuple(
        one.model_copy(update={"value": "0.3"}) if one.quantity.startswith("waiting of ") else one
        for one in recorded.sources
    )
    assert "30% of the time (busy)" in report(recorded.model_copy(update={"sources": busy}))


def test_live_runs_are_counted_as_such(recorded):
    live = recorded.model_copy(
        update={
            "backends": ("analytic", "simpy", "torch"),
            "agreement": tuple(
                item.model_copy(update={"backends": tuple(name.replace("recorded", "torch") for name in item.backends)})
                for item in recorded.agreement
            ),
        }
    )
    text = report(live, recorded)
    assert "in 8 of 8 comparisons, with a real run in 2 of 2 of these, with a recorded run in 2 of 2 of these." in text
    assert "Real runs: 1 made for this report, 1 recorded earlier" in text


def test_without_real_runs_no_sentence_is_about_them():
    text = report(outcome("blitzscale/fig13", ("analytic", "simpy")))
    assert "Real runs: none." in text
    assert "bytes over σ" not in text
    assert "recorded run" not in text


def test_measurements_that_were_recorded_are_no_real_runs(monkeypatch):
    monkeypatch.delenv("WORKBENCH_DATA", raising=False)
    assert "Real runs: none." in report(outcome("theory/link-validation", "analytic"))


def test_whose_band_decides_is_said():
    text = report(outcome("lambdascale/fig5", "analytic"))
    assert "A band decides the verdict: a published one, or this project's own" in text


def test_differences_are_said_to_be_relative_and_empty_intervals_left_out():
    text = report(outcome("lambdascale/fig5", ("analytic", "simpy")))
    assert "| relative difference | allowed |" in text
    assert "interval" not in text
    table = [line.count("|") for line in text.splitlines() if line.startswith("| verdict") or "rotated order" in line]
    assert len(set(table)) == 1


def test_claims_name_their_paper():
    text = report(outcome("lambdascale/fig7", "analytic"))
    assert "| lambdascale | 100 GB of weights reach 8 servers in less than a second. | false |" in text
