"""The same executors on a GPU: right within 1e-5 of the CPU, loaded beside computing, served while loading.

Skipped where torch finds no GPU. Run with `-s` to read the rates beside the GPU's own ceilings; no speed is asserted.
"""

import numpy as np
import pytest

from workbench.executor.processes import Pool
from workbench.executor.scale import Scale
from workbench.executor.transformer import (
    KvCache,
    Shape,
    Stage,
    compare,
    forward,
    greedy,
    keeps_bits,
    make_weights,
    teacher_forced,
    unpack,
    write_model,
)
from workbench.profiles.measure_gpu import gpu_count, host_copy
from workbench.scaling.model import ScaleOut
from workbench.scaling.real import Pace, Prompt, check_outputs, serve_while_loading

pytestmark = [pytest.mark.torch, pytest.mark.real]
SHAPE = Shape(layers=8, hidden=256, heads=8, kv_heads=4, ffn=688, vocabulary=512, longest=256)
GPU = "cuda"


@pytest.fixture(scope="module", autouse=True)
def gpu():
    if not gpu_count():
        pytest.skip("torch finds no GPU here")


@pytest.fixture(scope="module")
def weights():
    return make_weights(SHAPE, 7, 0, SHAPE.layers)


@pytest.fixture(scope="module")
def prompts():
    random = np.random.default_rng(1)
    return [random.integers(0, SHAPE.vocabulary, length).tolist() for length in (9, 30, 64)]


def loaded(weights, device, arithmetic="invariant"):
    stage = Stage(SHAPE, arithmetic, device)
    stage.load(weights, "v1")
    return stage


@pytest.mark.parametrize("arithmetic", ["invariant", "plain"])
def test_it_computes_what_the_cpu_computes(weights, prompts, arithmetic):
    reference = greedy([loaded(weights, "cpu")], prompts, 24)
    stage = loaded(weights, GPU, arithmetic)
    found = [teacher_forced([stage], prompt, right.tokens) for prompt, right in zip(prompts, reference, strict=True)]
    identity = compare(reference, found, same_order=False)
    print(f"{arithmetic}: largest difference {identity.difference:.2g}; keeps bits of rows: {keeps_bits(SHAPE, GPU)}")
    assert identity.holds, identity.fault


def test_a_wrong_weight_is_found_there_too(weights, prompts):
    reference = greedy([loaded(weights, "cpu")], prompts, 24)
    stage = loaded(weights, GPU)
    stage.weight("model.layers.5.self_attn.q_proj.weight")[3, 7] += 0.1
    found = [teacher_forced([stage], prompt, right.tokens) for prompt, right in zip(prompts, reference, strict=True)]
    assert "logits differ" in compare(reference, found, same_order=False).fault


def test_layers_run_while_the_next_ones_are_copied(weights, prompts):
    """Every layer is loaded just before it runs, and once more after it was freed: each waits for its own copy."""
    import torch

    right = forward([loaded(weights, GPU)], [prompts[1]], [KvCache(SHAPE, device=GPU)])[0]
    for _ in range(3):
        stage, cache = Stage(SHAPE, device=GPU), KvCache(SHAPE, device=GPU)
        pinned = {name: torch.from_numpy(values).pin_memory().numpy() for name, values in weights.items()}
        with torch.inference_mode():
            hidden = []
            for layer in range(SHAPE.layers):
                stage.load({name: pinned[name] for name in SHAPE.tensors(layer, 1)}, "v1")
                hidden = stage.run(layer, 1, hidden or stage.embed([prompts[1]]), [cache])
                stage.free(layer, 1)
        assert torch.allclose(hidden[0], right, rtol=1e-5, atol=1e-5)


def test_a_cache_leaves_the_gpu_and_comes_back(weights, prompts):
    import torch

    stage, cache = loaded(weights, GPU), KvCache(SHAPE, device=GPU)
    with torch.inference_mode():
        forward([stage], [prompts[0]], [cache])
        part = cache.export(0, SHAPE.layers)
        expected = forward([stage], [[5]], [cache])[0]
        again = KvCache(SHAPE, device=GPU)
        again.insert(part)
        assert torch.equal(forward([stage], [[5]], [again])[0], expected)


def test_nodes_serve_on_a_gpu_while_they_load(tmp_path):
    """Pinned blocks are copied as they arrive; pipelines, the switch and the tokens as on a CPU."""
    model = write_model(tmp_path, SHAPE, 3, 8, "v1")
    asked = ScaleOut(
        sources=2, targets=2, parts=1, variant="paper", weight_bytes=model.bytes, bytes_per_s=model.bytes / 8 / 0.05
    )
    random = np.random.default_rng(0)
    prompts = [Prompt(tuple(random.integers(0, SHAPE.vocabulary, 16).tolist()), 20) for _ in range(8)]
    with Pool(4) as pool:
        run = serve_while_loading(asked, model, prompts, Pace(0.02), Scale(), device=GPU, pool=pool)
        identity = check_outputs(run, model, prompts, pool, device=GPU)
    print(f"difference {identity.difference:.2g}, first token {run.first_token_s:.3f} s, overhead {run.overhead:.1%}")
    assert identity.holds
    assert (run.requests["moves"] == 1).all()


def test_blocks_are_copied_at_a_rate_to_lay_beside_the_ceiling(tmp_path):
    """Blocks of 64 MiB and pieces of 1 MiB from pinned memory through the loader, beside plain pinned copies."""
    import torch

    device = torch.device(GPU)
    shape = Shape(layers=4, hidden=2048, heads=16, kv_heads=16, ffn=5504, vocabulary=512)
    model = write_model(tmp_path, shape, 0, 4, "v1")
    blocks = [torch.from_numpy(np.fromfile(block.path, dtype=np.uint8)).pin_memory().numpy() for block in model.blocks]
    stage = Stage(shape, device=GPU)
    begun, ended = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begun.record()
    for number, block in enumerate(blocks):
        stage.load(unpack(block, f"block {number}").tensors, "v1")
    for name in shape.tensors(0, 4):
        stage.weight(name)  # the computing stream waits for every copy
    ended.record()
    torch.cuda.synchronize()
    print(f"loader: {model.bytes / begun.elapsed_time(ended) / 1e6:.1f} GB/s")
    for size in (1 << 16, 1 << 20, 1 << 24, 1 << 28):
        for pinned in (True, False):
            row = host_copy([device], size, pinned, 0.5, "copy")
            print(f"{'pinned' if pinned else 'pageable'} {size >> 10} KiB: {row.median / 1e9:.1f} GB/s")
    assert stage.layers() == [0, 1, 2, 3]
