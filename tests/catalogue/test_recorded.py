"""Recorded real runs stand in where torch is missing, say so, and agree with the formula."""

import sys

import pytest

import workbench as wb
from workbench.catalogue import recorded, running, spec
from workbench.errors import UserError

REAL = [id for id, entry in spec.all_specs().items() if "torch" in entry.backends]


@pytest.fixture
def without_torch(monkeypatch):
    """A Python in which torch cannot be imported."""
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.parametrize("id", REAL)
def test_without_torch_a_recorded_run_is_shown_and_says_so(id, without_torch):
    entry = spec.find(id)
    outcome = running.run(entry, {}, backends=(entry.backends[0], "torch"))
    assert outcome.backends == (entry.backends[0], "recorded")
    why = outcome.not_run["torch"]
    assert why.startswith("not run: ")
    assert "pip install torch==2.13.0" in why
    assert "A recorded run of 20" in why
    assert "cores" in why
    recorded_pairs = [agreement for agreement in outcome.agreement if agreement.backends == outcome.backends]
    assert recorded_pairs
    for agreement in recorded_pairs:
        assert agreement.agrees, agreement
        assert agreement.independent
    assert any(source.quantity.startswith("overhead of ") for source in outcome.sources)


def test_without_torch_and_with_other_settings_nothing_is_made_up(without_torch):
    outcome = running.run(spec.find("lambdascale/paced-multicast"), {"nodes": 5}, backends=("analytic", "torch"))
    assert outcome.backends == ("analytic",)
    assert "recorded" not in outcome.not_run["torch"]
    with pytest.raises(UserError, match="nothing ran"):
        running.run(spec.find("lambdascale/paced-multicast"), {"nodes": 5}, backends="torch")


def test_only_a_real_run_can_be_recorded():
    with pytest.raises(UserError, match="has no torch part to record"):
        recorded.record(wb.experiment("lambdascale/paced-multicast").run("analytic").outcome)


def test_a_wheel_user_cannot_write_into_the_facts(monkeypatch, tmp_path):
    (tmp_path / "_data").mkdir()
    monkeypatch.setattr(recorded, "facts_folder", lambda: tmp_path / "_data")
    with pytest.raises(UserError, match="record from a checkout"):
        recorded.record(wb.experiment("lambdascale/paced-multicast").run("analytic").outcome)


@pytest.mark.real
@pytest.mark.quiet
def test_a_real_run_agrees_and_cites_its_scale():
    """Wall time among real processes: -1 % to +10 % of the formula, on the real clock."""
    result = wb.experiment("lambdascale/paced-multicast").run(("analytic", "torch"), quick=True)
    assert result.outcome.backends == ("analytic", "torch")
    (agreement,) = result.outcome.agreement
    assert agreement.agrees, agreement
    cited = result.sources()["quantity"].to_list()
    assert "σ of chain, 4 processes, 16 blocks" in cited
    assert "real processes finish in the predicted order" in result.sentence
    assert "evidence for the schedule and its executor, not for the rate" in result._repr_html_()
