"""Rows, weights and autoscaler in SimPy do what their rules say, in small cases worked out by hand.

Every step takes one second, ticks are at 1 s, 2 s and so on; weights take 1 s and the engine's start 0.5 s unless said
otherwise.
"""

import numpy as np
import pytest
from scaling_cases import growing, row
from serving_cases import asked

from workbench.serving.model.lowered import DONE, INSIDE, REJECTED
from workbench.serving.model.scaled import DEAD, DRAINING, EMPTY, STARTING, UP, WARM
from workbench.serving.policy import ROUTES, SCALERS, SOURCES
from workbench.serving.simulated import simulate

NAN, INF = float("nan"), float("inf")
FIXED, DRAM, SSD, MULTICAST = 1, 2, 3, 4
CONCURRENCY = SCALERS["concurrency"]


def equal(found, wanted):
    np.testing.assert_array_equal(found, wanted)


def test_from_zero_and_back():
    """A request at 0 s is seen at 1 s and served from 2.5 s; at 5 s nobody is there, and 2 s later the row is empty.

    At 10 s it all begins anew.
    """
    run = simulate(growing([asked(0, 1, 2), asked(9.5, 1, 1)], [row()], keep_s=2))
    equal(run.finish_s, [4.5, 12.5])
    equal(run.wait_s, [2.5, 2])
    first = [(1, 0, STARTING), (2.5, 0, UP), (5, 0, WARM), (7, 0, EMPTY)]
    equal(run.states, [*first, (10, 0, STARTING), (11.5, 0, UP)])
    equal(run.loads[:, :8], [(1, 2.5, 0, FIXED, 0, 0, 3.5, 1), (10, 11.5, 0, FIXED, 0, 1, 12.5, 1)])
    equal(run.ticks[:, 0], np.arange(1, 13))
    equal(run.ticks[:, 2], [1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1])
    equal(run.ticks[:, 3], [0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1])


def test_who_arrives_while_a_row_starts_waits_for_it():
    """The queue's policy starts no second row meanwhile; what arrives at the tick itself is not seen by it."""
    requests = [asked(0, 1, 1), asked(1, 1, 1), asked(2.25, 1, 1)]
    run = simulate(growing(requests, [row(), row(1)]))
    equal(run.instance, [0, 0, 0])
    equal(run.wait_s, [2.5, 1.5, 0.25])
    equal(run.ticks[:, 2:], [(1, 0), (1, 1), (1, 1)])


def test_a_row_drains_with_its_queue():
    """Of two rows with two requests each, one a time, the second drains at 1 s, until 4 s; the newcomer goes to the
    first.
    """
    requests = [*[asked(0, 1, 2)] * 4, asked(1.5, 1, 2)]
    rows = [row(j, start_state=UP, slots=1) for j in range(2)]
    run = simulate(growing(requests, rows, kind=CONCURRENCY, par=[8], route=ROUTES["least-outstanding"]))
    equal(run.instance, [0, 1, 0, 1, 0])
    equal(run.finish_s, [2, 2, 4, 4, 6])
    equal(run.states, [(1, 1, DRAINING), (4, 1, WARM)])
    equal(run.loads[:, :8], np.empty((0, 8)))


def test_a_draining_row_comes_back():
    """The second row drains from 1 s to 2 s, when the waiting request makes it three for two a row; and goes at 4 s."""
    rows = [row(0, start_state=UP, limit=1), row(1, start_state=UP, limit=2)]
    requests = [asked(0, 4, 6), asked(0, 4, 6), asked(1.5, 1, 1)]
    run = simulate(growing(requests, rows, kind=CONCURRENCY, par=[2], route=ROUTES["first-free"]))
    equal(run.states, [(1, 1, DRAINING), (2, 1, UP), (4, 1, DRAINING), (6, 1, WARM)])
    equal(run.instance, [0, 1, 1])
    equal(run.finish_s, [6, 6, 3])


def test_the_draining_row_with_the_fewest_blocks_comes_back():
    """Rows 1 and 2 drain at 1 s with 12 and 8 tokens, four a block; at 2 s two rows are wanted."""
    rows = [row(j, start_state=UP, limit=1) for j in range(3)]
    requests = [asked(0, 4, 2), asked(0, 12, 2), asked(0, 8, 2), asked(1.5, 1, 1), asked(1.5, 1, 1)]
    run = simulate(growing(requests, rows, kind=CONCURRENCY, par=[4], route=ROUTES["first-free"]))
    equal(run.states[:4], [(1, 2, DRAINING), (1, 1, DRAINING), (2, 2, UP), (2, 1, WARM)])
    equal(run.states[4:], [(3, 2, DRAINING), (3, 2, WARM)])  # the tick comes before its request is done
    equal(run.instance, [0, 1, 2, 0, 2])
    equal(run.wait_s, [0, 0, 0, 0.5, 0.5])


def test_a_warm_row_comes_back_at_once():
    """Idle from 1 s on; the request of 1.5 s finds it up at 2 s."""
    run = simulate(growing([asked(1.5, 1, 1)], [row(start_state=UP)], keep_s=1.5))
    equal(run.states, [(1, 0, WARM), (2, 0, UP)])
    equal(run.finish_s, [3])


def test_a_warm_row_ends_before_the_tick_of_that_instant():
    run = simulate(growing([asked(1.5, 1, 1)], [row(start_state=UP)], keep_s=1))
    equal(run.states, [(1, 0, WARM), (2, 0, EMPTY), (2, 0, STARTING), (3.5, 0, UP)])


def test_no_time_warm():
    run = simulate(growing([asked(0, 1, 1), asked(2.5, 1, 1)], [row(start_state=UP)], keep_s=0))
    equal(run.states, [(2, 0, WARM), (2, 0, EMPTY), (3, 0, STARTING), (4.5, 0, UP)])


def two_models(states, hosts=(0, 0)):
    """Two places, each with a row of model 0 and one of model 1."""
    return [
        row(place, hosts[place], states[place] if model == 0 else EMPTY, model=model)
        for place in range(2)
        for model in range(2)
    ]


def test_a_warm_row_of_another_model_gives_its_place():
    """Row 2 is warm from 1 s on and row 0 from 2 s; at 3 s model 1 needs a place and takes that of row 2."""
    run = simulate(growing([asked(2.5, 1, 1, model=1)], two_models([UP, UP]), down_step=1))
    equal(run.states, [(1, 2, WARM), (2, 0, WARM), (3, 2, EMPTY), (3, 3, STARTING), (4.5, 3, UP)])
    equal(run.finish_s, [5.5])


def test_models_one_after_the_other_at_one_tick():
    """Model 0 lets go of its rows at 1 s, and model 1 takes both at once; two rows for two requests."""
    requests = [asked(0, 1, 1, model=1)] * 2
    run = simulate(growing(requests, two_models([UP, UP])))
    drained, swapped = [(1, 2, WARM), (1, 0, WARM)], [(1, 0, EMPTY), (1, 1, STARTING), (1, 2, EMPTY), (1, 3, STARTING)]
    equal(run.states, [*drained, *swapped, (2.5, 1, UP), (2.5, 3, UP)])
    equal(run.loads[:, 5], [0, 0])
    equal(run.ticks[:2], [(1, 0, 0, 2), (1, 1, 2, 0)])
    other = simulate(growing([asked(0, 1, 1, model=0)] * 2, [row(0, model=1, start_state=UP), row(0, model=0)]))
    equal(other.states, [(1, 0, WARM), (2, 0, EMPTY), (2, 1, STARTING), (3.5, 1, UP)])  # model 0 came too early


def test_hosts_that_cache_the_model_come_first():
    run = simulate(growing([asked(0, 1, 1)], [row(0, 0), row(1, 1), row(2, 1)], cached=[[0], [1]]))
    equal(run.states, [(1, 1, STARTING), (2.5, 1, UP)])


def test_weights_stay_in_the_hosts_memory_for_a_time():
    """From SSD in 2 s, then from memory one second after its last use, then from SSD again after exactly three."""
    requests = [asked(0, 1, 1), asked(6.5, 1, 1), asked(12.5, 1, 1)]
    run = simulate(growing(requests, [row()], source=SOURCES["tiers"], control_s=0.25, ttl_s=3, keep_s=1))
    equal(
        run.loads[:, :8],
        [
            (1, 3.25, 0, SSD, 0, 0, 4.25, 1),
            (7, 7.75, 0, DRAM, 0, 1, 8.75, 1),
            (13, 15.25, 0, SSD, 0, 2, 16.25, 1),
        ],
    )
    equal(run.states[2:4], [(5, 0, WARM), (6, 0, EMPTY)])
    equal(run.states[6:8], [(9, 0, WARM), (10, 0, EMPTY)])


@pytest.mark.parametrize(("source", "tier", "end_s"), [("tiers", SSD, [4.5, 5.5]), ("all-cached", DRAM, [2, 3])])
def test_two_loads_share_an_ssd(source, tier, end_s):
    """4 of 8 bytes are read alone from 1 s to 2 s, then each gets 2 bytes/s; from memory each would take 0.5 s."""
    rows, requests = [row(0), row(1)], [asked(0, 1, 9), asked(1.5, 1, 9)]
    run = simulate(growing(requests, rows, source=SOURCES[source], kind=CONCURRENCY))
    equal(run.loads[:, :4], [(1, end_s[0], 0, tier), (2, end_s[1], 1, tier)])


def test_a_load_that_is_lost_leaves_the_ssd_to_the_other():
    """Both read 2 of 8 bytes until 2 s; then the one alone has 6 to go, at 4 bytes/s."""
    requests = [asked(0, 1, 1)] * 2
    run = simulate(growing(requests, [row(0), row(1)], [(2, 0, INF)], source=SOURCES["tiers"]))
    equal(run.loads[:, :3], [(1, NAN, 0), (1, 4.0, 1)])


def test_the_hosts_memory_holds_one_of_two_models():
    """At 3 s the weights of model 1 go, which were there; those of model 0 do at 7 s; so each starts from SSD.

    At 9 s the place of row 0 is still taken by model 1, which is looked at only then.
    """
    requests = [asked(0, 1, 1), asked(4.5, 1, 1, model=1), asked(8.5, 1, 1)]
    settings = {"source": SOURCES["tiers"], "control_s": 0, "cached": [[0, 1]], "cache_bytes": 8, "keep_s": 0}
    run = simulate(growing(requests, two_models([EMPTY, EMPTY]), **settings))
    equal(run.loads[:, :4], [(1, 3, 0, SSD), (5, 7, 1, SSD), (9, 11, 2, SSD)])
    roomy = simulate(growing(requests, two_models([EMPTY, EMPTY]), **settings | {"cache_bytes": 16}))
    equal(roomy.loads[:, :4], [(1, 3, 0, SSD), (5, 5.5, 1, DRAM), (9, 9.5, 0, DRAM)])


def test_ideal_rows_are_up_at_the_tick():
    """Two rows come up one after the other, and the first is given all that waits."""
    run = simulate(growing([asked(0, 1, 1)] * 2, [row(0), row(1)], source=SOURCES["ideal"]))
    equal(run.states, [(1, 0, STARTING), (1, 1, STARTING), (1, 0, UP), (1, 1, UP)])
    equal(run.instance, [0, 0])
    equal(run.wait_s, [1, 1])
    equal(run.loads[:, :8], [(1, 1, 0, 0, 0, 0, 2, 2), (1, 1, 1, 0, 0, 0, NAN, 0)])


def test_the_band_of_the_backlog():
    """30 prompt tokens, one a second; a row is meant for 5 to 10 of them: five rows at first, then one less whenever
    fewer than five a row are left (20 at 11 s, 15 at 16 s, 10 at 21 s, 5 at 26 s).
    """
    rows = [row(j, start_state=UP if j == 0 else EMPTY, chunk=1) for j in range(9)]
    run = simulate(growing([asked(0, 30, 1)], rows, kind=SCALERS["backlog"], par=[10, 0.5, 1, 100, 0.75, 0.95]))
    have = np.repeat([1, 5, 4, 3, 2, 1], [1, 10, 5, 5, 5, 4])
    equal(run.ticks[:, 3], have)
    equal(run.ticks[:, 2], [*have[1:], 1])


def test_blocks_in_use_make_a_backlog_too():
    """30 tokens in 8 blocks: 3.8 of 4 blocks are meant to be used at most, so three rows."""
    rows = [row(j, start_state=UP if j == 0 else EMPTY) for j in range(9)]
    run = simulate(growing([asked(0, 30, 3)], rows, kind=SCALERS["backlog"], par=[100, 0.5, 1, 4, 0.75, 0.95]))
    equal(run.ticks, [(1, 0, 3, 1), (2, 0, 3, 3), (3, 0, 3, 3)])


def test_the_rate_counts_arrivals_between_ticks():
    """Three within the first 2 s, the one at 2 s belongs to the next two; a row takes one a second."""
    requests = [asked(t, 1, 1) for t in (0, 0.5, 1, 2)] + [asked(2.5, 1000, 1)]
    run = simulate(growing(requests, [row(), row(1)], kind=SCALERS["rate"], tick_s=2.0))
    equal(run.ticks, [(2, 0, 2, 0), (4, 0, 1, 2)])
    equal(run.status, [DONE] * 4 + [REJECTED])


def test_a_decision_may_lag_and_wait_for_the_next():
    """What is seen at 1 s is acted on at 3 s, and only when the next tick says so too."""
    run = simulate(growing([asked(0, 1, 1)], [row()], kind=CONCURRENCY, scrape_ticks=2, up_ticks=2))
    equal(run.ticks[:4], [(1, 0, 0, 0), (2, 0, 0, 0), (3, 0, 0, 0), (4, 0, 1, 0)])
    equal(run.states[0], (4, 0, STARTING))


def test_fewer_are_wanted_only_if_three_ticks_agree():
    """Two rows for two requests; the first is done at 2 s, so 3 s, 4 s and 5 s want one; then the last row keeps."""
    rows = [row(j, start_state=UP) for j in range(2)]
    run = simulate(growing([asked(0, 1, 2), asked(0, 1, 7)], rows, kind=CONCURRENCY, down_ticks=3))
    equal(run.states, [(5, 0, WARM)])
    equal(run.ticks[:, 2], [2, 2, 2, 2, 1, 1, 1])


def test_bounds_and_steps():
    """Nobody comes for a while: at most two rows a tick go, and one stays."""
    rows = [row(j, start_state=UP) for j in range(5)]
    run = simulate(growing([asked(3.5, 1, 1)], rows, min_rows=1, down_step=2))
    equal(run.states, [(1, 4, WARM), (1, 3, WARM), (2, 2, WARM), (2, 1, WARM)])
    most = simulate(growing([asked(0, 1, 1)] * 9, [row(j) for j in range(5)], max_rows=3))
    equal(most.states[:6, 1], [0, 1, 2] * 2)
    assert set(most.states[:, 1]) == {0, 1, 2}


def test_a_load_is_lost_with_its_place():
    """It fails at 2 s and is back at 4 s, in time for the tick."""
    run = simulate(growing([asked(0, 1, 1)], [row()], [(2, 0, 4)]))
    equal(run.states, [(1, 0, STARTING), (2, 0, DEAD), (4, 0, EMPTY), (4, 0, STARTING), (5.5, 0, UP)])
    equal(run.loads[:, :8], [(1, NAN, 0, FIXED, 0, 0, NAN, 0), (4, 5.5, 0, FIXED, 0, 1, 6.5, 1)])
    equal([run.finish_s, run.moves], [[6.5], [0]])


def test_a_failure_comes_before_the_load_of_that_instant():
    run = simulate(growing([asked(0, 1, 1)], two_models([EMPTY, EMPTY]), [(2.5, 0, INF)]))
    equal(run.states, [(1, 0, STARTING), (2.5, 0, DEAD), (2.5, 1, DEAD), (3, 2, STARTING), (4.5, 2, UP)])


def test_a_place_that_serves_fails():
    """It is back for the tick at 2 s, but without its weights."""
    run = simulate(growing([asked(0, 1, 3)], [row(0, start_state=UP), row(1)], [(1.5, 0, 2)]))
    equal(run.states, [(1.5, 0, DEAD), (2, 0, EMPTY), (2, 0, STARTING), (3.5, 0, UP)])
    equal([run.moves, run.made, run.finish_s], [[1], [3], [5.5]])
    equal(run.failed_steps, [1, 0])
    equal(run.loads[:, 6:8], [(NAN, 1)])  # its first token was made before


TABLE = [[[1.5, 0], [2, 6]]]
"""From one source: a single target in 1.5 s; two in 2 s and 6 s."""


def multicast(failures, **changes):
    """Six requests on row 0; three rows are wanted, so rows 1 and 2 load from it from 1 s on."""
    rows = [row(0, start_state=UP), row(1), row(2)]
    settings = {"kind": CONCURRENCY, "par": [2], "source": SOURCES["multicast"], "control_s": 0, "multicast_s": TABLE}
    return simulate(growing([asked(0, 1, 5)] * 6, rows, failures, **settings | changes))


def test_targets_get_their_copies_one_after_the_other():
    run = multicast([])
    equal(run.loads[:, :6], [(1, 3, 1, MULTICAST, 1, 0), (1, 7, 2, MULTICAST, 1, 0)])


def test_a_multicast_begins_again_from_the_source_that_is_left():
    """Row 1 is up at 3 s, row 0 fails at 4 s, and row 2 gets its copy from row 1 in 1.5 s."""
    run = multicast([(4, 0, INF)])
    equal(
        run.loads[:, :8],
        [
            (1, 3, 1, MULTICAST, 1, 0, NAN, 6),
            (1, NAN, 2, MULTICAST, 1, 0, NAN, 0),
            (4, 5.5, 2, MULTICAST, 1, 1, NAN, 0),
        ],
    )
    equal(run.states, [(1, 1, STARTING), (1, 2, STARTING), (3, 1, UP), (4, 0, DEAD), (5.5, 2, UP)])
    equal(run.finish_s, [6] * 6)
    equal(run.ticks[:, 2:], [(3, 1), (3, 3), (3, 3), (3, 2), (3, 2), (3, 2)])


def test_a_multicast_without_any_source_goes_on_from_ssd():
    """Row 0 fails at 2 s, before any copy is there; 16 bytes at 4 bytes/s are read at 6 s."""
    run = multicast([(2, 0, INF)])
    equal(run.loads[2:, :6], [(2, 6, 1, SSD, 0, 1), (2, 6, 2, SSD, 0, 1)])
    equal(run.finish_s, [10] * 6)
    equal(run.instance, [1] * 6)


def test_a_target_that_fails_is_the_only_one_lost():
    run = multicast([(2, 1, INF)])
    equal(run.loads[:, 1], [NAN, 7])


def test_more_targets_than_the_table_has():
    """Three targets, two a time: a second operation from the same source at the same moment."""
    rows = [row(0, start_state=UP), row(1), row(2), row(3)]
    settings = {"kind": CONCURRENCY, "par": [1], "source": SOURCES["multicast"], "multicast_s": TABLE}
    run = simulate(growing([asked(0, 1, 9)] * 4, rows, **settings))
    equal(run.loads[:, :6], [(1, 3.5, 1, 4, 1, 0), (1, 7.5, 2, 4, 1, 0), (1, 3, 3, 4, 1, 1)])


def test_a_warm_source_stays_until_all_have_their_copy():
    """Row 0 is warm from 3 s on, for 1 s at most, but row 1 reads it until 5 s."""
    requests, rows = [*[asked(0, 1, 2)] * 3, asked(5.25, 1, 1)], [row(0, start_state=UP), row(1)]
    settings = {"kind": CONCURRENCY, "par": [2], "source": SOURCES["multicast"], "multicast_s": [[[4]]]}
    run = simulate(growing(requests, rows, control_s=0, min_rows=1, keep_s=1, **settings))
    equal(run.states, [(1, 1, STARTING), (3, 0, WARM), (5, 1, UP), (5, 0, EMPTY)])
    equal(run.finish_s, [2, 2, 2, 6.25])


def test_a_source_is_not_taken_for_another_model():
    """Model 0 has row 0 up, which row 2 reads from 1 s to 5 s; row 0 is warm at 3 s, and wanted by model 1 at 4 s."""
    requests = [*[asked(0, 1, 2)] * 2, asked(3.5, 1, 1, model=1)]
    settings = {"kind": CONCURRENCY, "source": [4, 1], "multicast_s": [[[4]]], "control_s": 0, "min_rows": [1, 0]}
    run = simulate(growing(requests, two_models([UP, EMPTY]), **settings))
    taken = [(5, 0, EMPTY), (5, 1, STARTING), (6, 1, UP)]
    equal(run.states, [(1, 2, STARTING), (3, 0, WARM), (5, 2, UP), *taken])


def test_a_cluster_that_cannot_grow_comes_to_an_end():
    """No rows and no policy: three ticks without any hope, and the request stays inside."""
    run = simulate(growing([asked(0, 1, 1)], [row()], kind=SCALERS["none"]))
    equal(run.ticks[:, 0], [1, 2, 3])
    equal(run.status, [INSIDE])
    least = simulate(growing([asked(0, 1, 1)], [row()], kind=SCALERS["none"], min_rows=1))
    equal(least.finish_s, [3.5])


def test_the_clock_stops_ticks_and_loads():
    run = simulate(growing([asked(0, 1, 1)], [row()], until_s=2))
    equal(run.ticks[:, 0], [1, 2])
    equal(run.states, [(1, 0, STARTING)])
    equal(run.loads[:, :8], [(1, NAN, 0, FIXED, 0, 0, NAN, 0)])


def test_what_was_begun_goes_on_when_all_requests_are_done():
    """Row 1 was wanted for two requests that row 0 has done by 2 s; it comes up all the same, and stays."""
    run = simulate(growing([asked(0, 1, 2)] * 2, [row(0, start_state=UP), row(1)], kind=CONCURRENCY))
    equal(run.states, [(1, 1, STARTING), (2.5, 1, UP)])
    equal(run.ticks[:, 0], [1, 2])


def test_who_asks_for_a_model_without_any_row_is_rejected():
    run = simulate(growing([asked(0, 1, 1, model=3)], [row()]))
    equal(run.status, [REJECTED])
    equal(len(run.ticks), 0)


def test_nobody_asks_for_anything():
    run = simulate(growing([], [row(start_state=UP)]))
    equal([len(run.ticks), len(run.states), len(run.loads)], [0, 0, 0])
