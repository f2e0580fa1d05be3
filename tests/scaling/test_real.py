"""Real processes serve while they load: the right tokens come out, whatever splits, switches, dies or is mixed up.

Times that hold on a quiet machine are shown by the experiments; here a loaded machine may be late, never early.
"""

import threading
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest

from workbench.errors import InputError, UnknownName, UserError
from workbench.executor.faults import BlocksLost, Flip, Kill, ProcessLost, RunFailed, RunStopped, Stop, Swap
from workbench.executor.processes import Pool
from workbench.executor.scale import Scale
from workbench.executor.transformer import NotIdentical, Shape, make_weights, write_block, write_model
from workbench.scaling.model import ScaleOut, scale_out
from workbench.scaling.real import (
    BlockRefused,
    Pace,
    Prompt,
    Replace,
    check_outputs,
    choose_live_scale,
    serve_scaled,
    serve_while_loading,
)

SHAPE = Shape(layers=8, hidden=128, heads=8, kv_heads=4, ffn=344, vocabulary=320, longest=128)
STEP_S, PASS_S = 0.03, 0.02
real = [
    pytest.mark.torch,
    pytest.mark.real,
    pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed: real runs need it"),
]


@pytest.fixture(scope="module")
def pool():
    with Pool(6) as processes:
        yield processes


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_model(tmp_path_factory.mktemp("v1"), SHAPE, 1, 8, "v1")


@pytest.fixture(scope="module")
def newer(tmp_path_factory):
    """Other weights of the same shape."""
    return write_model(tmp_path_factory.mktemp("v2"), SHAPE, 2, 8, "v2")


def ask(model, sources=2, targets=2, variant="paper", parts=1, reorder=True, step_s=STEP_S):
    """A scale-out at full size, σ = θ = 1, whose mean step takes `step_s`."""
    blocks = len(model.blocks)
    return ScaleOut(
        sources=sources, targets=targets, blocks=blocks // parts, parts=parts, variant=variant, reorder=reorder,
        weight_bytes=model.bytes, bytes_per_s=model.bytes / blocks / step_s,
    )  # fmt: skip


def requests(count=6, output=16, seed=0, longest=20):
    random = np.random.default_rng(seed)
    lengths = random.integers(8, longest, count)
    return [Prompt(tuple(random.integers(0, SHAPE.vocabulary, length).tolist()), output) for length in lengths]


def serve(pool, model, prompts=None, mode="pipelines", asked=None, **options):
    prompts = prompts or requests()
    run = serve_while_loading(asked or ask(model), model, prompts, Pace(PASS_S), Scale(), mode, pool=pool, **options)
    return run, prompts


def right(run, model, prompts, pool):
    """Bit for bit, or within 1e-5 where the machine's library does not keep the bits of rows."""
    identity = check_outputs(run, model, prompts, pool)
    assert identity.holds
    assert identity.difference == 0 or not identity.same_order
    assert identity.gap > 0
    assert [len(output.tokens) for output in run.outputs] == [prompt.output for prompt in prompts]
    return identity


class TestServing:
    pytestmark = real

    def test_pipelines_serve_before_anybody_is_complete(self, pool, model):
        run, prompts = serve(pool, model)
        right(run, model, prompts, pool)
        formed = scale_out(ask(model))
        forms_s = run.pipelines["formed_s"][0]
        # never earlier than the links allow, however fast this machine copies; blocks of this model differ a little
        assert forms_s >= 0.9 * formed.forms_s.min()
        assert forms_s < min(run.complete_s)
        assert run.first_token_s >= forms_s + PASS_S * (1 - 1e-6)
        assert run.requests["first_by"].to_list()[:4] == ["pipeline 0"] * 4
        assert run.pipelines["nodes"].to_list() == [[2, 3]]

    def test_every_switched_request_goes_on_alone(self, pool, model):
        run, prompts = serve(pool, model, requests(8))
        right(run, model, prompts, pool)
        moved = run.requests.filter(pl.col("moves") > 0)
        assert len(moved) == len(run.switches) == 8
        assert set(moved["last_by"]) == {"node 2", "node 3"}
        dissolved_s = run.pipelines["dissolved_s"][0]
        assert dissolved_s >= max(run.complete_s)
        assert (run.switches["left_s"] >= dissolved_s).all()
        # a prefill over all that was said takes at least one pass
        assert (run.switches["first_after_s"] >= run.switches["left_s"] + PASS_S * (1 - 1e-6)).all()
        assert (run.switches["tokens_before"] > 8).all()

    def test_fifty_prompts_keep_their_tokens_through_the_switch(self, pool, model):
        prompts = requests(50, seed=3)
        run, _ = serve(pool, model, prompts, batch=25)
        identity = right(run, model, prompts, pool)
        assert (run.requests["moves"] == 1).all()
        assert identity.distinct >= 8
        assert identity.tokens == 800

    def test_waiting_for_all(self, pool, model):
        run, prompts = serve(pool, model, mode="wait")
        right(run, model, prompts, pool)
        assert run.first_token_s >= min(run.complete_s) + PASS_S * (1 - 1e-6)
        assert len(run.pipelines) == len(run.switches) == 0
        assert set(run.requests["first_by"]) <= {"node 2", "node 3"}

    @pytest.mark.parametrize(("sources", "targets"), [(1, 3), (1, 1), (2, 3)])
    def test_other_numbers_of_sources_and_targets(self, pool, model, sources, targets):
        """One source: a pipeline through all targets, whose members run blocks in turns; an odd one out."""
        run, prompts = serve(pool, model, asked=ask(model, sources, targets))
        right(run, model, prompts, pool)
        assert len(run.complete_s) == targets

    @pytest.mark.parametrize("reorder", [True, False])
    def test_the_artifacts_pipelines_and_transfer_parts(self, pool, reorder, tmp_path):
        """Eight execution blocks of two transfer blocks each, strided orders."""
        shape = SHAPE.model_copy(update={"layers": 16})
        model = write_model(tmp_path, shape, 4, 16, "v1")
        asked = ask(model, 2, 3, "artifact", parts=2, reorder=reorder)
        run, prompts = serve(pool, model, asked=asked)
        right(run, model, prompts, pool)
        assert len(run.pipelines) == len(scale_out(asked).pipelines)

    def test_what_is_told_of_a_run(self, pool, model):
        run, prompts = serve(pool, model)
        assert run.tokens.group_by("request_id").len().sort("request_id")["len"].to_list() == [16] * len(prompts)
        for (request,), part in run.tokens.group_by("request_id", maintain_order=True):
            assert part["time_s"].is_sorted()
            assert part["token"].to_list() == run.outputs[request].tokens.tolist()
        assert len(run.blocks) == 2 * 8
        assert run.blocks["time_s"].max() == max(run.complete_s)
        assert run.requests["prompt_tokens"].to_list() == [len(prompt.tokens) for prompt in prompts]
        assert run.overhead >= 0
        assert run.label == ("paced" if run.waiting_share > 0.5 else "busy")
        assert run.recovery is None
        assert run.version == "v1"
        assert run.mean_first_token_s >= run.first_token_s
        smallest = min(block.size for block in model.blocks)
        assert run.step_s == pytest.approx(STEP_S * smallest / (model.bytes / 8))

    def test_a_scale_model_tells_full_size_seconds(self, pool, model):
        """Twice the bytes over links twice as fast, and time stretched threefold: the same seconds at full size."""
        asked = ask(model).model_copy(update={"weight_bytes": 2.0 * model.bytes})
        asked = asked.model_copy(update={"bytes_per_s": asked.bytes_per_s * 6})
        prompts = requests(2)
        scale = Scale(sigma=2.0, theta=3.0)
        run = serve_while_loading(asked, model, prompts, Pace(PASS_S / 3), scale, pool=pool)
        right(run, model, prompts, pool)
        assert run.step_s == pytest.approx(STEP_S * min(b.size for b in model.blocks) / (model.bytes / 8))
        assert run.first_token_s == pytest.approx(run.requests["first_token_s"].min() / 3)

    def test_a_scale_is_found(self, pool, model):
        fast = ask(model)
        fast = fast.model_copy(update={"bytes_per_s": 20 * fast.bytes_per_s})
        prompts = requests(2)
        scale = choose_live_scale(fast, model, prompts, Pace(1.0), 2, pool)
        assert scale.theta * min(b.size for b in model.blocks) / fast.bytes_per_s == pytest.approx(0.02)
        run = serve_scaled(ask(model), model, prompts, Pace(least_s=1e-3), pool=pool)
        right(run, model, prompts, pool)
        assert run.scale.theta > 1  # eight layers take longer than a millisecond here
        with pytest.raises(UserError, match="more than 100"):
            choose_live_scale(fast, model, prompts, Pace(1e-9), 2, pool)


class TestFaults:
    pytestmark = real

    @pytest.mark.parametrize("node", [2, 3])
    def test_a_stage_dies_in_the_middle_of_requests(self, pool, model, node):
        """Both batches are in the pipeline then; the other member completes and says them to their ends."""
        run, prompts = serve(pool, model, requests(8), asked=ask(model, step_s=0.06), fault=Kill(node=node, at_s=0.38))
        right(run, model, prompts, pool)
        assert (run.recovery.node, run.recovery.kind) == (node, "died")
        assert run.recovery.requests == 8
        assert 0.38 <= run.recovery.noticed_s <= run.recovery.resumed_s
        assert np.isnan(run.complete_s[node - 2])
        assert run.requests["first_by"].unique().to_list() == ["pipeline 0"]
        assert run.requests["last_by"].unique().to_list() == [f"node {5 - node}"]
        assert 0 < run.recovery.blocks_moved < 8

    def test_a_source_dies_while_another_copy_lives(self, pool, model):
        run, prompts = serve(pool, model, fault=Kill(node=1, at_s=0.08))
        right(run, model, prompts, pool)
        assert run.recovery.node == 1
        assert run.recovery.requests == 0  # nobody served yet
        assert not np.isnan(run.complete_s).any()

    def test_the_only_source_dies_with_the_rest_of_the_model(self, pool, model):
        with pytest.raises(BlocksLost, match="only copy of blocks"):
            serve(pool, model, asked=ask(model, 1, 2), fault=Kill(node=0, at_s=0.1))
        run, prompts = serve(pool, model, requests(2))
        right(run, model, prompts, pool)  # the pool is whole again

    def test_nobody_is_left_to_serve(self, pool, model):
        with pytest.raises(ProcessLost, match="no node is left that could serve"):
            serve(pool, model, asked=ask(model, 1, 1), fault=Kill(node=1, at_s=0.1))

    def test_a_hung_stage_is_found_by_its_silence(self, pool, model):
        run, prompts = serve(pool, model, requests(4, 30), fault=Stop(node=3, at_s=0.19), heartbeat_s=0.8)
        right(run, model, prompts, pool)
        assert run.recovery.kind == "hung"

    def test_a_node_dies_when_it_serves_alone(self, pool, model):
        """All blocks have arrived; its batch goes on at the other node."""
        run, prompts = serve(pool, model, requests(8, 20), fault=Kill(node=2, at_s=0.5))
        right(run, model, prompts, pool)
        assert run.recovery.blocks_moved == 0
        assert run.requests["last_by"].unique().to_list() == ["node 3"]

    @pytest.mark.parametrize(
        ("fault", "words"),
        [
            (Flip(node=3, block=5), "Block 5 has other bytes"),
            (Swap(node=2, block=1, other=2), "Block [12] has other bytes"),
        ],
    )
    def test_wrong_bytes_are_refused_before_they_are_loaded(self, pool, model, fault, words):
        with pytest.raises(BlockRefused, match=words) as caught:
            serve(pool, model, fault=fault)
        assert caught.value.node == fault.node

    def test_another_version_that_arrives_is_refused(self, pool, model, newer):
        fault = Replace(3, 6, newer.blocks[6].path)
        with pytest.raises(BlockRefused, match=r"Node 3 .* version 'v2' where version 'v1' .* never mixed") as caught:
            serve(pool, model, fault=fault)
        assert caught.value.block == 6

    def test_a_source_of_another_version_sends_nothing(self, pool, model, newer):
        with pytest.raises(BlockRefused, match=r"Node 1 .* 'v2' where version 'v1'"):
            serve(pool, model, held=(model, newer))

    def test_the_next_version_replaces_the_last_one_whole(self, pool, model, newer):
        """Two operations one after the other in the same processes: each says what its own weights say."""
        first, prompts = serve(pool, model)
        second, _ = serve(pool, newer, prompts)
        right(first, model, prompts, pool)
        right(second, newer, prompts, pool)
        assert first.outputs[0].tokens.tolist() != second.outputs[0].tokens.tolist()

    def test_the_reference_finds_a_wrong_weight(self, pool, model, tmp_path):
        """One weight off by 0.1, one matrix rounded: neither need change a token."""
        run, prompts = serve(pool, model, requests(3))
        for name, change in {
            "model.layers.4.self_attn.q_proj.weight": lambda values: values[3].__iadd__(0.1),
            "model.layers.6.mlp.up_proj.weight": lambda values: values.view(np.uint32).__iand__(0xFFFF0000),
        }.items():
            layer = int(name.split(".")[2])
            tensors = make_weights(SHAPE, 1, layer, 1)
            change(tensors[name])
            blocks = list(model.blocks)
            blocks[layer] = write_block(tmp_path / f"{layer}.safetensors", tensors, layer, 1, "v1")
            with pytest.raises(NotIdentical, match="logits differ by"):
                check_outputs(run, model._replace(blocks=tuple(blocks)), prompts, pool)

    def test_a_fault_after_the_end_is_said(self, pool, model):
        with pytest.raises(UserError, match="over before the fault at 60 s"):
            serve(pool, model, requests(1), fault=Kill(node=2, at_s=60))

    def test_a_run_is_stopped_on_request(self, pool, model):
        wanted = threading.Event()
        timer = threading.Timer(0.3, wanted.set)
        timer.start()
        with pytest.raises(RunStopped):
            serve(pool, model, requests(2, 100), stop=wanted.is_set)
        timer.join()
        run, prompts = serve(pool, model, requests(2))
        right(run, model, prompts, pool)

    def test_time_runs_out_in_a_sentence(self, pool, model):
        with pytest.raises(RunFailed, match="longer than the 1 s it may"):
            serve(pool, model, requests(2, 100), timeout_s=1.0)


class TestRefusals:
    """What is asked for wrongly is refused before any process starts."""

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"mode": "hope"}, UnknownName, "hope"),
            ({"prompts": []}, InputError, "prompts.*at least one request"),
            ({"prompts": [Prompt((), 3)]}, InputError, "at least one token"),
            ({"prompts": [Prompt((320,), 3)]}, InputError, "row 1.*below 320"),
            ({"prompts": [Prompt((1,), 0)]}, InputError, "output"),
            ({"prompts": [Prompt((1,) * 100, 29)]}, InputError, "has 129 tokens.*128"),
            ({"batch": 0}, InputError, "batch"),
            ({"batch": 84}, InputError, "batch.*83"),
            ({"scale": Scale(sigma=2.0)}, InputError, "scale.sigma.*is 2; give 1"),
            ({"fault": Kill(node=4, at_s=0)}, InputError, "fault.node.*4 nodes"),
            ({"fault": Flip(node=0, block=1)}, InputError, "block that node 0 receives"),
            ({"fault": Replace(2, 9, "x")}, InputError, "fault.block"),
            ({"timeout_s": -1}, InputError, "timeout_s"),
            ({"heartbeat_s": 0}, InputError, "heartbeat_s"),
        ],
    )
    def test_it_says_what_to_change(self, model, options, error, words):
        given = {"prompts": requests(1), "scale": Scale(), **options}
        with pytest.raises(error, match=words):
            serve_while_loading(ask(model), model, pace=Pace(PASS_S), **given)

    def test_a_model_that_is_cut_otherwise(self, model):
        asked = ask(model).model_copy(update={"blocks": 4})
        with pytest.raises(InputError, match="has 8 blocks; cut it into 4 x 1"):
            serve_while_loading(asked, model, requests(1), Pace(PASS_S), Scale())

    def test_sources_that_are_not_there(self, model):
        with pytest.raises(InputError, match="names 1 sources; name 2"):
            serve_while_loading(ask(model), model, requests(1), Pace(PASS_S), Scale(), held=(model,))
