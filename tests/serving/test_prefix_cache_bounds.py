"""What prefix caches can and cannot save, against counting with sets: one instance, one request at a time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving_cases import asked, cluster, place

from workbench.serving.model import run_compiled
from workbench.serving.simulated import simulate

RUNS = pytest.mark.parametrize("run", [simulate, run_compiled], ids=["simpy", "compiled"])
prefixes = st.lists(st.lists(st.integers(0, 8), max_size=6, unique=True), min_size=1, max_size=30)


def one_by_one(run, ids, cache):
    """Prompts that are one token longer than their hash blocks, so that all of these may be saved."""
    number = {one: k for k, one in enumerate({one for own in ids for one in own})}
    requests = [asked(k, 4 * len(own) + 1, 1, prefix=[number[one] for one in own]) for k, own in enumerate(ids)]
    return run(cluster(requests, [place(slots=1, cache=cache)])).cached


@RUNS
@given(prefixes)
def test_with_room_for_all_everything_seen_before_is_saved(run, ids):
    seen, wanted = set(), []
    for own in ids:
        unseen = [k for k, one in enumerate(own) if one not in seen]
        wanted.append(4 * (unseen[0] if unseen else len(own)))
        seen |= set(own)
    assert one_by_one(run, ids, cache=9).tolist() == wanted


@RUNS
@given(prefixes, st.integers(0, 7))
def test_more_room_never_saves_less(run, ids, cache):
    """Least recently used is a stack algorithm: a larger cache holds all that a smaller one does."""
    assert (one_by_one(run, ids, cache) <= one_by_one(run, ids, cache + 1)).all()


@RUNS
@given(prefixes, st.integers(1, 8))
def test_a_prompt_asked_again_at_once_is_saved_as_far_as_there_is_room(run, ids, cache):
    twice = [own for own in ids for _ in range(2)]
    again = one_by_one(run, twice, cache)[1::2]
    assert again.tolist() == [4 * min(cache, len(own)) for own in ids]
    np.testing.assert_array_equal(one_by_one(run, twice, 0), 0)
