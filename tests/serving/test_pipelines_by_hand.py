"""Rows that serve by turns in a pipeline while their weights are on their way, in cases worked out by hand.

Every step takes 1 s, in a pipeline 2 s; ticks are at 1 s, 2 s and so on; engines start in 0.5 s; copies take 4 s and
pipelines form after 1 s unless said otherwise: at the first tick, so members serve from 2.5 s and are alone at 5.5 s.
"""

import numpy as np
import pytest
from scaling_cases import growing, row
from serving_cases import asked

from workbench.serving.model import run_compiled
from workbench.serving.model.scaled import DEAD, DRAINING, PIPED, STARTING, UP
from workbench.serving.policy.scalers import CONCURRENCY, MULTICAST, MULTICAST_TIER, NONE, QUEUE, SSD_TIER
from workbench.serving.simulated import simulate

NAN, INF = float("nan"), float("inf")
RUNS = pytest.mark.parametrize("run", [simulate, run_compiled], ids=["simpy", "compiled"])
TWO_SECONDS = ((2.0, 0.0, 0.0, 0.0, 0.0), (0.0,) * 5)


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def piped(requests, rows, **changes):
    """Rows that are all wanted at the first tick; the first one is up and has the weights."""
    settings = {
        "kind": NONE, "min_rows": len(rows), "source": MULTICAST, "multicast_s": [[[4.0] * 2] * 2], "piped_s": 1.0,
        "piped_with": 0, "piped_form": TWO_SECONDS,
    }  # fmt: skip
    return growing(requests, rows, **settings | changes)


def rows_of(count, **engine):
    return [row(0, start_state=UP, limit=1), *(row(k, **{"limit": 1} | engine) for k in range(1, count))]


@RUNS
def test_a_member_serves_before_it_has_its_weights(run):
    """The second request waits for 2.5 s, has its prompt computed by 4.5 s, and loses its next step at 5.5 s.

    Then its 4 + 1 tokens are computed anew, alone: its second token comes at 6.5 s, its third at 7.5 s.
    """
    out = run(piped([asked(0, 4, 10), asked(0, 4, 3)], rows_of(2)))
    same(out.states, [[1, 1, STARTING], [2.5, 1, PIPED], [5.5, 1, UP]])
    same(out.loads, [[1, 5.5, 1, MULTICAST_TIER, 1, 0, 4.5, 1, 2.5]])
    same(out.wait_s, [0, 2.5])
    same(out.first_token_s, [1, 4.5])
    same(out.finish_s, [10, 7.5])
    same(out.moves, [0, 1])
    same(out.evictions, [0, 0])
    same(out.failed_steps, [0, 1])
    same(out.busy_s, [10, 4])
    same(out.iteration_end_s[10:], [4.5, 6.5, 7.5])
    same(out.segments, [[0, 0, 10, 0, 0], [1, 0, 3, 1, 0]])


@RUNS
def test_a_step_that_ends_with_the_switch_is_lost_and_an_idle_member_just_goes_on(run):
    """The copy is there at 6.5 s, when the second step in the pipeline would end. Without work nothing is lost."""
    out = run(piped([asked(0, 4, 10), asked(0, 4, 3)], rows_of(2), multicast_s=[[[5.0]]]))
    same(out.iteration_end_s[10:], [4.5, 7.5, 8.5])
    same(out.failed_steps, [0, 1])
    idle = run(piped([asked(0, 4, 10), asked(6, 4, 1)], rows_of(2)))
    same(idle.finish_s, [10, 7])
    same([idle.failed_steps.sum(), idle.moves.sum()], [0, 0])


@RUNS
def test_at_the_switch_who_ran_stands_before_who_waited(run):
    """One slot, two requests there: the first goes on first, though it computes its prompt again."""
    out = run(piped([asked(0, 4, 10), asked(0, 4, 3), asked(0, 4, 1)], rows_of(2, limit=2, slots=1)))
    same(out.finish_s, [10, 7.5, 8.5])
    same(out.moves, [0, 1, 0])
    same(out.wait_s, [0, 2.5, 7.5])


@RUNS
def test_members_switch_together_if_asked(run):
    """Copies take 3 s and 6 s; one by one the first is alone at 4.5 s, together both are at 7.5 s."""
    requests, copies = [asked(0, 4, 10), asked(0, 4, 2), asked(0, 4, 2)], [[[3.0, 6.0]] * 2]
    apart = run(piped(requests, rows_of(3), multicast_s=copies))
    same(apart.loads[:, 1], [4.5, 7.5])
    same(apart.first_token_s, [1, 5.5, 4.5])  # the first step of both ends at 4.5 s, and row 1 loses it
    same(apart.finish_s, [10, 6.5, 6.5])
    same(apart.failed_steps, [0, 1, 0])
    together = run(piped(requests, rows_of(3), multicast_s=copies, switch_whole=1))
    same(together.loads[:, 1], [7.5, 7.5])
    same(together.first_token_s, [1, 4.5, 4.5])
    same(together.finish_s, [10, 6.5, 6.5])


@RUNS
def test_the_time_together_is_set_at_the_start(run):
    """The row that would be ready last, at 7.5 s, fails at 2 s: the other is alone at 7.5 s all the same."""
    out = run(piped(
        [asked(0, 4, 10)], rows_of(3), multicast_s=[[[3.0, 6.0]] * 2], piped_with=[[[0, 1]] * 2], switch_whole=1,
        failures=[(2, 2, INF)],
    ))  # fmt: skip
    same(out.states, [[1, 1, STARTING], [1, 2, STARTING], [2, 2, DEAD], [2.5, 1, PIPED], [7.5, 1, UP]])


@RUNS
@pytest.mark.parametrize(("piped_s", "states"), [
    (4.0, [[1, 1, STARTING], [5.5, 1, UP]]), (INF, [[1, 1, STARTING], [5.5, 1, UP]]),
    (3.75, [[1, 1, STARTING], [5.25, 1, PIPED], [5.5, 1, UP]]),
])  # fmt: skip
def test_a_pipeline_that_does_not_form_before_the_copy_is_none(run, piped_s, states):
    same(run(piped([asked(0, 4, 10)], rows_of(2), piped_s=piped_s)).states, states)


@RUNS
def test_together_a_pipeline_may_form_after_some_copies(run):
    """The first copy takes 3 s, the pipeline 3.5 s, the last copy 6 s."""
    out = run(piped([asked(0, 4, 10)], rows_of(3), multicast_s=[[[3.0, 6.0]] * 2], piped_s=3.5, switch_whole=1))
    same(out.loads[:, [1, 8]], [[7.5, 5], [7.5, 5]])


@RUNS
def test_a_member_that_dies_ends_its_pipeline(run):
    """At 3 s row 1 dies. Its request waits; then that of row 2, whose step is lost too, stands before it.

    Row 2 has its copy at 5.5 s and serves them one by one: 2 s, then 3 s.
    """
    out = run(piped([asked(0, 4, 10), asked(0, 4, 3), asked(0, 4, 2)], rows_of(3), failures=[(3, 1, INF)]))
    same(out.states, [
        [1, 1, STARTING], [1, 2, STARTING], [2.5, 1, PIPED], [2.5, 2, PIPED], [3, 1, DEAD], [3, 2, STARTING],
        [5.5, 2, UP],
    ])  # fmt: skip
    same(out.loads, [
        [1, NAN, 1, MULTICAST_TIER, 1, 0, NAN, 0, 2.5], [1, 5.5, 2, MULTICAST_TIER, 1, 0, 6.5, 2, 2.5],
    ])  # fmt: skip
    same(out.instance, [0, 2, 2])
    same(out.finish_s, [10, 10.5, 7.5])
    same(out.moves, [0, 1, 1])
    same(out.failed_steps, [0, 1, 1])


@RUNS
def test_another_pipeline_goes_on(run):
    """As above with a pipeline for each row: only row 1 is lost, and its request waits until row 2 is free at 6.5 s."""
    out = run(piped(
        [asked(0, 4, 20), asked(0, 4, 3), asked(0, 4, 2)], rows_of(3), piped_with=[[[0, 1]] * 2],
        failures=[(3, 1, INF)],
    ))  # fmt: skip
    same(out.states[4:], [[3, 1, DEAD], [5.5, 2, UP]])
    same(out.finish_s, [20, 9.5, 6.5])
    same(out.moves, [0, 1, 1])


@RUNS
def test_a_pipeline_that_has_lost_a_member_never_forms(run):
    """Row 1 dies at 2 s, before 2.5 s."""
    out = run(piped([asked(0, 4, 10)], rows_of(3), failures=[(2, 1, INF)]))
    same(out.states, [[1, 1, STARTING], [1, 2, STARTING], [2, 1, DEAD], [5.5, 2, UP]])
    same(out.loads[:, 8], [NAN, NAN])


@RUNS
def test_who_is_alone_leaves_the_pipeline_whole(run):
    """Row 1 has its copy at 3.5 s and dies at 4 s: row 2 still serves as it did."""
    out = run(piped(
        [asked(0, 4, 10), asked(0, 4, 9), asked(0, 4, 1)], rows_of(3), multicast_s=[[[2.0, 4.0]] * 2],
        failures=[(4, 1, INF)],
    ))  # fmt: skip
    same(out.states[2:], [[2.5, 1, PIPED], [2.5, 2, PIPED], [3.5, 1, UP], [4, 1, DEAD], [5.5, 2, UP]])
    same(out.first_token_s[2], 4.5)


@RUNS
def test_without_its_source_a_member_starts_anew(run):
    """The source dies at 3 s with two tokens made; the member's request goes back, before that of the source.

    The weights then come from the SSD by 5.5 s. Two tokens of the first request and the whole second one are left:
    2 s, then 8 s for 8 tokens.
    """
    out = run(piped([asked(0, 4, 10), asked(0, 4, 2)], rows_of(2), failures=[(3, 0, INF)]))
    same(out.states, [[1, 1, STARTING], [2.5, 1, PIPED], [3, 0, DEAD], [3, 1, STARTING], [5.5, 1, UP]])
    same(out.loads, [
        [1, NAN, 1, MULTICAST_TIER, 1, 0, NAN, 0, 2.5], [3, 5.5, 1, SSD_TIER, 0, 1, 6.5, 2, NAN],
    ])  # fmt: skip
    same(out.finish_s, [15.5, 7.5])
    same(out.moves, [1, 1])


@RUNS
def test_members_count_as_starting(run):
    """One row for each waiting request, but none while one starts: at 3 s to 5 s the member is starting, and a third
    request waits. At 6 s it no longer is."""
    requests = [asked(0, 4, 20), asked(0.5, 4, 9), asked(2.75, 4, 1)]
    out = run(piped(requests, rows_of(3), kind=QUEUE, min_rows=0))
    same(out.ticks[:6, 2:], [[2, 1], [2, 2], [2, 2], [2, 2], [2, 2], [3, 2]])
    same(out.states[3], [6, 2, STARTING])


@RUNS
def test_members_do_not_drain(run):
    """At 1 s three rows are wanted for the three requests there. One is done at 2 s and no row waits any more: at 3 s
    two rows are wanted, and of three, two of them idle members, the first drains. At 4 s there is a third request, on
    a member, and the first comes back: it still has the two others, its steps at 3 s and 4 s not lost.
    """
    requests = [asked(0, 4, 2), *[asked(0.5, 4, 3)] * 2, asked(3.5, 4, 1)]
    rows = [row(0, start_state=UP, limit=2), row(1, limit=1), row(2, limit=1)]
    out = run(piped(requests, rows, kind=CONCURRENCY, par=[1], min_rows=0, until_s=4.0))
    same(out.ticks[:, 2:], [[3, 1], [3, 3], [2, 3], [3, 2]])
    same(out.states[2:], [[2.5, 1, PIPED], [2.5, 2, PIPED], [3, 0, DRAINING], [4, 0, UP]])
    same(out.instance, [0, 0, 0, 1])
    same(out.made, [2, 3, 2, 0])


@RUNS
def test_members_send_nothing(run):
    """A third row starts at 3 s, while the second one is a member: the first is its only source."""
    requests = [asked(0, 4, 20), asked(0.5, 4, 9), asked(2.75, 4, 1)]
    out = run(piped(requests, rows_of(3), kind=CONCURRENCY, par=[1], min_rows=0))
    same(out.loads[:, [0, 2, 4]], [[1, 1, 1], [3, 2, 1]])


@RUNS
def test_an_autoscaler_sees_what_members_have(run):
    """One row for each request: that of the member counts from 3 s to 5 s, or its row would drain after the switch."""
    out = run(piped([asked(0, 4, 9), asked(0.5, 4, 4)], rows_of(2), kind=CONCURRENCY, par=[1], min_rows=0))
    same(out.ticks[:6, 2:], [[2, 1], [2, 2], [2, 2], [2, 2], [2, 2], [2, 2]])
