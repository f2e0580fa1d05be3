"""The artifact's planner by hand, and when help is declined."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import UserError
from workbench.scaling.model.live_pair import LivePair, share_batches
from workbench.scaling.policy.role_counts import RoleLoad, RoleRates, role_changes
from workbench.serving.policy import worth_helping

RATES = RoleRates(prefill_tokens_per_s=10_000, migrated_tokens_per_s=100_000, blocks=1000)


def load(**given) -> RoleLoad:
    return RoleLoad(**{"waiting_tokens": 0, "stored_tokens": 0, "blocks": 0, "prefill": 4, "decode": 4} | given)


@pytest.mark.parametrize(
    ("given_", "prefill", "decode"),
    [
        # 42,000 tokens: at least ceil(42000 / 7000) = 6, at most ceil(42000 / 5000) = 9; (6 + 9 + 1) // 2 = 8.
        ({"waiting_tokens": 42_000}, 4, -1),
        # 28,000 tokens: bounds 4 and 6 hold 4 instances; 20,000: bounds 3 and 4.
        ({"waiting_tokens": 28_000}, 0, -1),
        ({"waiting_tokens": 20_000}, 0, -1),
        ({"waiting_tokens": 14_000}, -1, -1),  # at most ceil(14000 / 5000) = 3
        # 5,000 blocks: at least ceil(5000 / 950) = 6, at most ceil(5000 / 750) = 7; (6 + 7 + 1) // 2 = 7.
        ({"blocks": 5000}, -1, 3),
        # 1.6 M stored tokens over 4 x 100,000: at least ceil(4 / 0.8) = 5, for decode at most ceil(4 / 0.4) = 10.
        ({"stored_tokens": 1_600_000}, 1, 4),
        ({}, -1, -1),
    ],
)
def test_by_hand(given_, prefill, decode):
    assert role_changes(load(**given_), RATES, 14, 14) == (prefill, decode)


def test_bounds():
    assert role_changes(load(waiting_tokens=1e6), RATES, 7, 7).prefill == 3
    assert role_changes(load(prefill=1, decode=1), RATES, 7, 7) == (0, 0)
    assert role_changes(load(prefill=3, decode=3), RATES, 7, 7, 2, 3) == (-1, 0)
    with pytest.raises(UserError, match="'most_prefill': is 2; give a whole number of 3 or more"):
        role_changes(load(), RATES, 2, 7, 3)
    with pytest.raises(UserError, match=r"memory_bounds': has 0\.9 above 0\.7; give the lower bound first"):
        RoleRates(prefill_tokens_per_s=1, migrated_tokens_per_s=1, blocks=1, memory_bounds=(0.9, 0.7))
    with pytest.raises(UserError, match="waiting_tokens"):
        load(waiting_tokens=-1)


def test_a_ready_layer_is_not_yet_a_reason():
    assert worth_helping(6, 1, 32, 0.004, 0.0013, np.inf)
    assert not worth_helping(6, 1, 32, 0.004, 0.013, np.inf)  # a slow link
    assert not worth_helping(1, 16, 32, 0.004, 0.0, np.inf)  # a short queue
    assert not worth_helping(6, 0, 32, 0.004, 0.0, np.inf)  # no layer
    assert not worth_helping(6, 8, 32, 0.004, 0.001, 0.01)  # the load is complete before it helps
    assert worth_helping(6, 8, 32, 0.004, 0.001, 1.0)


@given(
    st.integers(2, 6), st.integers(2, 10), st.floats(0, 8), st.floats(0, 3), st.sampled_from(["best-effort", "zigzag"])
)
def test_help_that_is_declined_for_its_hand_over_would_hurt(batches, layers, load_s, hand_s, schedule):
    """Where even half of the layers take no longer than a hand-over, the queue is done no sooner with help."""
    if worth_helping(batches, layers // 2, layers, 1.0, hand_s, np.inf):
        return
    pair = {"layers": layers, "load_s": load_s, "arrival_s": (0.0,) * batches}
    capped = tuple([layers // 2] * batches)
    helped = share_batches(LivePair(**pair, hand_s=hand_s, schedule="planned", plan=capped))
    alone = share_batches(LivePair(**pair, schedule="alone"))
    assert helped.finish_s.max() >= alone.finish_s.max() - 1e-9
