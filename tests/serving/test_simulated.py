"""The SimPy engine does what its rules say, in small cases worked out by hand: most steps take one second."""

import numpy as np
import pytest
from serving_cases import asked, cluster, place

from workbench.serving.model.lowered import DONE, INSIDE, REJECTED
from workbench.serving.policy import ROUTES
from workbench.serving.simulated import simulate

NAN = float("nan")
FORM = (0.5, 0.25, 0.125, 0.0625, 0.03125)
"""Constant, per prompt token, per square, per stored token, per member: all dyadic, so sums are exact."""


def equal(found, wanted):
    np.testing.assert_array_equal(found, wanted)


def test_a_request_alone():
    """Its prompt's step makes the first token; the fifth token it stores needs a second block."""
    run = simulate(cluster([asked(0, 3, 3)], [place()]))
    equal(run.status, [DONE])
    equal([run.first_token_s, run.finish_s, run.wait_s], [[1], [3], [0]])
    equal(run.segments, [[0, 0, 3, 0, 0]])
    equal(run.iteration_end_s, [1, 2, 3])
    equal(run.iteration_at, [0, 3])
    equal([run.made, run.evictions, run.moves, run.instance], [[3], [0], [0], [0]])
    equal([run.busy_s, run.peak_blocks, run.failed_steps], [[3], [2], [0]])


@pytest.mark.parametrize(
    ("memory", "ends"),
    [
        # chunk of 2: 0.5 + 2/4 + 4/8 + 1/32; of 1 on top of 2: 0.5 + 1/4 + (9-4)/8 + 1/32; decode: 0.5 + 3/16 + 1/32
        ((0.0,) * 5, [1.53125, 2.9375, 3.65625]),
        ((1.0, 0.0, 0.0, 0.0, 0.0), [1.53125, 2.9375, 3.9375]),  # the last step would take 0.71875 s, and memory 1 s
    ],
)
def test_the_time_of_a_step(memory, ends):
    run = simulate(cluster([asked(0, 3, 2)], [place(chunk=2, form=(FORM, memory))]))
    equal(run.iteration_end_s, ends)
    equal([run.first_token_s, run.finish_s], [[ends[1]], [ends[2]]])
    equal(run.segments, [[0, 0, 2, 0, 1]])


def test_who_arrives_at_a_boundary_joins_the_step_that_starts_there():
    run = simulate(cluster([asked(0, 1, 3), asked(0, 1, 1), asked(1, 1, 1), asked(1.5, 1, 1)], [place()]))
    equal(run.wait_s, [0, 0, 0, 0.5])
    equal(run.finish_s, [3, 1, 2, 3])
    equal(run.segments, [[0, 0, 3, 0, 0], [1, 0, 1, 0, 0], [2, 0, 1, 0, 1], [3, 0, 1, 0, 2]])


def test_who_arrives_when_a_step_ends_still_sees_its_requests():
    """The first instance gets free at 1 s, after the arrival at 1 s was sent to the other."""
    run = simulate(cluster([asked(0, 1, 1), asked(1, 1, 1)], [place(), place()], route=ROUTES["least-outstanding"]))
    equal(run.instance, [0, 1])


def test_prefill_in_chunks_shares_the_budget_after_the_decodes():
    """Budget 3: the decode takes 1, then the older prompt its chunk of 1, then the younger the last 1."""
    requests = [asked(0, 1, 4), asked(0.5, 2, 1), asked(0.5, 2, 1)]
    run = simulate(cluster(requests, [place(budget=3, chunk=1, form=((0, 1, 0, 0, 1), (0,) * 5))]))
    # steps: 1 token, 1 member; then twice 2 tokens, 3 members; then a decode alone
    equal(run.iteration_end_s, [2, 7, 12, 13])
    equal(run.finish_s, [13, 12, 12])


def test_what_the_budget_does_not_reach_takes_no_part():
    """Budget 1, one second a step and one a member: the second prompt waits until the first request is done."""
    run = simulate(cluster([asked(0, 1, 2), asked(0, 1, 2)], [place(budget=1, form=((1, 0, 0, 0, 1), (0,) * 5))]))
    equal(run.finish_s, [4, 8])
    equal(run.wait_s, [0, 0])
    equal(run.segments, [[0, 0, 2, 0, 0], [1, 0, 2, 0, 2]])


def test_a_decode_that_sits_out_takes_no_second_block():
    """Prefill first with a budget of 1: two decodes, of which one a step. Blocks of one token, four of them."""
    run = simulate(cluster([asked(0, 1, 2), asked(0, 1, 2)], [place(budget=1, apart=1, block=1, blocks=4)]))
    equal(run.finish_s, [3, 4])
    equal([run.evictions, run.moves], [[0, 0], [0, 0]])
    equal(run.peak_blocks, [4])
    equal(run.segments, [[0, 0, 1, 0, 0], [0, 1, 1, 0, 2], [1, 0, 1, 0, 1], [1, 1, 1, 0, 3]])


def test_those_who_sit_out_twice_keep_their_place():
    """The second sits out once for the budget and once for a prompt, and still decodes before the third."""
    run = simulate(cluster([asked(0, 1, 2), asked(0, 1, 2), asked(2.5, 1, 2)], [place(budget=1, apart=1)]))
    equal(run.finish_s, [3, 5, 6])


def test_prefill_apart_from_decodes():
    """One second a step and one a token that decodes read: only those that take part read."""
    requests, form = [asked(0, 2, 3), asked(0.5, 4, 1)], ((1, 0, 0, 1, 0), (0,) * 5)
    run = simulate(cluster(requests, [place(chunk=2, apart=1, form=form)]))
    equal(run.iteration_end_s, [1, 2, 3, 6, 10])
    equal(run.finish_s, [10, 3])
    mixed = simulate(cluster(requests, [place(chunk=2, form=form)]))
    equal(mixed.iteration_end_s, [1, 4, 8])
    equal(mixed.finish_s, [8, 8])


def test_three_grow_out_of_six_blocks():
    """Blocks of two tokens. At 1 s the oldest needs a third block and the youngest goes; at 3 s the next one goes.

    They come back in the order of admission, when there are blocks for all that they had: 4 at 5 s, 3 at 7 s.
    """
    run = simulate(cluster([asked(0, 4, 5)] * 3, [place(block=2, blocks=6)]))
    equal(run.evictions, [0, 1, 1])
    equal(run.finish_s, [5, 7, 11])
    equal(run.first_token_s, [1, 1, 1])
    equal(run.wait_s, [0, 0, 0])
    equal(run.iteration_end_s, np.arange(1, 12))
    equal(run.segments, [[0, 0, 5, 0, 0], [1, 0, 3, 0, 0], [1, 3, 2, 0, 5], [2, 0, 1, 0, 0], [2, 1, 4, 0, 7]])
    equal(run.peak_blocks, [6])


def test_two_evictions_at_one_start():
    """Four requests in four blocks of one token: at 1 s the first two ask, and the last two go, the last one first."""
    run = simulate(cluster([asked(0, 1, 3)] * 4, [place(block=1, blocks=4)]))
    equal(run.evictions, [0, 1, 1, 2])
    equal(run.finish_s, [3, 4, 6, 7])
    equal(run.iteration_end_s, np.arange(1, 8))


def test_the_one_who_asks_may_be_the_one_to_go():
    """Two tokens a block, three blocks: the younger has filled its one and there is no other; the older has room."""
    run = simulate(cluster([asked(0, 3, 3), asked(0, 2, 2)], [place(block=2, blocks=3)]))
    equal(run.evictions, [0, 1])
    equal(run.finish_s, [3, 4])
    equal(run.segments, [[0, 0, 3, 0, 0], [1, 0, 1, 0, 0], [1, 1, 1, 0, 3]])
    equal(run.peak_blocks, [3])


def test_a_prompt_half_done_is_evicted_too():
    """The younger prefills a token a step in two blocks of two; at 3 s the older needs its third, and all is lost."""
    run = simulate(cluster([asked(0, 2, 5), asked(0.5, 4, 1)], [place(chunk=2, budget=2, block=2, blocks=4)]))
    # 1 s: the older has 2 stored, takes a block (2 held), the younger is admitted (4 in use) and stores 1 token a step;
    # 3 s: the older has 4 stored, the younger 2 of 4 and goes; 5 s: 5 made, the older is done; then two steps of 2
    equal(run.evictions, [0, 1])
    equal(run.finish_s, [5, 7])
    equal(run.wait_s, [0, 0.5])
    equal(run.first_token_s, [1, 7])


def test_blocks_reserved_for_the_whole_request():
    requests = [asked(0, 2, 3), asked(0, 1, 1)]
    run = simulate(cluster(requests, [place(blocks=2, reserve=1)]))
    equal([run.finish_s, run.wait_s], [[3, 4], [0, 3]])
    equal(run.peak_blocks, [2])
    paged = simulate(cluster(requests, [place(blocks=2)]))
    equal([paged.finish_s, paged.wait_s], [[3, 1], [0, 0]])


def test_fixed_batches():
    run = simulate(cluster([asked(0, 1, 3), asked(0, 1, 1), asked(0.5, 1, 1)], [place(whole=1)]))
    equal(run.finish_s, [3, 1, 4])
    equal(run.wait_s, [0, 0, 2.5])


def test_slots_are_filled_in_the_order_of_the_queue():
    """Two slots and four blocks: the third waits for blocks, and the fourth, which would fit, waits behind it."""
    requests = [asked(0, 4, 2), asked(0, 4, 4), asked(0, 12, 1), asked(0, 1, 1)]
    run = simulate(cluster(requests, [place(slots=2, blocks=4)]))
    equal(run.finish_s, [2, 4, 5, 5])


def test_no_outputs():
    """Only the prompt is to be computed, here in two chunks; there is no token."""
    run = simulate(cluster([asked(0, 2, 0), asked(0, 1, 1)], [place(chunk=1)]))
    equal(run.status, [DONE, DONE])
    equal(run.first_token_s, [NAN, 1])
    equal(run.finish_s, [2, 1])
    equal(run.made, [0, 1])
    equal(run.segments, [[1, 0, 1, 0, 0]])


def test_what_fits_nowhere_is_rejected():
    """Eight tokens fit, nine do not, on the second instance twelve do; nobody serves the model numbered 2."""
    requests = [asked(0, 7, 1), asked(0, 8, 1), asked(0, 12, 1), asked(0, 1, 1, model=2), asked(1.5, 9, 0)]
    run = simulate(cluster(requests, [place(blocks=2), place(blocks=3), place(model=1, blocks=9)]))
    equal(run.status, [DONE, DONE, REJECTED, REJECTED, DONE])
    equal(run.instance, [0, 1, -1, -1, 1])
    equal(run.finish_s, [1, 1, NAN, NAN, 2.5])
    equal([run.wait_s[2], run.first_token_s[2], run.wait_s[3]], [NAN] * 3)


def test_what_fits_on_a_dead_instance_only_waits_for_it():
    run = simulate(cluster([asked(0, 9, 1), asked(0, 1, 1)], [place(blocks=2), place(blocks=3)], [(0, 1, 4)]))
    equal(run.finish_s, [5, 5])  # and the small one waits behind it, though it fits on the other
    equal(run.wait_s, [4, 4])
    lost = simulate(cluster([asked(0, 9, 1)], [place(blocks=2), place(blocks=3)], [(0, 1, np.inf)]))
    equal([lost.status, lost.instance, lost.moves], [[INSIDE], [-1], [0]])


def test_a_limit_of_one_keeps_others_at_the_router():
    run = simulate(cluster([asked(0, 1, 2), asked(0.5, 1, 1), asked(0.75, 1, 1)], [place(limit=1)]))
    equal(run.finish_s, [2, 3, 4])
    equal(run.wait_s, [0, 1.5, 2.25])


def test_a_head_that_fits_on_a_busy_instance_only_holds_up_the_rest():
    requests = [asked(0, 9, 2), asked(0.5, 9, 1), asked(0.75, 1, 1)]
    run = simulate(cluster(requests, [place(limit=1, blocks=1), place(limit=1)], route=ROUTES["first-free"]))
    equal(run.instance, [1, 1, 0])
    equal(run.wait_s, [0, 1.5, 1.25])
    other = simulate(cluster([*requests[:2], asked(0.75, 1, 1, model=1)], [place(limit=1), place(model=1)]))
    equal(other.wait_s, [0, 1.5, 0])  # not those of another model


def test_the_router_hands_out_when_all_steps_of_an_instant_have_ended():
    """Both instances get free at 1 s; a draw of 0.75 picks the second of two, and the only one of one."""
    requests = [asked(0, 1, 1), asked(0, 1, 1, draw=(0.75, 0)), asked(0.5, 1, 1, draw=(0.75, 0))]
    run = simulate(cluster(requests, [place(limit=1), place(limit=1)], route=ROUTES["random"]))
    equal(run.instance, [0, 1, 1])
    equal(run.wait_s, [0, 0, 0.5])


def test_a_failure_loses_the_step_and_the_kv_but_not_the_tokens():
    """After 3 s the prompt and the one token made are computed together; iterations 0 and 1 are one run of tokens."""
    run = simulate(cluster([asked(0, 2, 3)], [place()], [(1.5, 0, 3)]))
    equal(run.iteration_end_s, [1, 4, 5])
    equal([run.first_token_s, run.finish_s, run.wait_s], [[1], [5], [0]])
    equal([run.moves, run.evictions, run.failed_steps], [[1], [0], [1]])
    equal(run.busy_s, [3])
    equal(run.segments, [[0, 0, 3, 0, 0]])


def test_a_step_that_ends_at_the_very_failure_is_lost():
    run = simulate(cluster([asked(0, 2, 2)], [place(), place()], [(1, 0, np.inf)]))
    equal(run.instance, [1])
    equal([run.first_token_s, run.finish_s, run.wait_s], [[2], [3], [0]])
    equal(run.iteration_at, [0, 0, 2])
    equal([run.failed_steps, run.busy_s], [[1, 0], [0, 2]])


def test_those_thrown_out_go_first_in_their_order():
    """One slot, two outstanding: the one that ran, the one that queued, the one that waited at the router."""
    run = simulate(cluster([asked(0, 1, 1)] * 3, [place(slots=1, limit=2)], [(0.5, 0, 1)]))
    equal(run.finish_s, [2, 3, 4])
    equal(run.wait_s, [0, 2, 3])
    equal(run.moves, [1, 1, 0])


def test_a_recovery_comes_before_a_failure_of_the_same_instant():
    """At 1 s the first instance takes the waiting request, then the second throws out its own, which waits."""
    failures = [(0, 0, 1), (1, 1, np.inf)]
    run = simulate(cluster([asked(0, 1, 1), asked(0.5, 1, 1)], [place(limit=1), place(limit=1)], failures))
    equal(run.finish_s, [3, 2])
    equal(run.moves, [1, 0])
    equal(run.instance, [0, 0])


def test_an_instance_that_fails_as_it_comes_back_moves_its_requests_again():
    run = simulate(cluster([asked(0, 1, 1)], [place()], [(0.5, 0, 1), (1, 0, 2)]))
    equal([run.moves, run.finish_s, run.failed_steps], [[2], [3], [1]])


def test_two_that_fail_at_one_instant():
    """The request of the first goes to the second for no time at all, behind the one that runs there."""
    failures = [(0.5, 0, np.inf), (0.5, 1, 1)]
    run = simulate(cluster([asked(0, 1, 1)] * 2, [place(slots=1)] * 2, failures))
    equal(run.moves, [2, 1])
    equal(run.finish_s, [3, 2])
    equal(run.failed_steps, [1, 1])


def test_each_recovery_hands_out_for_itself():
    """Both come back at 1 s; the first takes all that wait before the second is there."""
    failures = [(0, 0, 1), (0, 1, 1)]
    run = simulate(cluster([asked(0.5, 1, 1)] * 2, [place(), place()], failures, route=ROUTES["least-outstanding"]))
    equal(run.instance, [0, 0])
    equal(run.finish_s, [2, 2])


def test_the_end_of_the_clock():
    """All that happens at 2 s counts, the start of a step too; what arrives later was never there."""
    requests = [asked(0, 1, 3), asked(2, 1, 1), asked(2.5, 1, 1), asked(2.5, 1000, 1)]
    run = simulate(cluster(requests, [place()], until_s=2))
    equal(run.status, [INSIDE] * 4)
    equal(run.made, [2, 0, 0, 0])
    equal(run.iteration_end_s, [1, 2])
    equal(run.finish_s, [NAN] * 4)
    equal(run.first_token_s, [1, NAN, NAN, NAN])
    equal(run.wait_s, [0, 0, NAN, NAN])
    equal(run.instance, [0, 0, -1, -1])
    equal(run.segments, [[0, 0, 2, 0, 0]])


def test_a_failure_at_the_end_of_the_clock_happens():
    run = simulate(cluster([asked(0, 1, 3)], [place()], [(2, 0, 3)], until_s=2))
    equal([run.made, run.moves, run.failed_steps], [[1], [1], [1]])
    equal(run.iteration_end_s, [1])


def test_a_clock_that_ends_before_it_starts():
    run = simulate(cluster([asked(0, 1, 3)], [place()], [(0, 0, 1)], until_s=-1.0))
    equal([run.status, run.instance, run.moves, run.failed_steps], [[INSIDE], [-1], [0], [0]])
    at_once = simulate(cluster([asked(0, 1, 3)], [place()], until_s=0.0))
    equal([at_once.wait_s, at_once.made, at_once.peak_blocks], [[0], [0], [1]])


def test_nothing_at_all():
    run = simulate(cluster([], [place(), place()]))
    assert run.segments.shape == (0, 5)
    equal(run.iteration_at, [0, 0, 0])
    assert run.status.size == run.iteration_end_s.size == 0


def test_round_robin_goes_on_behind_the_one_it_took():
    """One place each; the second gets free first, at 1 s, and the third at 2 s: so the fifth request goes there."""
    requests = [asked(0, 1, 9), asked(0, 1, 1), asked(0, 1, 2), asked(0, 1, 9), asked(0.5, 1, 1)]
    run = simulate(cluster(requests, [place(limit=1)] * 3, route=ROUTES["round-robin"]))
    equal(run.instance, [0, 1, 2, 1, 2])


def test_round_robin_counts_the_instances_of_a_model():
    requests = [asked(0, 1, 1, model=m) for m in (0, 1, 0, 1, 0, 1)]
    run = simulate(cluster(requests, [place(), place(model=1), place()]))
    equal(run.instance, [0, 1, 2, 1, 0, 1])


def test_least_outstanding_counts_queued_and_running():
    requests = [asked(0, 1, 9), asked(0, 1, 1), asked(0, 1, 9), asked(1.5, 1, 1), asked(1.5, 1, 1)]
    run = simulate(cluster(requests, [place(slots=1), place(slots=1)], route=ROUTES["least-outstanding"]))
    equal(run.instance, [0, 1, 0, 1, 1])  # 0, 1, tie: 0; then 2 against 0, 2 against 1


def test_least_tokens_counts_what_is_left():
    """10 + 1 against 0, then 11 against 1 + 5, then 11 against 6 + 2 + 4.

    At 1.5 s, after one step, the first is done and the fourth lacks 8; the second and the third lack 4 and 3.
    """
    requests = [asked(0, 10, 1), asked(0, 1, 5), asked(0, 2, 4), asked(0, 1, 9), asked(1.5, 1, 1)]
    run = simulate(cluster(requests, [place(), place()], route=ROUTES["least-tokens"]))
    equal(run.instance, [0, 1, 1, 0, 1])


def test_random_takes_the_drawn_one_of_those_that_take_it():
    """Draws of 0, 0.5, 0.99 of three places; then of the two that have not got their two."""
    draws = [0.0, 0.5, 0.99, 0.34, 0.5, 0.49]
    requests = [asked(0, 1, 9, draw=(u, 0)) for u in draws]
    run = simulate(cluster(requests, [place(limit=2)] * 3, route=ROUTES["random"]))
    equal(run.instance, [0, 1, 2, 1, 2, 0])


def test_two_choices():
    """The emptier of the two drawn, the first drawn where they are equal."""
    draws = [(0.9, 0.1), (0.9, 0.1), (0.4, 0.9), (0.9, 0.9), (0.1, 0.4)]
    requests = [asked(0, 1, 9, draw=pair) for pair in draws]
    run = simulate(cluster(requests, [place()] * 3, route=ROUTES["two-choices"]))
    equal(run.instance, [2, 0, 1, 2, 0])


def test_first_free():
    run = simulate(cluster([asked(0, 1, 9)] * 5, [place(limit=2)] * 3, route=ROUTES["first-free"]))
    equal(run.instance, [0, 0, 1, 1, 2])


def test_a_request_that_is_moved_uses_its_draws_again():
    run = simulate(cluster([asked(0, 1, 2, draw=(0.6, 0))], [place()] * 4, [(0.5, 2, 9)], route=ROUTES["random"]))
    equal(run.instance, [1])  # place 2 of four, then of the three left the one at 0.6 * 3 = 1.8
