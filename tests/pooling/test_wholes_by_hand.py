"""Whole requests: who gets one, what displacing costs. Weights load in 1 s, prompts take 1 ms a token, steps 10 ms."""

import numpy as np
import pytest
from pooling_cases import case

from workbench.pooling.model.engine import run_compiled
from workbench.pooling.model.lowered import REJECTED
from workbench.pooling.policy import place_run
from workbench.pooling.policy.names import RUNS, SHARED, SHORTEST

PAIR = {"node": np.zeros(2, np.int64), "decodes": np.zeros(2, np.int64)}
ALONE = {"node": np.zeros(1, np.int64), "decodes": np.zeros(1, np.int64)}


@pytest.mark.parametrize(
    ("tail", "run", "active_s", "place"),
    [
        ([-1, -1, -1], [0, 0, 0], [0, 0, 0], 0),  # nobody ever: the first one
        ([7, 7, -1], [3, 1, 0], [1, 2, 0], 1),  # room in runs of its model: the shortest of them
        ([7, 7, -1], [4, 4, 0], [1, 2, 0], 2),  # full runs: one that was never used
        ([7, 5, 3], [4, 2, 2], [1, 3, 2], 2),  # the least recently active one that ends with another model
        ([7, 7, 7], [6, 5, 5], [1, 3, 2], 1),  # all end with it: the shortest run after all
        ([7, 5, 3], [4, 0, 1], [1, 3, 2], 2),  # an idle one was active later: it is not preferred
        ([7, 5, -1], [0, 2, 0], [1, 3, 0], 0),  # an idle one that still has the model is a run of none
    ],
)
def test_who_gets_a_request(tail, run, active_s, place):
    assert place_run(np.array(tail), np.array(run), np.array(active_s, dtype=float), 0, 3, 7) == place


def test_a_run_takes_four_and_another_model_waits_for_all_of_it():
    """Load 1 s and four prompts of 0.1 s, 9 steps together; then model 1 loads. The fifth of model 0 went to the other
    instance."""
    rows = [(0.0, 0, 100, 10)] * 5 + [(0.5, 1, 100, 10), (0.5, 1, 100, 10)]
    out = run_compiled(case(rows, system=RUNS, **PAIR))
    assert out.prefill_instance.tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert out.first_token_s[:5] == pytest.approx([1.1, 1.2, 1.3, 1.4, 1.1])
    assert out.finish_s[:4] == pytest.approx([1.49] * 4)
    assert out.first_token_s[5:] == pytest.approx([2.59, 2.69])


def test_what_is_displaced_is_computed_anew():
    """A has 42 of its 100 tokens when B, whose prompt takes 10 ms, is put in front; after B, A's 142 tokens are
    processed again, 0.142 s, which gives one more, and 57 steps follow."""
    out = run_compiled(case([(0.0, 0, 100, 100), (1.505, 1, 10, 1)], system=SHORTEST, **ALONE))
    assert out.finish_s[1] == pytest.approx(1.51 + 1.0 + 0.01)
    assert out.finish_s[0] == pytest.approx(2.52 + 1.0 + 0.142 + 0.57)
    assert out.prefill_s[0] == pytest.approx(0.1 + 0.142)


def test_what_is_shorter_stays_in_front():
    """A needs 5 more tokens, 50 ms, less than B's prompt of 100 ms."""
    out = run_compiled(case([(0.0, 0, 100, 10), (1.145, 1, 100, 1)], system=SHORTEST, **ALONE))
    assert out.finish_s[0] == pytest.approx(1.1 + 0.09)


def test_models_that_share_an_instance_alternate_and_never_load():
    """Two prompts of 0.1 s, then nine steps each by turns: the first ends one step before the second."""
    rows = [(0.0, 0, 100, 10), (0.0, 1, 100, 10), (0.0, 2, 100, 10)]
    out = run_compiled(case(rows, system=SHARED, place=np.array([0, 0, -1]), **ALONE))
    assert out.first_token_s[:2] == pytest.approx([0.1, 0.2])
    assert out.finish_s[:2] == pytest.approx([0.2 + 0.17, 0.2 + 0.18])
    assert out.status[2] == REJECTED
    assert out.switches.size == 0
