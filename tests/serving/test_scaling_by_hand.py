"""Clusters that change their size, small enough to follow with a pencil; every number here was worked out by hand."""

import numpy as np
import pytest
from scaling_cases import growing, row
from serving_cases import asked

from workbench.errors import InputError
from workbench.serving.model import run_compiled
from workbench.serving.model.scaled import DEAD, DRAINING, EMPTY, STARTING, UP, WARM
from workbench.serving.policy.scalers import (
    ALL_CACHED,
    BACKLOG,
    CONCURRENCY,
    DRAM_TIER,
    FIXED_TIER,
    IDEAL,
    IDEAL_TIER,
    MULTICAST,
    MULTICAST_TIER,
    NONE,
    QUEUE,
    RATE,
    SSD_TIER,
    TIERS,
)
from workbench.serving.policy.scaling import decide
from workbench.serving.simulated.run import simulate

NAN = float("nan")
MODES = pytest.mark.parametrize("jumps", [True, False], ids=["jumps", "steps"])


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


@MODES
def test_a_waiting_request_starts_a_row_at_the_next_tick(jumps):
    """It waits from 0 s; the tick at 1 s starts a row: 0.5 s of engine and 1 s of weights. Steps end at 3.5 and 4.5 s.

    While the row starts the policy asks for no other one. The last tick is at 4 s: at 5 s everything is done.
    """
    out = run_compiled(growing([asked(0, 4, 2)], [row(0), row(1)]), jumps=jumps)
    same(out.states, [[1, 0, STARTING], [2.5, 0, UP]])
    same(out.loads[:, :8], [[1, 2.5, 0, FIXED_TIER, 0, 0, 3.5, 1]])
    same(out.ticks, [[1, 0, 1, 0], [2, 0, 1, 1], [3, 0, 1, 1], [4, 0, 1, 1]])
    same(out.wait_s, [2.5])
    same(out.finish_s, [4.5])


def test_an_idle_row_stays_warm_and_is_up_again_at_once():
    """Done at 1 s, which the tick at 2 s sees: warm. The second request comes at 6 s, after that tick; the next one
    brings the row back, without any load."""
    out = run_compiled(growing([asked(0, 4, 1), asked(6, 4, 1)], [row(0, start_state=UP)]))
    same(out.states, [[2, 0, WARM], [7, 0, UP]])
    same(out.loads[:, :8], np.empty((0, 8)))
    same(out.finish_s, [1, 8])
    same(out.ticks[:, 2], [1, 0, 0, 0, 0, 0, 1, 1])
    same(out.ticks[:, 3], [1, 1, 0, 0, 0, 0, 0, 1])


@pytest.mark.parametrize(("keep_s", "states", "finish_s"), [
    (5.0, [[2, 0, WARM], [7, 0, EMPTY], [7, 0, STARTING], [8.5, 0, UP]], 9.5),
    (5.25, [[2, 0, WARM], [7, 0, UP]], 8),
    (0.0, [[2, 0, WARM], [2, 0, EMPTY], [7, 0, STARTING], [8.5, 0, UP]], 9.5),
])  # fmt: skip
def test_a_warm_row_that_expires_with_a_tick_is_gone_before_it(keep_s, states, finish_s):
    """Warm at 2 s and needed at the tick of 7 s, as above: kept for 5 s is not long enough, a moment more is."""
    out = run_compiled(growing([asked(0, 4, 1), asked(6, 4, 1)], [row(0, start_state=UP)], keep_s=keep_s))
    same(out.states, states)
    same(out.finish_s, [1, finish_s])


@MODES
def test_two_loads_share_the_ssd_of_their_host(jumps):
    """8 bytes at 4 bytes/s. The first read has 4 bytes left at 2 s when the second begins: both at 2 bytes/s until
    4 s, when the second has 4 left for one more second. Engines start 0.5 s after that.

    The first row gets both requests at 4.5 s; the second comes up at 5.5 s, when there is nothing left to do.
    """
    requests = [asked(0, 4, 1), asked(1.5, 4, 1)]
    out = run_compiled(growing(requests, [row(0), row(1)], kind=CONCURRENCY, source=TIERS), jumps=jumps)
    same(out.loads[:, :8], [[1, 4.5, 0, SSD_TIER, 0, 0, 5.5, 2], [2, 5.5, 1, SSD_TIER, 0, 1, NAN, 0]])
    same(out.finish_s, [5.5, 5.5])


@MODES
@pytest.mark.parametrize("run", [run_compiled, simulate])
def test_no_load_gets_more_than_its_own_path(run, jumps):
    """As above where 2 bytes/s are the most for one: from 1 s to 5 s and from 2 s to 6 s, and none slows the other."""
    lowered = growing(
        [asked(0, 4, 1), asked(1.5, 4, 1)], [row(0), row(1)], kind=CONCURRENCY, source=TIERS, ssd_each_bytes_per_s=2.0
    )
    out = run(lowered, jumps=jumps) if run is run_compiled else run(lowered)
    same(out.loads[:, :2], [[1, 5.5], [2, 6.5]])


def test_loads_of_two_hosts_do_not_meet_and_what_one_has_read_its_other_row_finds_in_memory():
    """Two rows on two hosts begin at 1 s and read for 2 s. At 11 s a third row, on the first host, takes the copy in
    its memory: 0.5 s and 0.5 s for the engine."""
    requests = [asked(0, 4, 12)] * 2 + [asked(10, 4, 1)]
    rows = [row(0, limit=1), row(1, 1, limit=1), row(2, 0, limit=1)]
    out = run_compiled(growing(requests, rows, source=TIERS))
    same(out.loads[:, :8], [
        [1, 3.5, 0, SSD_TIER, 0, 0, 4.5, 1], [1, 3.5, 1, SSD_TIER, 0, 0, 4.5, 1], [11, 12, 2, DRAM_TIER, 0, 1, 13, 1],
    ])  # fmt: skip
    same(out.finish_s, [15.5, 15.5, 13])


TREE = np.zeros((2, 3, 3))
TREE[0] = [[4.0, 0, 0], [1.25, 2.5, 0], [1, 2, 3.25]]
TREE[1] = TREE[0] / 2
"""Seconds until target i of k has its copy from one source, and half of that from two."""


def multicast(**changes):
    """Four rows that are always wanted, the first one up, and a request of ten seconds for each."""
    settings = {"kind": NONE, "min_rows": 4, "source": MULTICAST, "multicast_s": TREE} | changes
    rows = [row(0, start_state=UP, limit=1)] + [row(k, limit=1) for k in (1, 2, 3)]
    return run_compiled(growing([asked(0, 4, 10)] * 4, rows, **settings))


def test_one_source_serves_three_targets():
    out = multicast()
    same(out.loads[:, :6], [[1, 1.5 + t, j, MULTICAST_TIER, 1, 0] for j, t in ((1, 1), (2, 2), (3, 3.25))])
    same(out.finish_s, [10, 12.5, 13.5, 14.75])


def test_targets_beyond_the_table_are_a_second_operation():
    """A table for two targets: the third is alone in an operation of its own, which takes 4 s."""
    out = multicast(multicast_s=TREE[:, :2, :2])
    same(out.loads[:, 1], [1.5 + 1.25, 1.5 + 2.5, 1.5 + 4])
    same(out.loads[:, 4:6], [[1, 0], [1, 0], [1, 1]])


def test_when_the_source_dies_the_rest_begins_again_from_who_has_the_weights():
    """The source fails at 3 s. The first target, up since 2.5 s, serves the other two: 0.5 s and 1.25 or 2.5 s.

    The request of the source has emitted two tokens by then (the third step is lost). It goes first: to the second
    target at 4.75 s, for 8 more tokens. The third target at 6 s takes the third request, and the fourth one gets the
    first target when that is free at 12.5 s.
    """
    out = multicast(failures=[(3.0, 0, np.inf)])
    same(out.loads[:, :8], [
        [1, 2.5, 1, MULTICAST_TIER, 1, 0, 3.5, 2], [1, NAN, 2, MULTICAST_TIER, 1, 0, NAN, 0],
        [1, NAN, 3, MULTICAST_TIER, 1, 0, NAN, 0], [3, 4.75, 2, MULTICAST_TIER, 1, 1, NAN, 1],
        [3, 6, 3, MULTICAST_TIER, 1, 1, 7, 1],
    ])  # fmt: skip
    same(out.states, [
        [1, 1, STARTING], [1, 2, STARTING], [1, 3, STARTING], [2.5, 1, UP], [3, 0, DEAD], [4.75, 2, UP], [6, 3, UP],
    ])  # fmt: skip
    same(out.finish_s, [12.75, 12.5, 16, 22.5])


def test_a_target_that_dies_takes_nothing_from_the_others_and_without_any_source_the_ssd_is_read():
    """At 2 s the second target fails. At 2.25 s so does the only source: the other two read 8 bytes each from the SSD
    of their host at half its rate, 4 s."""
    out = multicast(failures=[(2.0, 2, np.inf), (2.25, 0, np.inf)])
    same(out.loads[:, :6], [
        [1, NAN, 1, MULTICAST_TIER, 1, 0], [1, NAN, 2, MULTICAST_TIER, 1, 0], [1, NAN, 3, MULTICAST_TIER, 1, 0],
        [2.25, 6.75, 1, SSD_TIER, 0, 1], [2.25, 6.75, 3, SSD_TIER, 0, 1],
    ])  # fmt: skip


def test_a_warm_row_in_use_as_a_source_expires_when_the_operation_ends():
    """Two requests for one slot: at 1 s the second row starts, to be ready 0.5 s and 4 s later. The first is done with
    both requests at 3 s, when the tick has just let it drain. Kept for 1.25 s, it is in use until 5.5 s."""
    rows = [row(0, start_state=UP, limit=1), row(1, limit=1)]
    requests = [asked(0, 4, 2), asked(0, 4, 1)]
    changes = {"kind": CONCURRENCY, "source": MULTICAST, "multicast_s": TREE, "keep_s": 1.25}
    out = run_compiled(growing(requests, rows, **changes))
    same(out.finish_s, [2, 3])
    same(out.states, [[1, 1, STARTING], [3, 0, DRAINING], [3, 0, WARM], [5.5, 1, UP], [5.5, 0, EMPTY]])


CACHES = [asked(0, 4, 1, 0), asked(10, 4, 1, 1), asked(20, 4, 1, 2), asked(30, 4, 1, 1), asked(40, 4, 1, 0)]
CACHES += [asked(50, 4, 1, 1), asked(60, 4, 1, 2)]


def one_place_for_three(**changes):
    return run_compiled(growing(CACHES, [row(0, model=m) for m in (0, 1, 2)], source=TIERS, **changes))


def test_the_weights_used_longest_ago_make_room_in_the_memory_of_the_host():
    """One place, room for two models of 8 bytes. A request comes every 10 s; the tick a second later displaces the row
    that is warm for another model, whose weights were then used last.

    The third model's read (23 s) drives out the first (last used at 11 s, the second at 21 s). The second is found at
    31 s. The first's read (43 s) drives out the third (31 s; the second 41 s). The second is found, the third is not.
    """
    out = one_place_for_three(cache_bytes=16.0)
    same(out.loads[:, 2], [0, 1, 2, 1, 0, 1, 2])
    same(out.loads[:, 3], [SSD_TIER, SSD_TIER, SSD_TIER, DRAM_TIER, SSD_TIER, DRAM_TIER, SSD_TIER])
    same(out.loads[:, 0], [1, 11, 21, 31, 41, 51, 61])
    same(out.loads[:, 1], [3.5, 13.5, 23.5, 32, 43.5, 52, 63.5])
    same(out.states[3:7], [[11, 0, EMPTY], [11, 1, STARTING], [13.5, 1, UP], [15, 1, WARM]])


def test_weights_larger_than_the_memory_are_read_every_time():
    same(one_place_for_three(cache_bytes=7.0).loads[:, 3], [SSD_TIER] * 7)


def test_weights_unused_for_too_long_are_forgotten():
    """The second model leaves at 21 and is needed at 31 s, and again from 41 to 51 s: 10 s are too long if that is what
    they are kept for, and the first, away from 11 to 41 s, and the third, from 31 to 61 s, are gone after 25 s too."""
    same(one_place_for_three(ttl_s=10.0).loads[:, 3], [SSD_TIER] * 7)
    found = [SSD_TIER, SSD_TIER, SSD_TIER, DRAM_TIER, SSD_TIER, DRAM_TIER, SSD_TIER]
    same(one_place_for_three(ttl_s=25.0).loads[:, 3], found)
    same(
        one_place_for_three(cached=[[1, 0, 0]], ttl_s=25.0).loads[:, 3], [DRAM_TIER, *found[1:4], SSD_TIER, *found[5:]]
    )


def test_what_the_host_has_at_first_is_found():
    same(one_place_for_three(cached=[[1, 1, 1]]).loads[:, 3], [DRAM_TIER] * 7)


def test_with_every_model_in_memory_no_ssd_is_read():
    requests = [asked(0, 4, 1)]
    same(run_compiled(growing(requests, [row(0)], source=ALL_CACHED)).loads[:, :8], [[1, 2, 0, DRAM_TIER, 0, 0, 3, 1]])


def test_a_decision_sees_the_load_of_two_ticks_ago():
    """Waiting since 0 s, seen at 1 s, acted on at 3 s. At 5 s the policy sees the request of 3 s still waiting, though
    its row came up at 4.5 s, and starts a second row for nobody."""
    out = run_compiled(growing([asked(0, 4, 1)], [row(0), row(1)], scrape_ticks=2))
    same(out.ticks, [[1, 0, 0, 0], [2, 0, 0, 0], [3, 0, 1, 0], [4, 0, 1, 1], [5, 0, 2, 1]])
    same(out.states, [[3, 0, STARTING], [4.5, 0, UP], [5, 1, STARTING], [6.5, 1, UP]])
    same(out.loads[:, 6:8], [[5.5, 1], [NAN, 0]])


def test_fewer_are_wanted_three_times_before_one_goes():
    """One request, two rows: the idle one goes at the third tick that says so."""
    rows = [row(0, start_state=UP), row(1, start_state=UP)]
    out = run_compiled(growing([asked(0, 4, 6)], rows, kind=CONCURRENCY, down_ticks=3))
    same(out.ticks[:, 2], [2, 2, 1, 1, 1, 1])
    same(out.states, [[3, 1, WARM]])


def test_more_are_wanted_twice_before_one_starts():
    out = run_compiled(growing([asked(0, 4, 1)], [row(0)], up_ticks=2))
    same(out.ticks, [[1, 0, 0, 0], [2, 0, 1, 0], [3, 0, 1, 1], [4, 0, 1, 1]])
    same(out.finish_s, [4.5])


def test_no_more_and_no_fewer_than_the_bounds():
    """Five wait, two rows may start; the fifth is served alone from 4.5 s on, so that the other row goes at 5 s; one
    stays when nobody is there."""
    rows = [row(k, limit=1) for k in range(4)]
    out = run_compiled(growing([asked(0, 4, 1)] * 5 + [asked(9, 4, 1)], rows, max_rows=2, min_rows=1))
    same(out.states, [
        [1, 0, STARTING], [1, 1, STARTING], [2.5, 0, UP], [2.5, 1, UP], [5, 1, WARM],
    ])  # fmt: skip
    same(out.finish_s, [3.5, 3.5, 4.5, 4.5, 5.5, 10])


@MODES
def test_a_row_that_drains_finishes_what_it_has_and_is_kept_for_a_while(jumps):
    """Two requests are one row's work. Of the two rows, equally busy, the last one drains from 1 s to 3 s, with the
    queue it has; it is warm for half a second."""
    rows = [row(0, start_state=UP), row(1, start_state=UP, slots=1)]
    requests = [asked(0, 4, 10), asked(0, 4, 3), asked(0, 4, 9), asked(0, 4, 2), asked(2, 4, 1)]
    out = run_compiled(growing(requests, rows, kind=CONCURRENCY, par=[4.0], keep_s=0.5, max_rows=1), jumps=jumps)
    same(out.states, [[1, 1, DRAINING], [5, 1, WARM], [5.5, 1, EMPTY]])
    same(out.instance, [0, 1, 0, 1, 0])
    same(out.finish_s, [10, 3, 9, 5, 3])


def test_a_draining_row_comes_back_before_any_other_starts():
    """It drains from 1 s. At 2.5 s two more requests come: at 3 s it is up again, and the third row begins to load."""
    rows = [row(0, start_state=UP, limit=2), row(1, start_state=UP, limit=2), row(2, limit=2)]
    requests = [asked(0, 4, 10), asked(0, 4, 10)] + [asked(2.5, 4, 8)] * 4
    out = run_compiled(growing(requests, rows, kind=CONCURRENCY, par=[2.0]))
    same(out.states[:4], [[1, 1, DRAINING], [3, 1, UP], [3, 2, STARTING], [4.5, 2, UP]])
    same(out.instance, [0, 1, 0, 1, 2, 2])


def test_with_ideal_weights_a_row_is_up_at_the_tick():
    out = run_compiled(growing([asked(0, 4, 1)], [row(0)], source=IDEAL))
    same(out.states, [[1, 0, STARTING], [1, 0, UP]])
    same(out.loads[:, :8], [[1, 1, 0, IDEAL_TIER, 0, 0, 2, 1]])


def test_a_place_that_fails_while_a_row_starts_there_is_empty_when_it_is_back():
    """Fails at 2 s, back at 3.25 s; the tick at 4 s starts again what the tick at 3 s could not."""
    out = run_compiled(growing([asked(0, 4, 1)], [row(0, model=0), row(0, model=1)], [(2.0, 0, 3.25)]))
    same(out.loads[:, :8], [[1, NAN, 0, FIXED_TIER, 0, 0, NAN, 0], [4, 5.5, 0, FIXED_TIER, 0, 1, 6.5, 1]])
    same(out.states, [
        [1, 0, STARTING], [2, 0, DEAD], [2, 1, DEAD], [3.25, 0, EMPTY], [3.25, 1, EMPTY], [4, 0, STARTING],
        [5.5, 0, UP],
    ])  # fmt: skip


def test_ticks_end_when_nothing_can_change_any_more():
    """Nobody starts a row, so a request waits for ever: after 0 + 1 + 1 + 1 quiet ticks there are no more."""
    out = run_compiled(growing([asked(0, 4, 1)], [row(0)], kind=NONE))
    same(out.ticks, [[1, 0, 0, 0], [2, 0, 0, 0], [3, 0, 0, 0]])
    same(out.status, [0])


@pytest.mark.parametrize(("kind", "par", "seen", "n", "want"), [
    (QUEUE, [4], (9, 30, 0, 0, 0), 2, 4),  # two more for eight of nine that wait
    (QUEUE, [4], (3, 0, 0, 0, 0), 0, 1),  # nobody is there, so one that waits is enough
    (QUEUE, [4], (0, 3, 0, 0, 0), 5, 3),  # two at least have nothing to do
    (QUEUE, [4], (0, 8, 0, 0, 0), 5, 5),
    (QUEUE, [4], (0, 0, 0, 0, 0), 5, 0),
    (CONCURRENCY, [3], (4, 3, 0, 0, 0), 9, 3),  # 7 requests, 3 a row
    (RATE, [2], (0, 0, 0, 0, 9), 1, 3),  # 9 in 2 s, 2 a second and row
    (BACKLOG, [1000, 0.5, 0.7, 100, 0.75, 0.95], (0, 0, 2100, 0, 0), 1, 4),  # 3 to 5 are right: 4.5 rounded down
    (BACKLOG, [1000, 0.5, 0.7, 100, 0.75, 0.95], (0, 0, 2100, 0, 0), 6, 5),  # one fewer a tick
    (BACKLOG, [1000, 0.5, 0.7, 100, 0.75, 0.95], (0, 0, 0, 300, 0), 2, 4),  # 300 blocks: 3.2 to 4 rows
])  # fmt: skip
def test_decisions(kind, par, seen, n, want):
    numbers = np.zeros(8)
    numbers[: len(par)] = par
    assert decide(kind, numbers, *seen, n, 0, 2.0) == want


@pytest.mark.parametrize("waiting", [0, 9])
def test_while_rows_start_the_queue_asks_for_no_change(waiting):
    assert decide(QUEUE, np.full(8, 4.0), waiting, 1, 0, 0, 0, 5, 1, 2.0) == 5


@pytest.mark.parametrize(("change", "sentence"), [
    ({"par": [0.0]}, "field 'par': .* all above 0"),
    ({"min_rows": 3, "max_rows": 2}, "field 'max_rows': .* at least min_rows"),
    ({"tick_s": 0.0}, "field 'tick_s'"),
    ({"keep_s": -1.0}, "field 'keep_s': .* 0 or more"),
    ({"source": 9}, "field 'source': .* 0 to 5"),
])  # fmt: skip
def test_scaling_that_makes_no_sense_is_refused(change, sentence):
    with pytest.raises(InputError, match=sentence):
        run_compiled(growing([asked(0, 4, 1)], [row(0)], **change))
