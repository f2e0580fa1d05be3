"""Groups, memory and transfers: each decision against its words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.pooling.policy import capacity_of, fill_shares, has_room, least, may_come, may_prefetch
from workbench.pooling.policy.names import ACCUMULATIVE, BY_MEMORY, CURRENT


@pytest.mark.parametrize(
    ("rule", "taken", "waiting", "room"),
    [
        (ACCUMULATIVE, 7, 0, True),
        (ACCUMULATIVE, 8, 0, False),  # eight jobs in its life, though none of them waits any more
        (CURRENT, 30, 7, True),  # what was executed does not count
        (CURRENT, 8, 8, False),
    ],
)
def test_when_a_group_is_full(rule, taken, waiting, room):
    assert has_room(rule, 8, taken, waiting, 0, 1, 1) == room


def test_a_group_limited_by_memory():
    assert has_room(BY_MEMORY, 8, 99, 99, 90, 10, 100)
    assert not has_room(BY_MEMORY, 8, 0, 1, 91, 10, 100)


def test_ties_go_to_the_first():
    assert least(np.array([3.0, 1.0, 1.0, 0.0]), 0, 3) == 1


def test_13b_behind_13b_leaves_917_blocks_and_is_not_prefetched():
    """Notes §2.6: 0.75 x 80 GiB, weights of 12.2 x 2^30 parameters in 16 bits, blocks of 12.5 MiB: the artifact drops
    the prefetch, since (61,440 - 2 x 24,985.6) / 12.5 = 917 < 1,024. Qwen2.5-7B behind it leaves enough."""
    memory, llama, qwen = int(0.75 * 80 * 2**30), int(12.2 * 2**31), int(7.25 * 2**31)
    assert capacity_of(memory, llama, llama, 13_107_200) == 917
    assert not may_prefetch(memory, llama, llama, 13_107_200, 1024)
    assert may_prefetch(memory, llama, qwen, 13_107_200, 1024)


@pytest.mark.parametrize(
    ("leaving", "used", "others", "comes"),
    [(True, 0, True, False), (False, 70, True, True), (False, 71, True, False), (False, 71, False, True)],
)
def test_when_a_cache_may_come(leaving, used, others, comes):
    assert may_come(leaving, used, 30, 100, others) == comes


@given(st.lists(st.floats(0.1, 10.0), min_size=1, max_size=10), st.floats(0.5, 60.0))
def test_shares_are_max_min_fair(wanted, total):
    wanted, share = np.array(wanted), np.empty(len(wanted))
    fill_shares(wanted, len(wanted), total, share)
    assert (share <= wanted + 1e-12).all()
    assert share.sum() == pytest.approx(min(total, wanted.sum()))
    limited = share < wanted - 1e-9  # who wants more has as much as anybody
    if limited.any():
        assert share[limited] == pytest.approx(np.full(limited.sum(), share.max()))


def test_without_a_limit_everybody_has_what_it_wants():
    share = np.empty(3)
    fill_shares(np.array([1.0, 2.0, 3.0]), 3, np.inf, share)
    assert share.tolist() == [1.0, 2.0, 3.0]
