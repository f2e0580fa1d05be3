"""Instances that compute prompts and send their KV to others that decode, in cases worked out by hand.

Every step takes one second. A token's KV is one byte; links carry four bytes a second each way, without latency.
"""

import numpy as np
import pytest
from serving_cases import asked, migrating, place

from workbench.serving.model import run_compiled
from workbench.serving.model.lowered import COLOCATED, DECODE, DONE, PREFILL, REJECTED
from workbench.serving.policy import FIRST_FREE, LEAST_OUTSTANDING, ROUND_ROBIN
from workbench.serving.simulated import simulate

NAN, INF = float("nan"), float("inf")
RUNS = pytest.mark.parametrize("run", [simulate, run_compiled], ids=["simpy", "compiled"])


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


def prefill(**engine):
    return place(role=PREFILL, **engine)


def decode(**engine):
    return place(role=DECODE, **engine)


PAIR = [prefill(), decode()]


@RUNS
def test_a_request_on_its_way(run):
    """Its prompt of eight tokens is computed by 1 s, its KV is there at 3 s, two more tokens come by 5 s.

    Two blocks on either side, and a third where it decodes from the first token on.
    """
    out = run(migrating([asked(0, 8, 3)], PAIR))
    same(out.flows, [[1, 3, 0, 0, 1, 8]])
    same(out.finish_s, [5])
    same(out.first_token_s, [1])
    same(out.segments, [[0, 0, 1, 0, 0], [0, 1, 2, 1, 0]])
    same([out.prefill[0], out.instance[0]], [0, 1])
    same(out.peak_blocks, [2, 3])
    same(out.busy_s, [1, 2])


@RUNS
@pytest.mark.parametrize(("links", "lands_s"), [
    ({"latency_s": 5.0}, 6), ({"latency_s": 1.5}, 3), ({"kv_bytes": 0.0}, 1),
    ({"kv_bytes": 0.0, "latency_s": 0.5}, 1.5), ({"egress": INF, "ingress": INF}, 1),
    ({"egress": INF, "ingress": INF, "latency_s": 0.25}, 1.25), ({"egress": INF}, 3), ({"ingress": INF}, 3),
    ({"ingress": 2.0}, 5),
])  # fmt: skip
def test_links_and_latency(run, links, lands_s):
    """The latency is the least that a transfer takes, not an addition; a link without bounds binds nothing."""
    out = run(migrating([asked(0, 8, 2)], PAIR, **links))
    same(out.flows[:, 1], [lands_s])
    same(out.finish_s, [lands_s + 1])


@RUNS
def test_who_has_one_token_to_make_decodes_nowhere(run):
    out = run(migrating([asked(0, 8, 1), asked(0, 8, 0)], PAIR))
    same(out.finish_s, [1, 1])
    same(out.instance, [0, 0])
    same(out.prefill, [0, 0])
    same(out.flows, np.empty((0, 6)))


@RUNS
def test_two_transfers_into_one_instance_share_its_link(run):
    """Eight and four bytes from 1 s on, two a second each: the second is there at 3 s, then four are left at four a
    second."""
    places = [prefill(limit=1), prefill(limit=1), decode()]
    out = run(migrating([asked(0, 8, 2), asked(0, 4, 2)], places, route=FIRST_FREE))
    same(out.flows[:, :5], [[1, 4, 0, 0, 2], [1, 3, 1, 1, 2]])
    same(out.finish_s, [5, 4])


@RUNS
def test_rates_are_fair_link_by_link(run):
    """Out of the first go two transfers, one of them into the last, which takes six bytes a second.

    Both get half of four; the third gets the four that are left of six: twelve of its bytes by 4 s. The others have
    two of eight left then, and still get two each.
    """
    places = [prefill(limit=2), prefill(limit=1), decode(limit=1), decode(limit=2)]
    requests = [asked(0, 8, 2), asked(0, 12, 2), asked(0, 8, 2)]
    out = run(migrating(requests, places, egress=[4, 9, 9, 9], ingress=[9, 9, 9, 6], route=ROUND_ROBIN))
    same(out.prefill, [0, 1, 0])
    same(out.flows[:, :5], [[1, 5, 0, 0, 2], [1, 5, 2, 0, 3], [1, 4, 1, 1, 3]])


@RUNS
def test_a_prompt_that_is_sent_keeps_its_blocks(run):
    """Two of three blocks: the second prompt waits for the first one's transfer, from 1 to 3 s, and is done at 4 s."""
    requests, places = [asked(0, 8, 2)] * 2, [prefill(blocks=3), decode()]
    out = run(migrating(requests, places))
    same(out.wait_s, [0, 3])
    same(out.first_token_s, [1, 4])
    same(out.flows[:, :2], [[1, 3], [4, 6]])
    fast = run(migrating(requests, places, egress=INF, ingress=INF))
    same(fast.wait_s, [0, 1])
    same(fast.iteration_end_s, [1, 2, 2, 3])


@RUNS
def test_but_it_does_not_count_against_a_limit(run):
    """One a time: the second is given at 1 s, while the first is on its way. From 2 s on each has four bytes left."""
    out = run(migrating([asked(0, 8, 2), asked(0, 4, 2)], [prefill(limit=1), decode()]))
    same(out.first_token_s, [1, 2])
    same(out.flows[:, :2], [[1, 4], [2, 4]])


@RUNS
@pytest.mark.parametrize("narrow", [{"slots": 1}, {"limit": 1}, {"blocks": 2}, {"blocks": 3, "reserve": 1}])
def test_where_it_decodes_there_must_be_room_for_it(run, narrow):
    """Both prompts are done at 1 s. The first is there at 2 s and done at 4 s; then the second is sent, until 5 s.

    Four tokens and three more are two blocks: paged, one is taken at first, but the second one at 2 s.
    """
    out = run(migrating([asked(0, 4, 3)] * 2, [prefill(), decode(**narrow)]))
    wanted = [[1, 3], [1, 3]] if narrow == {"blocks": 2} else [[1, 2], [4, 5]]
    same(out.flows[:, :2], wanted)
    if narrow != {"blocks": 2}:
        same(out.finish_s, [4, 7])


@RUNS
def test_who_lands_takes_part_in_the_next_step(run):
    """The first decodes from 2 s on. The second lands at 3 s, when a step ends, and is in the next; the third lands
    at 4.5 s and waits for the step of 5 s."""
    requests = [asked(0, 4, 9), asked(1, 4, 2), asked(2, 10, 2)]
    out = run(migrating(requests, PAIR))
    same(out.flows[:, :2], [[1, 2], [2, 3], [3, 5.5]])
    same(out.finish_s[1:], [4, 7])


@RUNS
def test_a_decode_line_is_ranked(run):
    """One at a time decodes: after the first, that of rank 0."""
    requests = [asked(0, 4, 3), asked(0, 4, 2, rank=1), asked(0, 4, 2)]
    out = run(migrating(requests, [prefill(limit=1), decode(limit=1)]))
    same(out.prefill, [0, 0, 0])
    same(out.flows[:, [0, 2]], [[1, 0], [4, 2], [6, 1]])


@RUNS
def test_an_eviction_where_it_decodes_is_made_good_there(run):
    """Four blocks for two requests of 4 + 6 tokens, which land together at 3 s with one token each.

    At 7 s both have stored 8 tokens and five are made: the second goes, the first is done at 8 s. Then nine tokens are
    computed, and the last one made, in one step.
    """
    out = run(migrating([asked(0, 4, 6)] * 2, [prefill(), decode(blocks=4)]))
    same(out.finish_s, [8, 9])
    same(out.evictions, [0, 1])
    same(out.prefill, [0, 1])
    same(out.instance, [1, 1])
    same(out.segments, [[0, 0, 1, 0, 0], [0, 1, 5, 1, 0], [1, 0, 1, 0, 0], [1, 1, 4, 1, 0], [1, 5, 1, 1, 5]])


@RUNS
def test_what_fits_only_one_kind_is_rejected(run):
    """Three and five blocks of four tokens: 12 tokens fit both, 13 only where requests decode."""
    out = run(migrating([asked(0, 10, 3), asked(0, 10, 2)], [prefill(blocks=3), decode(blocks=5)]))
    same(out.status, [REJECTED, DONE])
    out = run(migrating([asked(0, 10, 3), asked(0, 10, 2)], [prefill(blocks=5), decode(blocks=3)]))
    same(out.status, [REJECTED, DONE])


@RUNS
def test_colocated_instances_of_another_model_send_nothing(run):
    places = [prefill(model=1), place(role=COLOCATED), decode(model=1)]
    out = run(migrating([asked(0, 4, 3), asked(0, 4, 3, model=1)], places))
    same(out.flows, [[1, 2, 1, 0, 2, 4]])
    same(out.finish_s, [3, 4])
    same([out.prefill, out.instance], [[1, 0], [1, 2]])


@RUNS
def test_each_line_has_its_own_turn(run):
    """Round robin: prompts go to 0, 1, 0 and the rest to 2, 3, 2, whatever the other line does."""
    places = [prefill(), prefill(), decode(), decode()]
    out = run(migrating([asked(k, 4, 2) for k in range(3)], places, route=ROUND_ROBIN))
    same(out.prefill, [0, 1, 0])
    same(out.instance, [2, 3, 2])


@RUNS
def test_who_comes_counts_as_outstanding(run):
    """The second goes to the other one though nothing runs yet."""
    out = run(migrating([asked(0, 4, 2)] * 3, [prefill(), decode(), decode()], route=LEAST_OUTSTANDING))
    same(out.instance, [1, 2, 1])


@RUNS
def test_a_failed_source_takes_along_what_it_sends(run):
    """Half is sent at 2 s when it fails. From 2.5 s the prompt and its first token are computed again, nine tokens:
    the second token comes at 3.5 s, the KV is there at 5.75 s."""
    out = run(migrating([asked(0, 8, 3)], PAIR, [(2.0, 0, 2.5)]))
    same(out.flows, [[1, NAN, 0, 0, 1, 8], [3.5, 5.75, 0, 0, 1, 9]])
    same(out.finish_s, [6.75])
    same(out.moves, [1])
    same(out.failed_steps, [0, 0])
    same(out.peak_blocks, [3, 3])


@RUNS
def test_a_failed_source_takes_along_who_waits_to_be_sent(run):
    """At 2.5 s two prompts are in the making; of three that are done, one is on its way and two wait.

    From 3 s on they start again in this order, two a step: at 5 s the second request makes its last token, and so does
    the third at 6 s. One at a time decodes: the fourth and fifth, each sent for 1 s, until 8 s, then the first.
    """
    requests = [asked(0, 8, 3), asked(0.5, 4, 2), asked(0.5, 4, 2), asked(1.5, 4, 2), asked(1.5, 4, 2)]
    out = run(migrating(requests, [prefill(slots=2), decode(slots=1)], [(2.5, 0, 3.0)]))
    same(out.moves, [1] * 5)
    same(out.failed_steps, [1, 0])
    same(out.first_token_s, [1, 2, 2, 4, 4])
    same(out.flows[:, :3], [[1, NAN, 0], [4, 5, 3], [6, 7, 4], [8, 10.25, 0]])
    same(out.finish_s, [11.25, 5, 6, 6, 8])


@RUNS
def test_what_a_failed_target_would_have_got_is_sent_to_another(run):
    """Half is sent at 2 s; it begins anew to the third instance, and nothing is computed again."""
    out = run(migrating([asked(0, 8, 3)], [prefill(), decode(), decode()], [(2.0, 1, INF)], route=FIRST_FREE))
    same(out.flows, [[1, NAN, 0, 0, 1, 8], [2, 4, 0, 0, 2, 8]])
    same(out.finish_s, [6])
    same(out.moves, [1])
    same(out.prefill, [0])
    same(out.instance, [2])
    same(out.busy_s, [1, 0, 2])


@RUNS
def test_what_a_failed_target_had_is_computed_again(run):
    """At 2.5 s the first has one token more in the making, and the second is half sent.

    The first has 4 + 1 tokens to compute, from 2.5 to 3.5 s; the other instance then has both.
    """
    places = [prefill(), decode(), decode()]
    out = run(migrating([asked(0, 4, 4), asked(1, 4, 4)], places, [(2.5, 1, INF)], route=FIRST_FREE))
    same(out.flows[:, :5], [[1, 2, 0, 0, 1], [2, NAN, 1, 0, 1], [2.5, 3.5, 1, 0, 2], [3.5, 4.75, 0, 0, 2]])
    same(out.finish_s, [7.5, 6.5])
    same(out.moves, [1, 1])
    same(out.failed_steps, [0, 1, 0])
    same(out.prefill, [0, 0])


@RUNS
def test_who_has_landed_but_not_begun_is_lost_with_the_target(run):
    """A step goes on from 3 to 4 s; the second lands at 3.5 s and its target fails at 3.75 s: both start again."""
    out = run(migrating([asked(0, 8, 4), asked(2, 2, 4)], PAIR, [(3.75, 1, 4.0)]))
    same(out.flows[:2, :2], [[1, 3], [3, 3.5]])
    same(out.moves, [1, 1])
    same(out.failed_steps, [0, 1])
    same(out.flows[2:, [0, 2, 5]], [[4.75, 0, 9], [4.75, 1, 3]])


@RUNS
@pytest.mark.parametrize(("failures", "evictions"), [((), [0, 1]), ([(4.0, 1, INF)], [0, 0])])
def test_blocks_come_back_from_what_a_failed_source_would_have_sent(run, failures, evictions):
    """Three blocks where requests decode: the first has two from 2 s on and needs another at 6 s, when the second
    lands, at one byte a second, and goes again. If that one's source fails at 4 s, its block is free by then."""
    places = [prefill(limit=1), prefill(), decode(blocks=3)]
    requests = [asked(0, 4, 7), asked(1, 4, 2)]
    out = run(migrating(requests, places, failures, route=ROUND_ROBIN, egress=[4, 1, 4]))
    same(out.evictions, evictions)
    same(out.flows[:, :2], [[1, 2], [2, NAN if failures else 6]])
    same(out.finish_s, [8, 5 if failures else 9])
