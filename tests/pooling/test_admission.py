"""Who is let in: with exact lengths nobody who was admitted is late, whatever the pool; what the formulas refuse."""

import numpy as np
import pytest
from pooling_cases import case, random_case

from workbench.pooling.model.engine import run_compiled
from workbench.pooling.model.lowered import DONE, REJECTED, Lowered, Outcome
from workbench.pooling.model.rounds import most_batches, round_length_s
from workbench.pooling.policy.admission import decoding_fits
from workbench.pooling.simulated import simulate

LOOK_AHEAD, BY_ESTIMATES = 1, 2


def late(lowered: Lowered, out: Outcome) -> np.ndarray:
    """Which requests have a token after arrival + TTFT + i x TBT."""
    rules, found = lowered.rules, np.zeros(out.status.size, bool)
    for r in range(out.status.size):
        times = out.token_s[out.token_at[r] : out.token_at[r + 1]]
        due = lowered.requests.arrival_s[r] + rules.promise_ttft_s + rules.promise_tbt_s * np.arange(times.size)
        found[r] = (times > due).any()
    return found


@pytest.mark.parametrize("seed", range(60))
def test_with_exact_lengths_no_admitted_request_is_late(seed):
    """If a request is admitted only when the run that follows keeps all promises, then the run until the next arrival
    is that run, and so on: by induction nobody is late."""
    lowered = random_case(seed)
    rules = lowered.rules._replace(admission=LOOK_AHEAD, margin=1.0, give_up_s=np.inf, promise_tbt_s=0.1)
    lowered = lowered._replace(rules=rules)
    out = run_compiled(lowered)
    assert not late(lowered, out)[out.status == DONE].any()
    # Who is turned away at the door instead leaves the same run behind.
    refused = (out.status == REJECTED).astype(np.int64)
    again = lowered._replace(
        requests=lowered.requests._replace(refused=refused), rules=rules._replace(admission=0, owner_from=10**6)
    )
    again = again._replace(pool=again.pool._replace(kv_bytes=np.inf))
    assert np.array_equal(simulate(again).token_s, out.token_s)


def test_it_admits_and_turns_away():
    runs = []
    for seed in range(60):
        lowered = random_case(seed)
        runs.append(
            run_compiled(lowered._replace(rules=lowered.rules._replace(admission=LOOK_AHEAD, owner_from=10**6)))
        )
    statuses = np.concatenate([out.status for out in runs])
    assert 0.1 < (statuses == DONE).mean() < 0.95


def test_by_hand_the_second_prompt_is_too_late():
    """Prompts of 1 s behind a load of 1 s, 2.5 s promised: the first is done at 2 s, the second would be at 3 s."""
    rows = [(0.0, 0, 1000, 1), (0.1, 0, 1000, 1), (1.0, 0, 1000, 1)]
    for rule in (LOOK_AHEAD, BY_ESTIMATES):
        out = run_compiled(case(rows, admission=rule, promise_ttft_s=2.5))
        assert out.status.tolist() == [DONE, REJECTED, DONE]
        assert out.first_token_s[2] == pytest.approx(3.0)


def test_a_request_that_would_make_another_late_is_turned_away():
    """The third would join the first group and be in time, but the second, of another model, would be at 4.2 s."""
    rows = [(0.0, 0, 1000, 1), (0.0, 1, 1000, 1), (0.5, 0, 200, 1)]
    for rule in (LOOK_AHEAD, BY_ESTIMATES):
        both = run_compiled(case(rows, admission=rule, promise_ttft_s=4.25))
        assert both.status.tolist() == [DONE] * 3
        tight = run_compiled(case(rows, admission=rule, promise_ttft_s=4.1))
        assert tight.status.tolist() == [DONE, DONE, REJECTED]


@pytest.mark.parametrize("step_s", [0.008, 0.015])
def test_estimates_refuse_what_no_longer_keeps_pace(step_s):
    most = int(most_batches(step_s, 0.5))
    args = (step_s, 0.5, 0.1, 4.0, 0.5)
    assert decoding_fits(most, *args, 1e9)
    assert not decoding_fits(most + 1, *args, 1e9)


def test_estimates_refuse_what_would_wait_too_long_for_its_first_turn():
    """Three batches: two thirds of a round, its own switch, and two steps."""
    wait_s = round_length_s(3, 0.01, 0.5) * 2 / 3 + 0.5 + 0.02
    args = (3, 0.01, 0.5, 0.1, 4.0, 0.5)
    assert decoding_fits(*args, wait_s + 1e-9)
    assert not decoding_fits(*args, wait_s - 1e-9)


def test_owners_are_held_to_their_number_once_it_is_crowded():
    rows = [(0.0, 0, 100, 50)] * 3 + [(0.0, 1, 100, 50)]
    given = {"owner": np.array([0, 1]), "owner_most": np.array([2, 2])}
    crowded = run_compiled(case(rows, owner_from=0, **given))
    assert crowded.status.tolist() == [DONE, DONE, REJECTED, DONE]
    empty = run_compiled(case(rows, owner_from=10, **given))
    assert empty.status.tolist() == [DONE] * 4


def test_host_memory_that_is_promised_is_not_promised_twice():
    """100 prompt and 50 output tokens are 10 blocks of 1 MB."""
    rows = [(0.0, 0, 100, 50), (0.0, 0, 100, 50), (30.0, 0, 100, 50)]
    out = run_compiled(case(rows, kv_bytes=15e6))
    assert out.status.tolist() == [DONE, REJECTED, DONE]
