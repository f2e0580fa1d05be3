"""The compiled loop of turns and its SimPy twin, on random pools under pressure: the same outcome, bit for bit."""

import numpy as np
import pytest
from pooling_cases import case, random_case

from workbench.errors import InputError
from workbench.pooling import lower, market_models, market_trace, pooling_on
from workbench.pooling.model.engine import run_compiled
from workbench.pooling.model.lowered import DONE, FAILED, INSIDE, REJECTED, Lowered, Outcome
from workbench.pooling.policy.names import RUNS, SHARED, SHORTEST
from workbench.pooling.simulated import simulate


def differences(one: Outcome, other: Outcome) -> list[str]:
    pairs = [(name, getattr(one, name), getattr(other, name)) for name in one._fields]
    return [name for name, a, b in pairs if a.shape != b.shape or not np.array_equal(a, b, equal_nan=True)]


def check_conservation(lowered: Lowered, out: Outcome) -> None:
    """Requests, tokens and KV blocks: nothing is lost, made up or kept."""
    asked = lowered.requests
    counts = np.bincount(out.status, minlength=4)
    assert counts[INSIDE] == 0
    assert counts[[DONE, REJECTED, FAILED]].sum() == asked.arrival_s.size
    done = out.status == DONE
    assert (out.made[done] == asked.output[done]).all()
    assert (out.made[~done] == 0).all()
    for r in np.flatnonzero(done):
        times = out.token_s[out.token_at[r] : out.token_at[r + 1]]
        assert (np.diff(times) > 0).all()
        if times.size:
            assert times[0] == out.first_token_s[r]
            assert times[-1] == out.finish_s[r]
            lived = out.wait_s[r] + out.prefill_s[r] + out.decode_s[r]
            assert lived <= out.finish_s[r] - asked.arrival_s[r] + 1e-9
    held = np.zeros(asked.arrival_s.size, np.int64)
    for _, _, r, _, blocks in out.host:
        held[int(r)] += int(blocks)
        assert held[int(r)] >= 0
    assert not held.any()
    for i in range(lowered.pool.node.size):
        busy = np.concatenate([out.switches[out.switches[:, 2] == i][:, :2], np.empty((0, 2))])
        assert (busy[1:, 0] >= busy[:-1, 1]).all(), "two switches of one GPU at once"
        turns = out.turns[out.turns[:, 3] == i]
        assert (turns[1:, 0] >= turns[:-1, 2]).all(), "two turns of one GPU at once"


@pytest.mark.parametrize("seed", range(120))
def test_random_pools_end_the_same(seed):
    lowered = random_case(seed)
    out = run_compiled(lowered)
    assert differences(out, simulate(lowered)) == []
    check_conservation(lowered, out)


@pytest.mark.parametrize("system", [RUNS, SHORTEST, SHARED])
@pytest.mark.parametrize("seed", range(30))
def test_random_pools_of_whole_requests_end_the_same(seed, system):
    lowered = random_case(seed)
    place = np.arange(lowered.models.home.size) % (lowered.pool.node.size + 1) - 1  # the first is nowhere
    lowered = lowered._replace(models=lowered.models._replace(place=place), rules=lowered.rules._replace(system=system))
    out = run_compiled(lowered)
    assert differences(out, simulate(lowered)) == []
    check_conservation(lowered, out)


def test_the_random_pools_reach_what_they_are_to_try():
    """Switches of all three kinds, rejections, failures, KV caches that come late, batches split for room."""
    runs = [run_compiled(random_case(seed)) for seed in range(120)]
    assert {int(kind) for out in runs for kind in out.switches[:, 4]} == {0, 1, 2}
    assert {int(status) for out in runs for status in out.status} == {DONE, REJECTED, FAILED}
    assert max(out.waited_s.max() for out in runs) > 0
    assert max(out.rounds[:, 2].max() for out in runs) >= 6
    assert any(_same_model_twice(out) for out in runs)


def _same_model_twice(out: Outcome) -> bool:
    """Two turns of one model in a row on one GPU, neither alone: its requests did not fit one batch."""
    for i in np.unique(out.turns[:, 3]):
        models = out.turns[out.turns[:, 3] == i][:, 4]
        if (models[1:] == models[:-1]).any() and np.unique(models).size > 1:
            return True
    return False


def test_a_planted_difference_is_found():
    lowered = random_case(3)
    out = run_compiled(lowered)
    later = lowered._replace(rules=lowered.rules._replace(most_s=lowered.rules.most_s * (1 + 1e-12)))
    assert differences(out, simulate(later))


def test_who_is_refused_at_the_door_changes_nothing_for_others():
    rows = [(0.0, 0, 100, 20), (0.1, 1, 100, 20), (0.2, 0, 100, 20)]
    without = run_compiled(case([rows[0], rows[2]]))
    refused = run_compiled(case(rows, refused=np.array([0, 1, 0])))
    assert refused.status.tolist() == [DONE, REJECTED, DONE]
    assert refused.finish_s[[0, 2]].tolist() == without.finish_s.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_random_pools_that_look_ahead_end_the_same(seed):
    """The compiled loop goes on with a copy of its state, SimPy makes the run again from its first arrival; half of the
    pools believe in lengths that are wrong by up to a factor of two."""
    lowered = random_case(seed, 25)
    if seed % 2:
        wrong = lowered.requests.output * np.random.default_rng(seed).uniform(0.5, 2.0, 25)
        lowered = lowered._replace(requests=lowered.requests._replace(believed=wrong.astype(np.int64)))
    lowered = lowered._replace(rules=lowered.rules._replace(admission=1))
    out = run_compiled(lowered)
    assert differences(out, simulate(lowered)) == []


def test_admission_by_formulas_is_for_the_compiled_loop():
    with pytest.raises(InputError, match="only the compiled loop does"):
        simulate(case([(0.0, 0, 100, 20)], admission=2))


@pytest.mark.parametrize("variant", ["paper", "artifact", "simulator"])
def test_the_papers_pool_ends_the_same(variant):
    """64 models, 0.1 requests per s each, 120 s, 16 GPUs."""
    trace, models = market_trace(64, 0.1, 120.0, seed=11), market_models(64, variant=variant)
    lowered = lower(pooling_on(variant=variant), models, trace)
    out = run_compiled(lowered)
    assert differences(out, simulate(lowered)) == []
    check_conservation(lowered, out)
