"""Rounds, stages and fragmentation by formula against worked numbers and against simulated rounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pooling_cases import case

from workbench.pooling.model.engine import run_compiled
from workbench.pooling.model.fragmentation import replay_slabs
from workbench.pooling.model.rounds import Turns, entry_stall_s, most_batches, round_length_s, round_of, steady_load
from workbench.pooling.model.stages import STEPS, known_stages


@pytest.mark.parametrize(
    ("step_s", "tbt_s", "most"),
    [(9.5e-3, 0.1, 9.0), (16e-3, 0.1, 5.3), (9.5e-3, 0.02, 1.8), (16e-3, 0.02, 1.1)],
)
def test_most_batches(step_s, tbt_s, most):
    """Notes §2.4: with s = 0.7 s, 9.0 to 5.3 batches at 0.1 s, 1.8 to 1.1 at 0.02 s; there α is exactly 1."""
    turns = Turns(tbt_s=tbt_s)
    found = most_batches(step_s, 0.7, turns)
    assert found == pytest.approx(most, abs=0.05)
    n = tbt_s / step_s
    assert found * (0.7 / (n * 4.0) + 1 / n) == pytest.approx(1.0)


@given(st.integers(1, 12), st.floats(0.005, 0.05), st.floats(0.01, 2.0))
def test_the_length_of_a_round_of_equal_batches(batches, step_s, switch_s):
    assert round_length_s(batches, step_s, switch_s) == pytest.approx(
        round_of([step_s] * batches, batches * switch_s).length_s, rel=1e-6
    )


def test_simulated_rounds_have_the_length_and_pace_of_the_formula():
    """Five models that decode for long: c = 5 s of switches, S = 0.5; α = 5/(10·4) + 0.5 = 0.625, so 4 s each."""
    rows = [(0.0, m, 10, 6000) for m in range(5)]
    out = run_compiled(case(rows))
    full = out.rounds[out.rounds[:, 2] == 5]
    assert full[:, 3] == pytest.approx(np.full(len(full), 0.625))
    expected = round_of([0.01] * 5, 5.0)
    assert np.diff(full[:, 0])[1:] == pytest.approx(np.full(len(full) - 2, expected.length_s), abs=0.06)
    tokens = out.turns[out.turns[:, 0] >= full[1, 0]][:25, 7]
    assert tokens == pytest.approx(np.full(tokens.size, expected.tokens[0]), abs=1)


@pytest.mark.parametrize("offset_s", [0.0, 3.0, 9.0, 15.0, 20.0])
@pytest.mark.parametrize("model", [0, 2, 5])
def test_a_new_batch_waits_no_longer_than_the_bound(offset_s, model):
    """Five batches are in their rounds when a sixth model is asked: its second token comes within the bound."""
    others = [m for m in range(6) if m != model]
    rows = [(0.0, m, 10, 6000) for m in others] + [(60.0 + offset_s, model, 10, 50)]
    out = run_compiled(case(rows))
    second = out.token_s[out.token_at[5] + 1]
    mean_s, most_s = entry_stall_s(5, 0.01, 1.0)
    assert second - out.first_token_s[5] <= most_s + 0.1
    assert mean_s < most_s


def test_the_fixed_point_of_active_models_and_pace():
    """On the floor a request of 311.8 tokens lives 15.59 s (notes §2.4), and 64 models at 0.1 per s on ten GPUs make
    6.4 (1 - exp(-1.559)) = 5.05 batches each; that many keep the floor with steps of 8 ms and switches of 0.35 s."""
    found = steady_load(64, 10, 0.1, 311.8, 8e-3, 0.35)
    assert found.pace == 0.5
    assert found.lifetime_s == pytest.approx(15.59)
    assert found.batches == pytest.approx(-6.4 * math.expm1(-1.559), rel=1e-9)
    slow = steady_load(64, 10, 0.1, 311.8, 20e-3, 2.0)
    assert slow.pace > 1
    assert slow.batches == pytest.approx(-6.4 * math.expm1(-0.1 * 311.8 * 0.1 * slow.pace), rel=1e-6)


def test_stages_of_a_13b_model():
    """26.9 s for an engine's start with 13 GB a GPU at 2.83 GB/s, weights 4.6 s of it; each optimisation helps."""
    stages = known_stages(13e9, 1e9, 20e9)
    assert stages.start_s == pytest.approx(26.9, abs=0.01)
    totals = stages.totals()
    assert list(totals) == list(STEPS)
    assert totals["T0"] > totals["T1"] > totals["T2"] > totals["T3"]
    assert totals["T0"] == pytest.approx(26.9 + 3 + 2 * 1 / 2.83, abs=0.01)
    assert totals["T2"] == pytest.approx(0.65 + 2 * 0.05)
    assert totals["T3"] == pytest.approx(0.65 + 0.05)
    assert known_stages(13e9, 1e9, 20e9, hidden_s=9.0).totals()["T3"] == pytest.approx(
        0.05
    )  # all of the load is hidden


def test_fragmentation_by_hand():
    """One request of 7 blocks of 1 MB in slabs of 10 MB: 3 of 10 MB are free while it is in the host."""
    out = run_compiled(case([(0.0, 0, 100, 50)]))
    lowered = case([(0.0, 0, 100, 50)])
    found = replay_slabs(lowered, out, 10_000_000, 2)
    assert found.shapes["fragmentation"].to_list() == pytest.approx([0.3, 0.3])
    assert found.shapes["shape"].to_list() == [0, 1_000_000]
    assert found.failures == 0
    assert replay_slabs(lowered, out, 5_000_000, 1).failures == 1
