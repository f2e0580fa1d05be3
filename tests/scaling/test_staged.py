"""Batches through a pipeline: compiled equals SimPy, and a full pipeline of even stages never idles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.scaling.model import Staged, idle_shares, staged_starts, staged_table
from workbench.scaling.simulated.staged import simulate_free_running, simulate_lock_step


def simulated(asked):
    run = simulate_lock_step if asked.pace == "lock step" else simulate_free_running
    return run(asked.stages[0], asked.seconds, asked.batches, asked.tokens, asked.in_flight)


@st.composite
def passes(draw):
    nodes = draw(st.integers(1, 4))
    runs = draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=6))
    number = {node: place for place, node in enumerate(dict.fromkeys(runs))}
    return Staged(
        runs=tuple(number[node] for node in runs),
        block_s=draw(st.sampled_from([0.25, 0.1])),
        overhead_s=draw(st.sampled_from([0.0, 0.03])),
        batches=draw(st.integers(1, 5)),
        in_flight=draw(st.integers(1, 5)),
        tokens=draw(st.integers(1, 4)),
        pace=draw(st.sampled_from(["free", "lock step"])),
    )


@settings(deadline=None, max_examples=80)
@given(passes())
def test_compiled_equals_simpy(asked):
    assert staged_starts(asked).tolist() == simulated(asked).tolist()


@settings(deadline=None, max_examples=40)
@given(passes())
def test_a_node_does_one_thing_at_a_time_and_a_batch_passes_in_order(asked):
    starts = staged_starts(asked)
    table = staged_table(asked, starts)
    assert not np.isnan(starts).any()
    for _, part in table.group_by("node"):
        part = part.sort("begin_s")
        assert (part["begin_s"][1:].to_numpy() >= part["end_s"][:-1].to_numpy() - 1e-9).all()
    for _, part in table.group_by("batch"):
        part = part.sort("token", "stage")
        assert (part["begin_s"][1:].to_numpy() >= part["end_s"][:-1].to_numpy() - 1e-9).all()


@pytest.mark.parametrize("pace", ["free", "lock step"])
@pytest.mark.parametrize("runs", [(0, 1, 2, 3), (0, 0, 1, 1), (0, 1, 2, 3, 0, 1, 2, 3), (0, 1, 0, 1)])
def test_no_node_idles_in_a_full_pipeline_of_even_stages(pace, runs):
    """λScale §4.3: as many batches as nodes keep all nodes busy."""
    nodes = max(runs) + 1
    asked = Staged(runs=runs, block_s=0.25, overhead_s=0.5, batches=nodes, in_flight=nodes, tokens=8, pace=pace)
    starts = staged_starts(asked)
    assert idle_shares(asked, staged_table(asked, starts))["idle_share"].to_list() == [0.0] * nodes


@pytest.mark.parametrize("inside", [1, 2, 3])
def test_with_fewer_batches_the_rest_of_the_time_is_idle(inside):
    asked = Staged(runs=(0, 1, 2, 3), block_s=1.0, batches=inside, in_flight=inside, tokens=100)
    shares = idle_shares(asked, staged_table(asked, staged_starts(asked)))["idle_share"].to_numpy()
    assert shares == pytest.approx(1 - inside / 4, abs=0.01)


@pytest.mark.parametrize("pace", ["free", "lock step"])
def test_tokens_come_at_the_rate_of_the_formula(pace):
    """Notes §2.7: p batches of p nodes make p tokens in τ1 + b c; here b = 8 blocks on 4 nodes."""
    token_s, overhead_s = 0.016, 0.002
    asked = Staged(
        runs=(0, 0, 1, 1, 2, 2, 3, 3), block_s=token_s / 8, overhead_s=overhead_s, batches=4, in_flight=4, tokens=200,
        pace=pace,
    )  # fmt: skip
    end = staged_table(asked, staged_starts(asked))["end_s"].max()
    assert 4 * 200 / end == pytest.approx(4 / (token_s + 8 * overhead_s), rel=0.01)
