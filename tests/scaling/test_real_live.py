"""Real processes share batches while weights come: the right tokens, whatever is split, lost, cancelled or mixed up.

Times that hold on a quiet machine are shown by the experiments; here a loaded machine may be late, never early.
"""

import threading
from importlib.util import find_spec

import numpy as np
import polars as pl
import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import InputError, UserError
from workbench.executor.faults import BlocksLost, Kill, ProcessLost, RunFailed, RunStopped, Stop
from workbench.executor.processes import Pool
from workbench.executor.scale import Scale
from workbench.executor.transformer import NotIdentical, Shape, make_weights, write_block, write_model
from workbench.scaling.model.live_pair import LivePair, best_shares, first_helped_s, share_batches
from workbench.scaling.policy import live_pair as policy
from workbench.scaling.real import (
    BlockRefused,
    Cancel,
    LiveScaleOut,
    Prompt,
    Refusal,
    Replace,
    check_outputs,
    live_queue,
    share_for_real,
    share_scaled,
)
from workbench.scaling.real.live_copies import Copies, Hop
from workbench.scaling.simulated import live_pair as simulated

LAYERS, UNIT_S, FOLLOW = 7, 0.04, 15
SHAPE = Shape(layers=LAYERS, hidden=128, heads=8, kv_heads=4, ffn=344, vocabulary=320, longest=64)
real = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]


@pytest.fixture(scope="module")
def pool():
    with Pool(7) as processes:
        yield processes


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("v1"), SHAPE, 1, LAYERS, "v1")


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """Other weights of the same shape."""
    return write_model(tmp_path_factory.mktemp("v2"), SHAPE, 2, LAYERS, "v2")


def ask(batches=6, load_s=3.0, schedule="zigzag", plan=None, **others):
    """As in the example of Figure 15, in layer times, but for layers that come twice as fast."""
    pair = LivePair(layers=LAYERS, load_s=load_s, arrival_s=(0.0,) * batches, schedule=schedule, plan=plan)
    return LiveScaleOut(pair=pair, **others)


def prompts(asked, seed=0, each=2):
    random = np.random.default_rng(seed)

    def one():
        return tuple(random.integers(0, SHAPE.vocabulary, random.integers(8, 20)).tolist())

    return [tuple(one() for _ in range(each)) for _ in range(asked.chains * len(asked.pair.arrival_s))]


def share(pool, model, asked, **options):
    """A run whose tokens and logits are those of the model undisturbed, bit for bit where the machine keeps bits."""
    given = prompts(asked)
    run = share_for_real(asked, model, given, Scale(), UNIT_S, pool=pool, follow=FOLLOW, **options)
    texts = [Prompt(prompt, FOLLOW + 1) for batch in given for prompt in batch]
    identity = check_outputs(run, model, texts, pool)
    assert identity.difference == 0 or not identity.same_order
    assert identity.gap > 0
    assert [len(output.tokens) for output in run.outputs] == [FOLLOW + 1] * len(texts)
    assert run.batches["finish_s"].is_finite().all()
    return run


@pytest.fixture(scope="module")
def zigzag(pool, model):
    return share(pool, model, ask())


class TestSharing:
    pytestmark = real

    def test_every_split_is_right(self, pool, model):
        """Batch k runs k layers on the new instance and the rest on the old one: 0 to all of them."""
        plan = tuple(range(LAYERS + 1))
        run = share(pool, model, ask(len(plan), 0.0, "planned", plan))
        assert run.batches["moved"].to_list() == list(plan)
        assert run.batches["by"].to_list() == [1] * LAYERS + [2]
        kinds = run.slots.group_by("batch", "instance").len().sort("batch", "instance")
        assert kinds.filter(instance="new")["len"].to_list() == list(plan[1:])
        assert kinds.filter(instance="old")["len"].to_list() == [1] * LAYERS

    def test_zigzag_beats_best_effort_and_nobody_beats_the_optimum(self, pool, model, zigzag):
        effort = share(pool, model, ask(schedule="best-effort"))
        _, best = best_shares(ask().pair)
        sums = [sum(run.finish_s()) for run in (zigzag, effort)]
        assert best.finish_s.sum() * (1 - 1e-3) <= sums[0] < sums[1]
        assert sums[1] >= share_batches(ask(schedule="best-effort").pair).finish_s.sum() * 0.9
        assert sum(effort.batches["moved"]) < sum(zigzag.batches["moved"])

    def test_nothing_runs_before_its_layer_is_there(self, zigzag):
        there = zigzag.blocks.sort("block")["time_s"].to_list()
        assert there == sorted(there)
        # A load is never faster than its link, however fast the machine copies.
        assert all(time_s >= 3.0 * block * (1 - 1e-6) for block, time_s in enumerate(there))
        executed = [0] * 6
        for batch, start_s in zigzag.slots.filter(instance="new").select("batch", "start_s").iter_rows():
            assert start_s >= there[executed[batch]]
            executed[batch] += 1
        assert executed == zigzag.batches["moved"].to_list()
        for kind in ("old", "new"):
            mine = zigzag.slots.filter(instance=kind).sort("start_s")
            assert (mine["start_s"].to_numpy()[1:] >= mine["end_s"].to_numpy()[:-1]).all()

    def test_it_helps_before_it_is_complete(self, zigzag):
        alone = share_batches(ask(schedule="alone").pair).finish_s
        first_s = first_helped_s(zigzag.finish_s(), alone)
        assert first_s * (1 + 1e-6) >= 11
        assert first_s < zigzag.complete_s(2)
        assert np.isnan(first_helped_s(alone, alone))

    def test_what_is_told_of_a_run(self, zigzag):
        assert zigzag.version == "v1"
        assert zigzag.overhead >= 0
        assert zigzag.label == ("paced" if zigzag.waiting_share > 0.5 else "busy")
        assert zigzag.wall_s >= UNIT_S * max(zigzag.complete_s(2), *zigzag.finish_s()) * (1 - 1e-6)
        assert zigzag.copies.select("kind", "host").rows() == [("load", f"node {node}") for node in (0, 1, 2)]
        assert len(zigzag.losses) == 0
        assert np.isnan(zigzag.complete_s(1))

    def test_two_chains_of_two_under_a_burst(self, pool, model):
        """Tails help at once; what stands between them and the source serves whole batches when it is complete."""
        run = share(pool, model, ask(9, 3.0, chains=2, targets=2))
        assert run.asked.new == [[3, 4], [5, 6]]
        for pair, (inner, tail) in enumerate(run.asked.new):
            mine = run.batches.filter(pl.col("pair") == pair)
            assert set(mine["by"]) <= {1 + pair, inner, tail}
            assert (mine["moved"] > 0).any()
            whole = run.slots.filter((pl.col("pair") == pair) & (pl.col("instance") == "whole"))
            assert (whole["start_s"] >= run.complete_s(inner)).all()
            assert whole["batch"].to_list() == mine.filter(pl.col("by") == inner)["batch"].to_list()
            # 3 layer times a layer and an eighth of that a hop; the first layer is at the tails at 0.
            assert run.complete_s(inner) >= (18 - 3 / 8) * (1 - 1e-6)
            assert run.complete_s(tail) >= 18 * (1 - 1e-6)
            helping = run.slots.filter((pl.col("pair") == pair) & (pl.col("instance") == "new"))
            assert helping["end_s"].min() < run.complete_s(tail)

    def test_a_run_leaves_nothing_in_its_processes(self, pool, model):
        def held():
            return [(process.num_fds(), process.num_threads()) for process in map(psutil.Process, pool.pids())]

        share(pool, model, ask(1, 1.0))
        before = held()
        share(pool, model, ask(2, 1.0))
        assert held() == before

    def test_a_scale_is_found(self, pool, model):
        asked = ask(2, 1.0)
        run = share_scaled(asked, model, prompts(asked), 0.005, 7.0 * model.bytes, pool=pool)
        assert run.scale.sigma == pytest.approx(7)
        assert run.unit_s == pytest.approx(0.005 * run.scale.theta)
        assert run.unit_s >= 0.08
        with pytest.raises(UserError, match="more than 100"):
            share_scaled(asked, model, prompts(asked), 1e-6, 1.0, pool=pool)


class TestFaults:
    pytestmark = real

    def test_the_source_dies_and_the_old_instance_sends_the_rest(self, pool, model):
        run = share(pool, model, ask(), faults=[Kill(node=0, at_s=0.3)])
        assert run.losses.select("node", "kind").rows() == [(0, "died")]
        assert run.complete_s(2) > 18
        assert ("lost", "node 0") in run.copies.select("kind", "host").rows()
        assert (run.batches["turn"] == 0).all()

    def test_a_cancelled_load_hands_over_what_it_has_begun(self, pool, model):
        run = share(pool, model, ask(), faults=[Cancel(node=2, at_s=0.3)])
        assert run.losses.select("node", "kind").rows() == [(2, "cancelled")]
        assert np.isnan(run.complete_s(2))
        assert (run.batches["turn"] == 0).all()
        assert run.batches["moved"].sum() >= 3
        assert set(run.batches["by"]) == {1}
        after = run.slots.filter((pl.col("instance") == "new") & (pl.col("start_s") > run.losses["time_s"][0] + 1))
        assert after.is_empty()

    def test_the_new_instance_dies_with_its_half_of_the_caches(self, pool, model):
        run = share(pool, model, ask(), faults=[Kill(node=2, at_s=0.4)])
        assert (run.batches["moved"] == 0).all()
        assert run.batches["turn"].sum() >= 3
        assert (run.batches["finish_s"] > run.losses["time_s"][0]).all()

    def test_a_hung_one_is_found_by_its_silence(self, pool, model):
        run = share(pool, model, ask(3), faults=[Stop(node=2, at_s=0.1)], heartbeat_s=0.8)
        assert run.losses.select("node", "kind").rows() == [(2, "hung")]

    def test_the_old_instance_dies_and_the_new_one_does_it_all(self, pool, model):
        run = share(pool, model, ask(4, 2.0), faults=[Kill(node=1, at_s=0.4)])
        assert (run.batches["moved"] == LAYERS).all()
        assert set(run.batches["by"]) == {2}
        with pytest.raises(ProcessLost, match="no instance is left that serves"):
            share(pool, model, ask(), faults=[Kill(node=1, at_s=0.2), Kill(node=2, at_s=0.3)])

    def test_a_node_in_the_middle_of_a_chain_dies(self, pool, model):
        run = share(pool, model, ask(4, 3.0, targets=2), faults=[Kill(node=2, at_s=0.3)])
        assert np.isnan(run.complete_s(2))
        assert run.complete_s(3) > 18
        assert set(run.batches["by"]) <= {1, 3}

    def test_the_only_copy_is_lost_and_made_again(self, pool, model):
        """No instance has the model; the host that sends it dies, and a spare one reads it from the store again."""
        run = share(pool, model, ask(3, 2.0, overloaded=False, spare_hosts=1), faults=[Kill(node=0, at_s=0.2)])
        assert run.copies.select("kind", "host").rows() == [
            ("restore", "node 0"), ("lost", "node 0"), ("restore", "node 2"), ("load", "node 1"), ("drop", "node 2"),
        ]  # fmt: skip
        assert (run.batches["moved"] == LAYERS).all()
        with pytest.raises(BlocksLost, match="only copy of blocks") as caught:
            share(pool, model, ask(3, 2.0, overloaded=False), faults=[Kill(node=0, at_s=0.2)])
        assert caught.value.blocks[-1] == LAYERS - 1

    def test_another_version_is_refused_wherever_it_turns_up(self, pool, model, newer):
        with pytest.raises(BlockRefused, match=r"Node 2 .* version 'v2' where version 'v1' .* never mixed") as caught:
            share(pool, model, ask(), faults=[Replace(2, 3, newer.blocks[3].path)])
        assert caught.value.block == 3
        with pytest.raises(BlockRefused, match=r"Node 0 .* 'v2' where version 'v1'"):
            share(pool, model, ask(), held=newer)
        # An old instance that still serves v1 takes no activation of v2, whole as its blocks may be.
        with pytest.raises(Refusal, match=r"Node 1 .* activation of batch 0 is of version 'v1' where version 'v2'"):
            share(pool, model, ask(), serving=newer)

    def test_the_reference_finds_a_wrong_weight(self, pool, model, tmp_path):
        """A matrix of the new instance's half that is rounded need not change a token."""
        asked = ask(3)
        given = prompts(asked, seed=1)
        run = share_for_real(asked, model, given, Scale(), UNIT_S, pool=pool, follow=FOLLOW)
        tensors = make_weights(SHAPE, 1, 1, 1)
        tensors["model.layers.1.mlp.up_proj.weight"].view(np.uint32).__iand__(0xFFFF0000)
        blocks = list(model.blocks)
        blocks[1] = write_block(tmp_path / "1.safetensors", tensors, 1, 1, "v1")
        texts = [Prompt(prompt, FOLLOW + 1) for batch in given for prompt in batch]
        with pytest.raises(NotIdentical, match="logits differ by"):
            check_outputs(run, model._replace(blocks=tuple(blocks)), texts, pool)

    def test_other_ends_are_said_in_a_sentence(self, pool, model):
        with pytest.raises(UserError, match="over before the fault at 60 s"):
            share(pool, model, ask(1, 0.5), faults=[Kill(node=2, at_s=60)])
        with pytest.raises(RunFailed, match="longer than the 1 s it may"):
            share(pool, model, ask(), timeout_s=1.0)
        wanted = threading.Event()
        timer = threading.Timer(0.4, wanted.set)
        timer.start()
        with pytest.raises(RunStopped):
            share(pool, model, ask(), stop=wanted.is_set)
        timer.join()


class TestDeciding:
    """What the parent decides is what formula and simulation decide."""

    def test_it_asks_the_same_policy(self):
        for name in ("next_on_target", "next_on_source", "layers_now"):
            assert getattr(live_queue, name) is getattr(policy, name) is getattr(simulated, name)

    @given(st.integers(0, 2**32 - 1), st.sampled_from([name for name in policy.SCHEDULES if name != "planned"]))
    def test_a_clock_of_whole_numbers_gives_the_formulas_times(self, seed, schedule):
        """The parent's state machine, driven by events in the formula's order of an instant."""
        random = np.random.default_rng(seed)
        pair = LivePair(
            layers=int(random.integers(1, 8)), load_s=float(random.integers(1, 7)), schedule=schedule,
            arrival_s=tuple(np.sort(random.integers(0, 12, random.integers(1, 8))).astype(float)),
            untouched=bool(random.integers(2)),
        )  # fmt: skip
        shared, queue = share_batches(pair), live_queue.LiveQueue(pair, 1, 2)
        finish_s, ends = [np.nan] * len(pair.arrival_s), {"old": np.inf, "new": np.inf}
        for now in np.arange(0.0, 500.0):
            queue.arrived = sum(arrival_s <= now for arrival_s in pair.arrival_s)
            queue.ready = min(pair.layers, int(now // pair.load_s) + 1)
            if ends["new"] == now:
                batch, queue.busy, ends["new"] = queue.busy, -1, np.inf
                queue.moved[batch] += 1
                if queue.moved[batch] == pair.layers:
                    queue.taken[batch], finish_s[batch] = True, now
            if ends["old"] == now:
                finish_s[queue.working], queue.working, ends["old"] = now, -1, np.inf
            if (batch := queue.for_old()) >= 0:
                queue.taken[batch], queue.working = True, batch
                ends["old"] = now + pair.layers - queue.moved[batch]
            if (batch := queue.for_new()) >= 0:
                queue.begin_on_new(batch)
                ends["new"] = now + 1
        assert finish_s == shared.finish_s.tolist()
        assert queue.moved.tolist() == shared.moved.tolist()

    def test_the_plan_leaves_the_old_instance_alone(self):
        asked = ask(chains=2, targets=2)
        assert Copies(asked, 1.0, 0.0).first_hops() == [Hop(0, 0, 3), Hop(3, 0, 4), Hop(0, 1, 5), Hop(5, 0, 6)]
        copies = Copies(asked, 1.0, 0.0)
        assert copies.source() == 0
        assert copies.lost(0, 1.0) == []
        assert copies.source() == 1  # no way out is free any more

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"batches": []}, InputError, "holds 0 batches.*give 6"),
            ({"batches": [((1,),)] * 5 + [()]}, InputError, "row 6.*no prompts"),
            ({"batches": [((320,),)] * 6}, InputError, "row 1.*below 320"),
            ({"batches": [((1,) * 60,)] * 6}, InputError, "row 1.*1 to 48"),
            ({"faults": [Kill(node=3, at_s=1)]}, InputError, "fault.node.*is 3"),
            ({"faults": [Cancel(node=1, at_s=1)]}, InputError, "name one of 2"),
            ({"unit_s": 0.0}, InputError, "unit_s"),
        ],
    )
    def test_what_cannot_be_is_refused_before_any_process_starts(self, model, options, error, words):
        asked = ask()
        options = {"batches": prompts(asked), "unit_s": UNIT_S} | options
        with pytest.raises(error, match=words):
            share_for_real(asked, model, scale=Scale(), follow=FOLLOW, **options)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"chains": 11, "targets": 2}, "34 nodes; take at most 32"),
            ({"overloaded": False, "schedule": "best-effort"}, "must be 'zigzag'"),
            ({"batches": 0}, "no batches"),
        ],
    )
    def test_what_is_asked_must_fit(self, options, words):
        with pytest.raises(UserError, match=words):
            ask(**options)
