"""Prompts that begin alike, on instances that keep prefixes, in cases worked out by hand.

A step takes 1/2 s and 1/8 s more for each prompt token that it computes; a hash block has four tokens.
"""

import numpy as np
import polars as pl
import pytest
from scaling_cases import growing, row
from serving_cases import asked, cluster, place

from workbench.errors import InputError
from workbench.serving.model import Engine, Group, Scenario, StepForm, lower, run_compiled
from workbench.serving.model.scaled import EMPTY, STARTING, UP, WARM
from workbench.serving.policy.scalers import CONCURRENCY, MULTICAST, NONE
from workbench.serving.simulated import simulate
from workbench.workloads import trace

RUNS = pytest.mark.parametrize("run", [simulate, run_compiled], ids=["simpy", "compiled"])
FORM = ((0.5, 0.125, 0.0, 0.0, 0.0), (0.0,) * 5)


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def kept(*requests, cache=8, failures=(), **engine):
    """One instance; requests are (arrival, prompt tokens, ids) with one output token."""
    made = [asked(arrival_s, prompt, 1, prefix=ids) for arrival_s, prompt, ids in requests]
    return cluster(made, [place(cache=cache, form=FORM, **engine)], failures)


@RUNS
def test_what_was_computed_before_is_not_computed_again(run):
    """Ten tokens take 1.75 s. Of twelve with the same two blocks, four are left: 1 s. Of eight, all there, one is
    computed all the same: 0.625 s. A prompt that begins otherwise gains nothing, whatever comes later in it."""
    out = run(kept((0, 10, (0, 1)), (2, 12, (0, 1, 2)), (4, 8, (0, 1)), (5, 8, (3, 0))))
    same(out.finish_s, [1.75, 3, 4.625, 6.5])
    same(out.cached, [0, 8, 7, 0])
    same(out.peak_blocks, [3])  # for all twelve tokens


@RUNS
def test_without_a_cache_all_is_computed(run):
    out = run(kept((0, 10, (0, 1)), (2, 10, (0, 1)), cache=0))
    same(out.finish_s, [1.75, 3.75])
    same(out.cached, [0, 0])


@RUNS
def test_squares_grow_from_what_is_there(run):
    """1/64 s for each square: eight tokens are 64; the eighth token alone is 64 - 49."""
    form = ((0.5, 0.0, 1 / 64, 0.0, 0.0), (0.0,) * 5)
    requests = [asked(0, 8, 1, prefix=(0, 1)), asked(2, 8, 1, prefix=(0, 1))]
    same(run(cluster(requests, [place(cache=2, form=form)])).finish_s, [1.5, 2.5 + 15 / 64])


@RUNS
def test_what_was_used_longest_ago_goes(run):
    """Two blocks are kept. After the first prompt 0 is the latest, so 2 takes the place of 1, not of 0.

    The third prompt finds 0 and brings 1 back in place of 2; the fourth does not find 2, and the last finds 1 gone.
    """
    prompts = [(0, 8, (0, 1)), (2, 4, (2,)), (4, 8, (0, 1)), (6, 8, (2,)), (8, 8, (0, 1))]
    out = run(kept(*prompts, cache=2))
    same(out.cached, [0, 0, 4, 0, 4])
    same(out.finish_s, [1.5, 3, 5, 7.5, 9])


@RUNS
def test_of_a_long_prompt_the_first_blocks_are_kept(run):
    out = run(kept((0, 12, (0, 1, 2)), (3, 12, (0, 1, 2)), cache=2))
    same(out.cached, [0, 8])


@RUNS
def test_two_prompts_of_one_step_do_not_help_each_other(run):
    """Nothing is kept before the first is complete, and admission is when it is looked for."""
    same(run(kept((0, 8, (0, 1)), (0, 8, (0, 1)))).cached, [0, 0])
    apart = run(kept((0, 8, (0, 1)), (0, 8, (0, 1)), slots=1))
    same(apart.cached, [0, 7])
    same(apart.finish_s, [1.5, 2.125])


@RUNS
def test_one_that_comes_back_finds_its_own_prefix(run):
    """The first of rank 1 has its first token at 1.5 s and its second at 2 s, and goes for rank 0 (8 tokens, 1.5 s).

    Of its 8 + 2 tokens two are computed at 3.5 s: 0.75 s.
    """
    requests = [asked(0, 8, 3, rank=1, prefix=(0, 1)), asked(1.75, 8, 1)]
    out = run(cluster(requests, [place(cache=4, slots=1, form=FORM)]))
    same(out.finish_s, [4.25, 3.5])
    same(out.cached, [8, 0])


@RUNS
def test_a_failure_takes_it_all(run):
    out = run(kept((0, 8, (0, 1)), (4, 8, (0, 1)), failures=[(2, 0, 3)]))
    same(out.cached, [0, 0])


@RUNS
def test_chunks_go_on_from_what_is_there(run):
    """Of eight tokens four are there; two and two are computed, 0.75 s each."""
    out = run(kept((0, 4, (0,)), (2, 8, (0, 1)), chunk=2))
    same(out.iteration_end_s, [0.75, 1.5, 2.75, 3.5])


@RUNS
@pytest.mark.parametrize(("keep_s", "cached"), [(9.0, [0, 7]), (0.0, [0, 0])])
def test_a_warm_row_keeps_its_prefixes_and_an_empty_one_does_not(run, keep_s, cached):
    """Idle at the tick of 2 s; needed again at the tick of 5 s."""
    requests = [asked(0, 8, 1, prefix=(0, 1)), asked(4.5, 8, 1, prefix=(0, 1))]
    rows = [row(start_state=UP, cache=4, form=FORM)]
    out = run(growing(requests, rows, kind=CONCURRENCY, par=[1], keep_s=keep_s))
    same(out.cached, cached)
    same(out.states[:, 2], [WARM, UP] if keep_s else [WARM, EMPTY, STARTING, UP])


@RUNS
def test_a_switch_takes_it_all(run):
    """In the pipeline from 2.5 s the second prompt is computed by 4 s; after the switch at 5.5 s it is not there."""
    copies = {"multicast_s": [[[4.0]]], "piped_s": 1.0, "piped_with": 0, "piped_form": FORM}
    rows = [row(0, start_state=UP, limit=1), row(1, cache=4, form=FORM)]
    requests = [asked(0, 4, 20)] + [asked(t, 8, 1, prefix=(0, 1)) for t in (0.5, 4.5, 6)]
    out = run(growing(requests, rows, kind=NONE, min_rows=2, source=MULTICAST, **copies))
    same(out.cached, [0, 0, 7, 0])


def table(hashes, dtype=None):
    n = len(hashes)
    columns = {"model": ["a"] * n, "arrival_s": [1.0] * n, "prompt_tokens": [8] * n, "output_tokens": [1] * n}
    return pl.DataFrame({**columns, "prefix_hashes": pl.Series(hashes, dtype=dtype)})


def keeping(**engine):
    step = StepForm(compute=(1.0, 0, 0, 0, 0))
    return Scenario(groups=(Group(model="a", step=step, kv_tokens=64, engine=Engine(**engine)),))


def test_hashes_are_numbered_and_memory_is_cut_into_their_blocks():
    """33 tokens are four blocks of eight; a hash of 64 bits is no number of ours."""
    hashes = table([[2**64 - 1, 7], [], None, [2**64 - 1]], pl.List(pl.UInt64))
    given = lower(keeping(prefix_cache_tokens=33, prefix_block_tokens=8), hashes)
    assert given.requests.prefix_at.tolist() == [0, 2, 2, 2, 3]
    first, second, third = given.requests.prefix.tolist()
    assert (first, {first, second}) == (third, {0, 1})
    assert (given.requests.prefix_tokens, given.instances.cache.tolist()) == (8, [4])
    plain = lower(keeping(), hashes)
    assert (plain.requests.prefix.size, plain.requests.prefix_tokens, plain.instances.cache.tolist()) == (0, 0, [0])
    assert lower(keeping(prefix_cache_tokens=33), hashes.drop("prefix_hashes")).instances.cache.tolist() == [0]


def test_a_trace_states_what_its_hashes_cover():
    mooncake = trace("mooncake-conversation-like")
    given = lower(
        Scenario(groups=(keeping(prefix_cache_tokens=10**6).groups[0].model_copy(update={"model": _only(mooncake)}),)),
        mooncake,
    )
    assert given.requests.prefix_tokens == mooncake.origin.block_tokens
    assert given.instances.cache.tolist() == [10**6 // mooncake.origin.block_tokens]


def _only(requests):
    return requests.requests["model"][0]


@pytest.mark.parametrize(("hashes", "engine", "sentence"), [
    ([[1]], {}, "'prefix_block_tokens': is missing, and no trace states it; give the tokens"),
    ([[1]], {"prefix_block_tokens": 100}, "'prefix_cache_tokens': is 33, less than one hash block of 100"),
    ([1], {"prefix_block_tokens": 8}, "'prefix_hashes': is of type Int64; give a list of hashes a request"),
    ([[1], [1, None]], {"prefix_block_tokens": 8}, "row 2, field 'prefix_hashes': holds a list with a missing hash"),
])  # fmt: skip
def test_hashes_that_make_no_sense_are_refused(hashes, engine, sentence):
    with pytest.raises(InputError, match=sentence):
        lower(keeping(prefix_cache_tokens=33, **engine), table(hashes))
