"""The compiled engine on cases small enough to follow with a pencil; every number here was worked out by hand."""

import numpy as np
import pytest
from serving_cases import ONE_SECOND, asked, cluster, place

from workbench.errors import InputError, UserError
from workbench.serving.model import run_compiled
from workbench.serving.policy import FIRST_FREE, LEAST_OUTSTANDING, LEAST_TOKENS, RANDOM, TWO_CHOICES, chooser

NAN = float("nan")
MODES = pytest.mark.parametrize("jumps", [True, False], ids=["jumps", "steps"])


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


@MODES
def test_one_request_takes_a_prefill_and_a_step_a_token(jumps):
    """10 prompt tokens at 0.1 s and 0.5 s a step: 1.5 s. Then decode steps of 0.5 s + 1/16 s a stored token."""
    form = ((0.5, 0.1, 0.0, 0.0625, 0.0), (0.0,) * 5)
    out = run_compiled(cluster([asked(0, 10, 3)], [place(form=form)]), jumps=jumps)
    same(out.first_token_s, [1.5])
    same(out.iteration_end_s, [1.5, 1.5 + 1.125, 1.5 + 1.125 + 1.1875])  # stored 10, then 11
    same(out.finish_s, [3.8125])
    same(out.segments, [[0, 0, 3, 0, 0]])
    same(out.busy_s, [3.8125])
    same(out.peak_blocks, [3])  # 12 tokens in blocks of 4
    same(out.made, [3])


@MODES
def test_arrivals_at_one_instant_share_the_step_and_so_does_one_at_a_boundary(jumps):
    requests = [asked(0, 4, 3), asked(0, 4, 3), asked(1, 4, 2)]
    out = run_compiled(cluster(requests, [place()]), jumps=jumps)
    same(out.wait_s, [0, 0, 0])
    same(out.first_token_s, [1, 1, 2])
    same(out.finish_s, [3, 3, 3])
    same(out.iteration_at, [0, 3])


@MODES
def test_the_last_admitted_is_evicted_and_computes_its_prompt_again(jumps):
    """Four blocks of four tokens, two requests of 4 + 6 tokens.

    At 1 s both ask for a block: four are in use. At 5 s both have stored 8 tokens and ask again: none is free, so the
    second is evicted with 5 tokens made; the first takes the third of its blocks. At 6 s it is done (6 tokens). The
    second comes back with 4 + 5 tokens to compute, in three blocks, and emits its sixth token at 7 s.
    """
    out = run_compiled(cluster([asked(0, 4, 6), asked(0, 4, 6)], [place(blocks=4)]), jumps=jumps)
    same(out.finish_s, [6, 7])
    same(out.evictions, [0, 1])
    same(out.segments, [[0, 0, 6, 0, 0], [1, 0, 5, 0, 0], [1, 5, 1, 0, 6]])
    same(out.peak_blocks, [4])
    same(out.wait_s, [0, 0])


@MODES
def test_reserved_blocks_are_taken_at_once_and_nobody_is_evicted(jumps):
    """10 tokens each need three of four blocks: one after the other."""
    out = run_compiled(cluster([asked(0, 4, 6), asked(0, 4, 6)], [place(blocks=4, reserve=1)]), jumps=jumps)
    same(out.finish_s, [6, 12])
    same(out.wait_s, [0, 6])
    same(out.evictions, [0, 0])
    same(out.peak_blocks, [3])


@MODES
def test_a_step_that_ends_at_the_failure_is_lost(jumps):
    """Fails at 3 s: the steps ending at 1 and 2 s count, the third does not. Two tokens are made; the prompt of 4 + 2
    is computed again after 4.5 s, which gives the third token."""
    out = run_compiled(cluster([asked(0, 4, 4)], [place()], [(3.0, 0, 4.5)]), jumps=jumps)
    same(out.first_token_s, [1])
    same(out.iteration_end_s, [1, 2, 5.5, 6.5])
    same(out.finish_s, [6.5])
    same(out.failed_steps, [1])
    same(out.moves, [1])
    same(out.busy_s, [4])
    same(out.segments, [[0, 0, 4, 0, 0]])  # iterations 0 to 3 of one instance: no gap in their numbers


@MODES
def test_requests_of_a_failed_instance_go_to_the_other_before_those_that_wait(jumps):
    """Both instances hold at most two; the fifth request waits. Instance 1 fails at 1.5 s with requests 1 and 3; they
    stand before request 4. Instance 0 is free at 4 s for two."""
    requests = [asked(0, 4, 4)] * 2 + [asked(0, 4, 4)] * 3
    out = run_compiled(
        cluster(requests, [place(limit=2), place(limit=2)], [(1.5, 1, np.inf)], LEAST_OUTSTANDING), jumps=jumps
    )
    same(out.moves, [0, 1, 0, 1, 0])
    same(out.instance, [0, 0, 0, 0, 0])
    same(out.finish_s, [4, 7, 4, 7, 11])  # each has one token already: three steps; then the last one takes four
    same(out.wait_s, [0, 0, 0, 0, 7])
    same(out.failed_steps, [0, 1])


@MODES
def test_no_output_means_no_token_but_the_prompt_is_computed(jumps):
    out = run_compiled(cluster([asked(0, 4, 0), asked(0, 4, 1)], [place()]), jumps=jumps)
    same(out.first_token_s, [NAN, 1])
    same(out.finish_s, [1, 1])
    same(out.made, [0, 1])
    same(out.segments, [[1, 0, 1, 0, 0]])
    same(out.status, [1, 1])


def test_what_fits_nowhere_is_rejected_and_what_fits_somewhere_goes_there():
    """Three and five blocks of four tokens: 13 tokens fit only the second, 21 none; nobody serves model 1."""
    requests = [asked(0, 12, 1), asked(0, 20, 1), asked(0, 4, 1, model=1), asked(0, 8, 4)]
    out = run_compiled(cluster(requests, [place(blocks=3), place(blocks=5)]))
    same(out.status, [1, 2, 2, 1])
    same(out.instance, [1, -1, -1, 0])  # round robin goes on behind the second place
    same(out.finish_s, [1, NAN, NAN, 4])


@MODES
def test_a_central_queue_with_one_request_an_instance(jumps):
    """Two servers in order of arrival: services of 3, 1, 2 and 1 s; the third starts at 1 s, the fourth at 3 s."""
    requests = [asked(0, 4, 3), asked(0, 4, 1), asked(0, 4, 2), asked(0.5, 4, 1)]
    out = run_compiled(cluster(requests, [place(limit=1), place(limit=1)], route=FIRST_FREE), jumps=jumps)
    same(out.wait_s, [0, 0, 1, 2.5])
    same(out.finish_s, [3, 1, 3, 4])
    same(out.instance, [0, 1, 1, 0])


@MODES
def test_a_fixed_batch_runs_until_all_are_done(jumps):
    """Batches of two: the second batch starts when the longer request of the first is done."""
    requests = [asked(0, 4, 2), asked(0, 4, 5), asked(0, 4, 1)]
    out = run_compiled(cluster(requests, [place(slots=2, reserve=1, whole=1)]), jumps=jumps)
    same(out.finish_s, [2, 5, 6])
    same(out.wait_s, [0, 0, 5])


@MODES
def test_prefill_first_pauses_those_that_decode(jumps):
    """The second prompt of 8 tokens takes two steps of 4 tokens, at 1 and 2 s; the first request waits for them."""
    requests = [asked(0, 4, 3), asked(0.5, 8, 2)]
    out = run_compiled(cluster(requests, [place(apart=1, budget=4)]), jumps=jumps)
    same(out.first_token_s, [1, 3])
    same(out.finish_s, [5, 4])
    same(out.segments, [[0, 0, 1, 0, 0], [0, 1, 2, 0, 3], [1, 0, 2, 0, 2]])


@MODES
def test_with_mixed_steps_decoding_goes_first_and_prompts_get_what_is_left(jumps):
    """As above, but budget 4 leaves 3 tokens of the prompt beside one that decodes: 3, 3, then 2 tokens."""
    requests = [asked(0, 4, 3), asked(0.5, 8, 2)]
    out = run_compiled(cluster(requests, [place(budget=4)]), jumps=jumps)
    same(out.first_token_s, [1, 4])
    same(out.finish_s, [3, 5])


def test_squares_of_prompt_tokens_are_counted_by_chunk():
    """Chunks of 4, 4 and 2: squares grow by 16, 48 and 36; a second row of 20 s a step is larger in the first."""
    form = ((0.0, 0.0, 1.0, 0.0, 1.0), (20.0, 0.0, 0.0, 0.0, 0.0))
    out = run_compiled(cluster([asked(0, 10, 1)], [place(chunk=4, form=form)]))
    same(out.iteration_end_s, [20, 69, 106])


@pytest.mark.parametrize(
    ("route", "instance"),
    [
        (LEAST_OUTSTANDING, [0, 1, 2, 0]),
        (LEAST_TOKENS, [0, 1, 2, 1]),  # 30, 5 and 6 tokens are left when the last one comes
        (RANDOM, [0, 1, 2, 1]),
        (TWO_CHOICES, [0, 1, 2, 1]),
        (FIRST_FREE, [0, 0, 0, 0]),
        (0, [0, 1, 2, 0]),
    ],
)
def test_dispatch(route, instance):
    draws = [(0.0, 0.0), (0.4, 0.4), (0.9, 0.9), (0.5, 0.1)]
    shapes = [(20, 10), (4, 1), (4, 2), (4, 1)]
    requests = [asked(0, *shape, 0, draw) for shape, draw in zip(shapes, draws, strict=True)]
    same(run_compiled(cluster(requests, [place()] * 3, route=route)).instance, instance)


def test_a_policy_of_ones_own():
    last = chooser(lambda places, outstanding, tokens, draw, turn: places.size - 1)
    same(run_compiled(cluster([asked(0, 4, 1)] * 2, [place()] * 3), last).instance, [2, 2])
    wrong = chooser(lambda places, outstanding, tokens, draw, turn: places.size)
    with pytest.raises(UserError, match=r"no position in the places it was offered"):
        run_compiled(cluster([asked(0, 4, 1)], [place()]), wrong)
    with pytest.raises(InputError, match="field 'dispatch': does not compile"):
        chooser(lambda places, outstanding, tokens, draw, turn: input())


@MODES
def test_the_clock_stops_with_what_happens_then_included(jumps):
    """At 2 s the second step ends and the third request, of that instant, is admitted; the fourth comes too late."""
    requests = [asked(0, 4, 5), asked(0, 4, 2), asked(2, 4, 1), asked(2.25, 4, 1)]
    out = run_compiled(cluster(requests, [place()], until_s=2.0), jumps=jumps)
    same(out.status, [0, 1, 0, 0])
    same(out.made, [2, 2, 0, 0])
    same(out.wait_s, [0, 0, 0, NAN])
    same(out.instance, [0, 0, 0, -1])
    same(out.segments, [[0, 0, 2, 0, 0], [1, 0, 2, 0, 0]])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"form": ((0.0,) * 5, (0.0, 1.0, 0.0, 0.0, 0.0))}, "field 'form': .* give every step a time above 0"),
        ({"slots": 0}, "field 'slots': .* give whole numbers of 1 or more"),
        ({"block": 70_000}, "field 'block': .* at most 65,536"),
        ({"apart": 2}, "field 'apart': .* give 0 or 1"),
        ({"model": 10**6}, "field 'model': .* from 0 to at most 999,999"),
    ],
)
def test_instances_that_make_no_sense_are_refused(change, sentence):
    with pytest.raises(InputError, match=sentence):
        run_compiled(cluster([asked(0, 4, 1)], [place(**change)]))


@pytest.mark.parametrize(
    ("failures", "sentence"),
    [
        ([(1.0, 0, 3.0), (2.0, 0, 4.0)], "row 2, field 'time_s': falls on an instance that is down"),
        ([(1.0, 1, 3.0)], "field 'instance': .* name one of the 1 instances"),
        ([(1.0, 0, 1.0)], "field 'back_s': .* come back after it failed"),
    ],
)
def test_failures_that_make_no_sense_are_refused(failures, sentence):
    with pytest.raises(InputError, match=sentence):
        run_compiled(cluster([asked(0, 4, 1)], [place(form=ONE_SECOND)], failures))
