"""Requests of several ranks, the lowest first, in cases worked out by hand; every step takes one second."""

import numpy as np
import polars as pl
import pytest
from scaling_cases import growing, row
from serving_cases import asked, cluster, place

from workbench.errors import InputError
from workbench.serving.model import Group, Scenario, StepForm, lower, run_compiled
from workbench.serving.model.scaled import UP
from workbench.serving.policy.scalers import MULTICAST, NONE
from workbench.serving.simulated import simulate

RUNS = pytest.mark.parametrize("run", [simulate, run_compiled], ids=["simpy", "compiled"])


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def ranked(rank, arrival_s, prompt, output):
    return asked(arrival_s, prompt, output, rank=rank)


@RUNS
def test_at_the_router_lower_ranks_stand_before_higher_ones(run):
    """One at a time: the first takes 3 s; the third, of rank 0, comes after the second but goes before it."""
    requests = [ranked(0, 0, 4, 3), ranked(1, 0.25, 4, 1), ranked(0, 0.5, 4, 1), ranked(1, 0.75, 4, 1)]
    same(run(cluster(requests, [place(limit=1)])).finish_s, [3, 5, 4, 6])


@RUNS
def test_a_limit_is_not_broken_for_a_lower_rank(run):
    same(run(cluster([ranked(1, 0, 4, 3), ranked(0, 0.5, 4, 1)], [place(limit=1)])).finish_s, [3, 4])


@RUNS
def test_in_a_queue_too(run):
    requests = [ranked(0, 0, 4, 3), ranked(2, 0.25, 4, 1), ranked(1, 0.5, 4, 1), ranked(1, 0.75, 4, 1)]
    same(run(cluster(requests, [place(slots=1)])).finish_s, [3, 6, 4, 5])


@RUNS
def test_a_lower_rank_takes_the_slot_of_a_higher_one(run):
    """At 2 s the first has two tokens and goes. It computes 4 + 2 tokens again from 4 s on."""
    out = run(cluster([ranked(1, 0, 4, 4), ranked(0, 1.5, 4, 2)], [place(slots=1)]))
    same(out.finish_s, [6, 4])
    same(out.evictions, [1, 0])
    same(out.segments, [[0, 0, 2, 0, 0], [0, 2, 2, 0, 4], [1, 0, 2, 0, 2]])
    same(out.wait_s, [0, 0.5])


@RUNS
@pytest.mark.parametrize(("rank", "whole"), [(0, 0), (1, 0), (0, 1)])
def test_an_equal_rank_and_a_whole_batch_stay(run, rank, whole):
    """The first is of rank 0, or of rank 1 in an engine that admits only when nothing runs."""
    requests = [ranked(whole, 0, 4, 4), ranked(rank, 1.5, 4, 2)]
    out = run(cluster(requests, [place(slots=1, whole=whole)]))
    same(out.finish_s, [4, 6])
    same(out.evictions, [0, 0])


@RUNS
def test_for_blocks_the_highest_rank_goes_first_though_it_came_first(run):
    """Four blocks, two for each of the first two at 2 s. The third needs two: the first, of rank 2, goes with two
    tokens. It comes back at 3 s, when both others are done, and makes its third."""
    out = run(cluster([ranked(2, 0, 4, 3), ranked(1, 0, 4, 3), ranked(0, 1.5, 8, 1)], [place(blocks=4)]))
    same(out.finish_s, [4, 3, 3])
    same(out.evictions, [1, 0, 0])
    same(out.peak_blocks, [4])


@RUNS
def test_as_many_go_as_it_takes_and_come_back_by_rank(run):
    """Three blocks for three requests; the fourth needs all of them at 2 s, when each has two tokens.

    It is done at 3 s. They come back together, one block each, and have three tokens at 4 s. Then each needs a second
    block: the first request, of rank 2, goes for the second; the third would be next and has nobody to go for it but
    itself. The second is done at 5 s; of the others rank 1 comes back first.
    """
    requests = [ranked(2, 0, 2, 4), ranked(1, 0, 2, 4), ranked(1, 0, 2, 4), ranked(0, 1.5, 12, 0)]
    out = run(cluster(requests, [place(blocks=3)]))
    same(out.finish_s, [7, 5, 6, 3])
    same(out.evictions, [2, 1, 2, 0])


@RUNS
def test_where_tokens_need_a_block_the_highest_rank_goes(run):
    """As without ranks (the last admitted goes at 5 s), but the first is of rank 1 and so the last of those running."""
    out = run(cluster([ranked(1, 0, 4, 6), ranked(0, 0, 4, 6)], [place(blocks=4)]))
    same(out.finish_s, [7, 6])
    same(out.evictions, [1, 0])


@RUNS
def test_the_budget_is_shared_out_by_rank(run):
    """Four tokens a step: the eight of rank 0 first, though they were admitted in the same step as those of rank 1."""
    out = run(cluster([ranked(1, 0, 8, 1), ranked(0, 0, 8, 1)], [place(budget=4)]))
    same(out.finish_s, [4, 2])


@RUNS
def test_one_thrown_out_stands_before_its_rank_but_behind_lower_ones(run):
    """The first, of rank 1, has one token at 1.5 s. From 2 s on: rank 0, then its last two tokens, then the third."""
    requests = [ranked(1, 0, 4, 3), ranked(0, 0.5, 4, 1), ranked(1, 0.5, 4, 1)]
    out = run(cluster(requests, [place(limit=1)], [(1.5, 0, 2.0)]))
    same(out.finish_s, [5, 3, 6])


@RUNS
def test_at_a_switch_to_its_own_weights_a_row_sorts_by_rank(run):
    """A member of a pipeline from 2.5 s, alone at 4 s: its first step of 2 s is lost, and the newcomer of rank 0 that
    came meanwhile goes first; of rank 1, the one that ran."""
    copies = {"multicast_s": [[[2.5]]], "piped_s": 1.0, "piped_with": 0, "piped_form": [[2.0, 0, 0, 0, 0], [0] * 5]}
    rows = [row(0, start_state=UP, limit=1), row(1, slots=1, limit=3)]
    requests = [ranked(0, 0, 4, 20), ranked(1, 0.5, 4, 1), ranked(1, 0.5, 4, 1), ranked(0, 3, 4, 1)]
    out = run(growing(requests, rows, kind=NONE, min_rows=2, source=MULTICAST, **copies))
    same(out.finish_s, [20, 6, 7, 5])
    same(out.moves, [0, 1, 0, 0])


def table(priority, dtype=None):
    columns = {"model": ["a"] * 2, "arrival_s": [5.0, 6.0], "prompt_tokens": [1, 1], "output_tokens": [1, 1]}
    return pl.DataFrame({**columns, "priority": pl.Series(priority, dtype=dtype, strict=False)})


ONE = Scenario(groups=(Group(model="a", step=StepForm(compute=(1.0, 0, 0, 0, 0)), kv_tokens=64),))


def test_ranks_come_from_the_column_priority():
    assert lower(ONE, table([3, 0])).requests.rank.tolist() == [3, 0]
    assert lower(ONE, table([3, 0], pl.UInt8)).requests.rank.tolist() == [3, 0]
    assert lower(ONE, table([3, 0]).drop("priority")).requests.rank.tolist() == [0, 0]


@pytest.mark.parametrize("priority", [[0, -1], [0, None], [0.0, 0.5], ["0", "high"], [0, 2**63]])
def test_priorities_that_make_no_sense_are_refused(priority):
    with pytest.raises(InputError, match=r"field 'priority': .*; give whole numbers of 0 or more, 0 first"):
        lower(ONE, table(priority, pl.UInt64 if priority[1] == 2**63 else None))
