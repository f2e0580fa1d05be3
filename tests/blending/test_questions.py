"""Closed answers against searches, interference against the measured shares, phases against the step loop."""

import numpy as np
import pytest
from blending_cases import llama_costs
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog

from workbench.blending.model.bounds import bounds, phases
from workbench.blending.model.costs import Engine
from workbench.blending.model.density import Density, request_density
from workbench.blending.model.disaggregated import Halves, disaggregated_s
from workbench.blending.model.estimating import estimate
from workbench.blending.model.interference import facts, hull, nanoflow_slopes, slopes
from workbench.blending.model.ordering import plain
from workbench.blending.model.questions import balanced_tokens, largest_gain, memory_bound_output, reordering_gain
from workbench.blending.model.running import serve
from workbench.blending.model.synthesis import mix
from workbench.blending.model.tree import tree_of
from workbench.blending.policy import overlapped_s
from workbench.errors import InputError


@pytest.mark.parametrize("prompt", [1, 121, 496, 2508])
@pytest.mark.parametrize("about", [Density(), Density(attention=True, weights=True)])
def test_where_a_request_turns_memory_bound(prompt, about):
    costs = llama_costs()
    searched = brentq(lambda output: request_density(prompt, output, costs, about) - 1, 1e-3, 1e6)
    assert memory_bound_output(prompt, costs, about) == pytest.approx(searched)


@pytest.mark.parametrize(("density", "tokens"), [(1.4, 800), (0.9, 515)])
def test_the_balanced_batch(density, tokens):
    """The notes' numbers: 60 GB at 2.039 TB/s and 312 TFLOP/s."""
    assert balanced_tokens(density, llama_costs()) == pytest.approx(tokens, abs=1)


@given(st.floats(0.01, 100), st.floats(0, 1), st.floats(0, 0.99))
def test_no_density_gains_more_than_where_the_branches_meet(density, memory_slope, compute_slope):
    where, most = largest_gain(memory_slope, compute_slope)
    assert reordering_gain(density, memory_slope, compute_slope) <= most + 1e-9
    assert reordering_gain(max(where, 1e-12), memory_slope, compute_slope) == pytest.approx(most)


def test_largest_gains():
    assert largest_gain(0.0, 0.0) == (1.0, 2.0)
    assert largest_gain(1 / 2, 1 / 3) == (0.75, 1.4)


def test_the_measured_shares_give_the_slopes():
    """By hand: the corner (0.6, 0.8), so a = 0.4 / 0.8 and b = 0.2 / 0.6."""
    assert nanoflow_slopes() == (pytest.approx(1 / 2), pytest.approx(1 / 3))


@given(st.floats(0.01, 10), st.floats(0.01, 10))
def test_overlapped_time_is_the_least_that_measured_shares_allow(compute_s, memory_s):
    """A linear programme: seconds spent at each measured pair of rates, until both kinds of work are done."""
    shares = facts().nanoflow
    rates = np.array([[1.0, 0.0], *zip(1 - np.array(shares.attention_share), shares.attention_rate, strict=True)])
    least = linprog(np.ones(len(rates)), A_ub=-rates.T, b_ub=[-compute_s, -memory_s]).fun
    assert overlapped_s(compute_s, memory_s, *nanoflow_slopes()) == pytest.approx(least, rel=1e-6)


def test_two_slopes_describe_one_corner():
    assert hull([0.5], [0.4]).corners == ((1.0, 0.0), (0.0, 1.0))
    with pytest.raises(InputError, match="0 corners"):
        slopes(hull([0.5], [0.4]))
    with pytest.raises(InputError, match="2 corners"):
        slopes(hull([0.9, 0.4], [0.5, 0.9]))


def test_phases_foretell_the_order_down_the_tree():
    costs = llama_costs()
    pool = mix("burstgpt-like", 0.9, 0.35, 100_000, costs, np.random.default_rng(4)).pool
    tree = tree_of(pool)
    engine = Engine(costs=costs)
    run = serve(pool, tree, estimate(pool, tree, "oracle"), plain(tree.dfs()), costs)
    found = phases(pool, tree, engine, 1024)
    assert [phase.source for phase in found] == ["BurstGPT", "MMLU", "OpenVid"]
    assert sum(phase.compute_s for phase in found[:2]) <= bounds(pool, tree, engine).compute_s
    total = run.seconds(engine)
    prompts = np.searchsorted(np.cumsum(total.compute_s), sum(phase.compute_s for phase in found[:2]))
    assert prompts == pytest.approx(sum(phase.steps for phase in found[:2]), rel=0.03)
    assert total.step_s[:prompts].sum() == pytest.approx(sum(phase.seconds for phase in found[:2]), rel=0.03)


def test_disaggregation_waits_for_the_slower_group():
    found = Halves(np.array([10.0, 1.0]), np.array([4.0, 20.0]))
    assert disaggregated_s(found, 1, 1) == 30.0
    assert disaggregated_s(found, 2, 1) == 25.0
    assert disaggregated_s(found, 1, 4) == 15.0


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: memory_bound_output(-1, llama_costs()), "'prompt': holds -1"),
        (lambda: balanced_tokens(np.nan, llama_costs()), "'density': holds nan"),
        (lambda: reordering_gain(-1.0, 0.5, 0.3), "'density': holds -1"),
        (lambda: reordering_gain(1.0, 2.0, 0.3), "'memory_slope': is 2"),
        (lambda: largest_gain(0.5, np.nan), "'compute_slope': is nan"),
        (lambda: largest_gain(0.5, 1.0), "give a slope below 1"),
    ],
)
def test_questions_that_have_no_answer(ask, words):
    with pytest.raises(InputError, match=words):
        ask()
