"""Small pools whose every instant follows with pencil and paper.

Weights of 1 GB load in 1 s, prompts take 1 ms a token, steps 10 ms, KV blocks of 1 MB move in a microsecond each."""

import numpy as np
import pytest
from pooling_cases import case

from workbench.pooling.model.engine import run_compiled
from workbench.pooling.model.lowered import COLD, FAILED, HIDDEN, PARTLY, REJECTED
from workbench.pooling.policy.names import AFTER_FIRST_STEP, CURRENT, IDEAL, NO_PREFETCH, PREFETCH

US = 1e-6


def first(out, r):
    return out.first_token_s[r]


def test_one_request():
    """Load 1 s, prompt 0.1 s; KV 7 blocks out and 7 in while the weights load beside them, which costs them 7 us: both
    ways into the GPU are then shared by two; 49 steps of 10 ms."""
    out = run_compiled(case([(0.0, 0, 100, 50)]))
    assert first(out, 0) == pytest.approx(1.1)
    # The load has half its way for the 14 us that 7 blocks take at half of theirs.
    assert out.switches[1, 1] == pytest.approx(1.1 + 1.0 + 7 * US, abs=1e-9)
    assert out.finish_s[0] == pytest.approx(2.1 + 7 * US + 49 * 0.01, abs=1e-9)
    assert out.moved_s[0] == pytest.approx(7 * US + 14 * US, abs=1e-9)
    assert out.waited_s[0] == 0.0
    assert out.host[:, 4].tolist() == [7, -7]


def test_quotas_of_two_models():
    """One batch, c = 1 s, S = 0.1: on the floor, q = 1 / (10 (0.5 - 0.1)) = 0.25 s. Two batches: c = 2 s, S = 0.2, q =
    2 / (10 · 0.3) = 2/3 s."""
    out = run_compiled(case([(0.0, 0, 100, 300), (0.0, 1, 100, 300)]))
    assert out.rounds[0, 2:4].tolist() == [1, 0.5]
    assert out.turns[0, 5] == pytest.approx(0.25)
    both = out.rounds[out.rounds[:, 2] == 2][0]
    assert both[3:].tolist() == pytest.approx([0.5, 2.0, 4 / 3])
    # Rounds of c + 4/3 s; the first of them finds model 0 resident.
    lengths = np.diff(out.rounds[out.rounds[:, 2] == 2][:, 0])
    assert lengths == pytest.approx([1 + 4 / 3, *[2 + 4 / 3] * (len(lengths) - 1)], abs=0.03)


def test_a_group_admits_eight_in_its_life():
    """Ten requests of model 0, 0.3 s each and 0.3 s apart, one of model 1 behind the first: the group of model 0 takes
    seven more; the ninth and tenth are a new group behind model 1, though only four wait when they come."""
    rows = [(0.0, 0, 300, 1), (0.01, 1, 300, 1), *[(0.02 + 0.3 * k, 0, 300, 1) for k in range(9)]]
    out = run_compiled(case(rows))
    order = np.argsort(out.first_token_s)
    assert order.tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 1, 9, 10]
    now = run_compiled(case(rows, group_rule=CURRENT))
    assert np.argsort(now.first_token_s).tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1]


def test_an_idle_instance_with_less_to_load_is_chosen():
    """Two prefill GPUs: the second request of another model goes to the second; the third, of model 0, joins its group
    on the first while that is being loaded."""
    node, roles = np.zeros(3, np.int64), np.array([0, 0, 1])
    out = run_compiled(case([(0.0, 0, 100, 1), (0.0, 1, 100, 1), (0.5, 0, 100, 1)], node=node, decodes=roles))
    assert out.prefill_instance.tolist() == [0, 1, 0]
    assert out.first_token_s == pytest.approx([1.1, 1.1, 1.2])


@pytest.mark.parametrize(
    ("rule", "kind", "switch_s"),
    [(NO_PREFETCH, COLD, 1.0), (PREFETCH, PARTLY, 0.4), (IDEAL, PARTLY, 0.4)],
)
def test_a_prefetch_is_hidden_by_the_prompts_it_runs_beside(rule, kind, switch_s):
    """Two prompts of 0.3 s each are processed between the switches: 1 s of loading less 0.6 s."""
    rows = [(0.0, 0, 300, 1), (0.0, 0, 300, 1), (0.1, 1, 100, 1)]
    out = run_compiled(case(rows, prefetch=rule))
    second = out.switches[1]
    assert second[4] == kind
    assert second[1] - second[0] == pytest.approx(switch_s)


def test_a_prefetch_that_is_done_leaves_the_least_switch():
    rows = [(0.0, 0, 1500, 1), (0.1, 1, 100, 1)]
    out = run_compiled(case(rows, prefetch=PREFETCH, least_switch_s=0.01))
    assert out.switches[1, 4] == HIDDEN
    assert out.switches[1, 1] - out.switches[1, 0] == pytest.approx(0.01)


def test_the_last_turn_of_a_round_prefetches_nothing():
    """With B models at most (B - 1) of B switches of a round find their weights: nobody knows the next round."""
    rows = [(0.0, m, 10, 3000) for m in range(4)]
    out = run_compiled(case(rows, prefetch=PREFETCH))
    kinds = out.switches[out.switches[:, 2] == 1]
    full = out.rounds[out.rounds[:, 2] == 4][:, 0]
    inside = kinds[(kinds[:, 0] >= full[0]) & (kinds[:, 0] < full[1])]
    assert inside[:, 3].tolist() == [0, 1, 2, 3]
    assert inside[0, 4] == COLD
    assert (inside[1:, 4] != COLD).all()


def test_no_prefetch_where_memory_does_not_allow_it():
    rows = [(0.0, 0, 1500, 1), (0.1, 1, 100, 1)]
    out = run_compiled(case(rows, prefetch=PREFETCH, after=np.zeros((2, 2), int)))
    assert out.switches[1, 4] == COLD


def test_two_gpus_share_a_host():
    """1 GB each over a host of 1 GB/s: both loads take 2 s."""
    node, roles = np.zeros(3, np.int64), np.array([0, 0, 1])
    rows = [(0.0, 0, 100, 1), (0.0, 1, 100, 1)]
    out = run_compiled(case(rows, node=node, decodes=roles, host_bytes_per_s=1e9))
    assert out.first_token_s == pytest.approx([2.1, 2.1])


def test_weights_that_a_host_does_not_hold():
    """A host of 1 GB holds model 0; model 1 comes at 0.1 GB/s, 10 s, and then model 0 is gone."""
    rows = [(0.0, 0, 100, 1), (2.0, 1, 100, 1), (20.0, 0, 100, 1)]
    out = run_compiled(case(rows, cache_bytes=1e9))
    assert (out.switches[:, 1] - out.switches[:, 0]).tolist() == pytest.approx([1.0, 10.0, 10.0])


def test_the_clock_of_a_turn():
    """A quota of 0.25 s holds 25 steps of 10 ms; counted from the end of the first, 26."""
    rows = [(0.0, 0, 100, 500)]
    tokens = [
        run_compiled(case(rows, decode=np.array([[1 / 128, 0.0, 0.0]]), assumed_s=[0.25], clock=clock)).turns[0, 7]
        for clock in (0, AFTER_FIRST_STEP)
    ]
    # n = 12.8, S = 5/64, q = 0.25 / (12.8 (0.5 - 5/64)) = 0.0463 s: six steps reach it, or one and six.
    assert tokens == [6, 7]


def test_a_request_that_waits_too_long_fails_at_the_next_arrival():
    rows = [(0.0, 0, 3000, 1), (0.1, 1, 100, 1), (3.0, 0, 100, 1)]
    out = run_compiled(case(rows, give_up_s=2.0))
    assert out.status[1] == FAILED
    assert out.made[1] == 0
    assert out.first_token_s[2] == pytest.approx(4.1)


def test_what_can_never_fit_is_rejected():
    out = run_compiled(case([(0.0, 0, 100, 50), (0.0, 0, 16_000, 50)]))
    assert out.status[1] == REJECTED


def test_a_batch_pauses_when_its_readers_are_far_enough_ahead():
    """Steps of 10 ms against 0.1 s promised earn 90 ms each; capped at 1 s, tokens come one by one, and the last of 100
    not before 100 x 0.1 s - 1 s after the first."""
    out = run_compiled(case([(0.0, 0, 100, 101)], buffer_s=1.0))
    lead = out.first_token_s[0] + 0.1 * np.arange(1, 102) - out.token_s
    assert lead.max() < 1.0 + 0.1
    assert out.finish_s[0] - out.first_token_s[0] == pytest.approx(101 * 0.1 - 1.0, abs=0.11)
    free = run_compiled(case([(0.0, 0, 100, 101)]))
    assert free.finish_s[0] < out.finish_s[0]


def test_without_overlap_each_transfer_waits_for_the_one_before():
    """Out 7 us, then the load, then in 7 us, then steps."""
    out = run_compiled(case([(0.0, 0, 100, 50)], overlap=0))
    assert out.finish_s[0] == pytest.approx(1.1 + 1.0 + 7 * US + 0.49, abs=1e-9)
    assert out.waited_s[0] == pytest.approx(7 * US, abs=1e-9)


def test_a_batch_that_outgrows_the_cache_leaves_its_last_to_the_next_round():
    """Capacity 16 blocks. Two prompts of 60 tokens with 64 to come take 8 each, so they decode together; with 16 to
    come they have 8 each until their contexts, 61 after the first token, pass 112: 52 steps."""
    rows = [(0.0, 0, 60, 100), (0.0, 0, 60, 100)]
    out = run_compiled(case(rows, capacity=np.array([16]), assumed_s=np.array([20.0])))
    assert out.status.tolist() == [1, 1]
    together = np.intersect1d(out.token_s[1:100], out.token_s[101:200]).size
    assert together == 52
    assert out.finish_s[1] > out.finish_s[0]
