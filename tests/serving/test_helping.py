"""Rows that help others while their own weights are on their way: by hand, and whatever happens."""

from collections import Counter
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scaling_cases import growing, row
from sent_weights_cases import with_live
from serving_cases import asked

from workbench.errors import InputError
from workbench.serving import Weights
from workbench.serving.model.checking import checked
from workbench.serving.model.lowered import DONE
from workbench.serving.model.scaled import EMPTY, UP
from workbench.serving.model.scaling_tables import scaleouts
from workbench.serving.policy import helped_s, ready_layers
from workbench.serving.policy.scalers import CHAINS, NONE
from workbench.serving.simulated.run import simulate


def same(values, wanted):
    np.testing.assert_array_equal(values, wanted)


FOUR_SECONDS = ((4.0, 0.0, 0.0, 0.0, 0.0), (0.0,) * 5)


def helping(requests, rows, failures=(), **changes):
    """Sixteen bytes of weights at one byte a second from 1 s on, of a model with eight layers: one more every two
    seconds. Steps take four seconds alone, and one prompt at a time."""
    usual = {"kind": NONE, "min_rows": len(rows), "source": CHAINS, "control_s": 0.0, "bytes": 16.0, "egress": 1.0,
             "ingress": 1.0, "live": 1, "layers": 8}  # fmt: skip
    return simulate(checked(growing(requests, rows, failures, **usual | changes)))


def helped_runs(requests, rows, failures=()):
    """The scale-outs of a run as in `helping`."""
    usual = {"kind": NONE, "min_rows": len(rows), "source": CHAINS, "control_s": 0.0, "bytes": 16.0, "egress": 1.0,
             "ingress": 1.0, "live": 1, "layers": 8}  # fmt: skip
    lowered = checked(growing(requests, rows, failures, **usual))
    return scaleouts(lowered, simulate(lowered), ["a"])


def places(*states):
    return [row(k, start_state=state, slots=1, form=FOUR_SECONDS) for k, state in enumerate(states)]


def test_steps_get_shorter_as_layers_come():
    """The first step begins at 0 s, alone. At 4 s three of sixteen bytes are there, of eight layers one: the second
    step takes 7/8 of 4 s. At 7.5 s there are three layers, at 10 s four, and at 12 s five, of which half of the model
    counts. The copy is complete at 17 s."""
    out = helping([asked(0, 8, 1)] * 6, places(UP, EMPTY))
    same(out.assists, [
        [4, 7.5, 1, 0, 1, 1], [7.5, 10, 1, 0, 2, 3], [10, 12, 1, 0, 3, 4], [12, 14, 1, 0, 4, 5], [14, 16, 1, 0, 5, 6],
    ])  # fmt: skip
    same(out.finish_s, [4, 7.5, 10, 12, 14, 16])
    same(out.busy_s, [16, 0])
    same(out.loads[:, :3], [[1, 17, 1]])


def test_a_scale_out_is_useful_from_the_first_step_that_it_helped_with():
    """As above: the first such step is over at 7.5 s, the copy at 17 s, and five first tokens come from such steps. A
    step that is lost with its instance, here at 5 s, does not count."""
    tables = helped_runs([asked(0, 8, 1)] * 6, places(UP, EMPTY))
    columns = ("detected_s", "helping_s", "first_useful_s", "alone_s", "requests_helped")
    assert tables.select(columns).rows() == [(1, 4, 7.5, 17, 5)]
    tables = helped_runs([asked(0, 8, 1)] * 2, places(UP, EMPTY), failures=[(5.0, 0, inf)])
    same(tables.select("helping_s", "first_useful_s", "requests_helped").to_numpy()[0], [4, nan, 0])


def test_steps_that_only_decode_are_nobodys_to_help_with():
    out = helping([asked(0, 8, 4)], places(UP, EMPTY))
    same(out.assists, np.empty((0, 6)))
    same(out.finish_s, [16])


@pytest.mark.parametrize(("activation_s", "finish_s"), [(0.0, 7.5), (0.03125, 7.75), (0.0625, 8), (1.0, 8)])
def test_handing_over_takes_time_and_is_left_where_it_takes_too_much(activation_s, finish_s):
    """Half a second is spared; the eight tokens of the prompt take that, too, where a token takes a sixteenth."""
    out = helping([asked(0, 8, 1)] * 2, places(UP, EMPTY), activation_s=activation_s)
    same(out.finish_s, [4, finish_s])
    assert len(out.assists) == (finish_s < 8)


def test_where_it_has_to_pay_nobody_helps_the_last_one():
    """Of three prompts the second is helped with while the third waits behind it, and the third is not."""
    out = helping([asked(0, 8, 1)] * 3, places(UP, EMPTY), live=2)
    same(out.assists, [[4, 7.5, 1, 0, 1, 1]])
    same(out.finish_s, [4, 7.5, 11.5])


@pytest.mark.parametrize(
    ("promise_s", "waits", "helped"), [(17.5, 0, 1), (17.5, 1, 1), (18, 1, 0), (19.5, 0, 1), (20, 0, 0), (inf, 1, 0)]
)
def test_where_a_promise_would_be_kept_nobody_helps(promise_s, waits, helped):
    """All of the load takes 16 s, and a step four more. At 4 s the oldest of three prompts has been there for one
    second, and 13 are left: it would have its first token 18 s after it came."""
    requests = [asked(0, 8, 1), asked(3, 8, 1), asked(3, 8, 1)]
    out = helping(requests, places(UP, EMPTY), live=3, promise_s=promise_s, waits=waits)
    same(out.assists, np.reshape([[4, 7.5, 1, 0, 1, 1]][:helped], (-1, 6)))
    same(out.finish_s, [4, 7.5, 11.5] if helped else [4, 8, 12])


def test_the_row_with_most_prompts_is_helped():
    """Two rows begin a step at 4 s: the second has 20 tokens left, the first eight. There is one tail."""
    requests = [asked(0, 8, 1), asked(0, 8, 1), asked(0, 8, 1), asked(0, 20, 1)]
    out = helping(requests, places(UP, UP, EMPTY))
    same(out.assists, [[4, 7.5, 2, 1, 1, 1]])


def test_each_chain_has_a_tail_that_helps():
    """Two senders, two chains: both rows are helped at the same time."""
    out = helping([asked(0, 8, 1)] * 4, places(UP, UP, EMPTY, EMPTY), chains=2)
    same(out.assists, [[4, 7.5, 2, 0, 1, 1], [4, 7.5, 3, 1, 1, 1]])


def test_a_row_inside_a_chain_helps_nobody():
    out = helping([asked(0, 8, 1)] * 3, places(UP, UP, EMPTY, EMPTY), min_rows=4)
    assert {*out.assists[:, 2]} == {3}


@pytest.mark.parametrize(("broken", "end_s", "finish_s"), [(1, 7.5, 7.5), (0, nan, 14)])
def test_a_helper_that_fails_changes_nothing_and_a_step_that_is_lost_was_not_helped(broken, end_s, finish_s):
    """The new row fails at 6 s, in the middle of its help; or the old one does: the new one then reads its own weights,
    16 bytes at four a second, and has computed the second prompt, which begins again, four seconds after that."""
    out = helping([asked(0, 8, 1)] * 2, places(UP, EMPTY), [(6.0, broken, inf)])
    same(out.assists, [[4, end_s, 1, 0, 1, 1]])
    same(out.finish_s, [4, finish_s])


@pytest.mark.parametrize(("path", "sentence"), [
    ("tiers", "live is set, but path is 'tiers'; choose 'chains'"), ("chains", "live is set, but layers is missing"),
])  # fmt: skip
def test_weights_that_cannot_be_live(path, sentence):
    with pytest.raises(InputError, match=sentence):
        Weights(path=path, bytes=1.0, dram_bytes_per_s=1.0, live=True)


@given(st.integers(1, 80), st.floats(0, 1))
def test_help_is_never_more_than_half(layers, share):
    ready = ready_layers(layers, share)
    assert 0 <= ready <= layers
    seconds = helped_s(1.0, layers, ready, 0, 0.0)
    assert 0.5 <= seconds <= 1
    assert seconds == pytest.approx((layers - min(ready, layers // 2)) / layers)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1).map(lambda seed: with_live(np.random.default_rng(seed))))
def test_help_is_given_by_tails_to_one_at_a_time(lowered):
    run = simulate(checked(lowered))
    assert (run.made[run.status == DONE] == lowered.requests.output[run.status == DONE]).all()
    start_s, end_s, helper, helped, iteration, layers = run.assists.T
    assert (np.diff(start_s) >= 0).all()
    assert (layers >= 1).all()
    for who in (helper, helped):
        for one in np.unique(who):
            mine = np.flatnonzero((who == one) & ~np.isnan(end_s))
            assert (start_s[mine][1:] >= end_s[mine][:-1]).all()
    steps = zip(helped.astype(int), iteration.astype(int), end_s, strict=True)
    for j, k, time_s in steps:
        assert np.isnan(time_s) or run.iteration_end_s[run.iteration_at[j] + k] == time_s
    for time_s, row_, other in zip(start_s, helper, helped, strict=True):
        loading = (run.loads[:, 2] == row_) & (run.loads[:, 0] <= time_s) & ~(run.loads[:, 1] <= time_s)
        assert loading.any()
        assert row_ != other
        assert (run.hops[:, 1] == row_).any()


def test_the_scenarios_have_what_can_happen():
    seen = Counter()
    for seed in range(250):
        run = simulate(checked(with_live(np.random.default_rng(seed))))
        seen["helped"] += len(run.assists)
        seen["lost"] += np.isnan(run.assists[:, 1]).sum()
    assert min(seen.values()) > 5, seen
