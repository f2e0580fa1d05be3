"""Instances that take prompts only when they are free, as many as a batch has, in cases worked out by hand.

Every step takes one second. A token's KV is one byte; links carry four bytes a second each way, without latency.
"""

import numpy as np
import pytest
from serving_cases import asked, migrating, place

from workbench.errors import InputError
from workbench.serving.model import run_compiled
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import COLOCATED, DECODE, PREFILL
from workbench.serving.policy import FIRST_FREE, LEAST_OUTSTANDING
from workbench.serving.simulated import simulate

RUNS = pytest.mark.parametrize("run", [simulate, run_compiled], ids=["simpy", "compiled"])


def prefill(**engine):
    return place(role=PREFILL, **engine)


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


@RUNS
@pytest.mark.parametrize(("batch", "where", "first_token_s"), [
    (10, [0, 1, 0, 0, 1], [1, 1.25, 2, 2, 2.25]),
    (0, [0, 1, 0, 1, 0], [1, 1.25, 2, 2.25, 2]),
])  # fmt: skip
def test_who_is_free_takes_the_first_that_fit_a_batch(run, batch, where, first_token_s):
    """Both are busy when three more come, of 4, 6 and 5 tokens: the first that is free takes ten tokens, and the
    other one the rest a quarter of a second later. Given away as they come, they go to both by turns."""
    requests = [asked(0, 6, 1), asked(0.25, 6, 1), asked(0.5, 4, 1), asked(0.5, 6, 1), asked(0.5, 5, 1)]
    places = [prefill(batch=batch), prefill(batch=batch), place(role=DECODE)]
    out = run(migrating(requests, places, route=LEAST_OUTSTANDING))
    same(out.prefill, where)
    same(out.first_token_s, first_token_s)


@RUNS
def test_a_prompt_longer_than_a_batch_goes_alone(run):
    """Five tokens a batch: eight go alone, then three and two together."""
    requests = [asked(0, 8, 1), asked(0, 3, 1), asked(0, 2, 1)]
    out = run(migrating(requests, [prefill(batch=5), place(role=DECODE)]))
    same(out.first_token_s, [1, 2, 2])


@RUNS
def test_a_batch_that_needs_two_steps_is_whole_before_the_next_is_taken(run):
    """Steps of four tokens: six take two of them, and a token of the second prompt fits neither. It waits at the
    router until 2 s, though the other instance, which comes back at 1.5 s, takes it first."""
    requests = [asked(0, 6, 1), asked(0.5, 2, 1)]
    places = [prefill(batch=8, budget=4), prefill(batch=8), place(role=DECODE)]
    alone = run(migrating(requests, [places[0], places[2]]))
    same(alone.first_token_s, [2, 3])
    helped = run(migrating(requests, places, [(0.0, 1, 1.5)], route=FIRST_FREE))
    same(helped.first_token_s, [2, 2.5])
    same(helped.prefill, [0, 1])


@RUNS
def test_a_batch_finds_free_blocks(run):
    """Three blocks, two of them of KV that is on its way from 1 to 3 s: of two prompts of one block each the first
    instance takes one at 1 s, and the other instance the second at 1.5 s."""
    requests = [asked(0, 8, 3), asked(0.5, 4, 1), asked(0.75, 4, 1), asked(0.75, 4, 1)]
    places = [prefill(batch=100, blocks=3), prefill(batch=100), place(role=DECODE)]
    out = run(migrating(requests, places, route=FIRST_FREE))
    same(out.prefill, [0, 1, 0, 1])
    same(out.first_token_s, [1, 1.5, 2, 2.5])


@RUNS
def test_one_without_blocks_is_taken_all_the_same_and_keeps_others_out(run):
    """Two of three blocks are of KV that is on its way until 3 s, and two prompts need two each: the first one waits
    on the instance, the other at the router, where the other instance, back at 3.5 s, finds it."""
    requests = [asked(0, 8, 3), asked(1.5, 8, 1), asked(1.5, 8, 1)]
    places = [prefill(batch=100, blocks=3), prefill(batch=100), place(role=DECODE)]
    out = run(migrating(requests, places, [(0.0, 1, 3.5)], route=FIRST_FREE))
    same(out.prefill, [0, 0, 1])
    same(out.first_token_s, [1, 4, 4.5])


@RUNS
def test_one_with_blocks_begins_a_batch_before_one_without(run):
    """KV takes two of the first one's three blocks until 3 s, when a prompt of two comes at 1.5 s."""
    requests = [asked(0, 8, 3), asked(1.5, 8, 1)]
    places = [prefill(batch=100, blocks=3), prefill(batch=100), place(role=DECODE)]
    out = run(migrating(requests, places, route=FIRST_FREE))
    same(out.prefill, [0, 1])
    same(out.first_token_s, [1, 2.5])


def test_only_those_that_prefill_take_batches():
    with pytest.raises(InputError, match="give 0 to all but those that only prefill"):
        checked(migrating([asked(0, 4, 1)], [place(role=COLOCATED, batch=4)]))
