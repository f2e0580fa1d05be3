"""Scale-outs in steps and seconds: the notes' golden values, and what must hold for any."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.errors import InputError
from workbench.profiles import model
from workbench.scaling.model import (
    ScaleOut,
    Speed,
    Switching,
    faster_to_recompute,
    lanes,
    move_s,
    paying_overhead_s,
    recompute_s,
    scale_out,
    tokens_gained,
    tokens_made,
    tokens_per_s,
    warm_start,
)

LINK = {"bytes_per_s": 42e9, "alpha_s": 6.28e-3}
SECONDS = [  # notes on λScale §2.10, 12 nodes: model, sources, first pipeline, everything loaded
    ("llama-2-7b", 1, 0.474, 0.500),
    ("llama-2-7b", 2, 0.237, 0.474),
    ("llama-2-7b", 4, 0.132, 0.448),
    ("llama-2-13b", 1, 0.81, 0.86),
    ("llama-2-13b", 2, 0.41, 0.81),
    ("llama-2-13b", 4, 0.23, 0.77),
]


@pytest.mark.parametrize(("name", "sources", "first_s", "loaded_s"), SECONDS)
def test_seconds_to_the_first_pipeline_and_to_the_last_node(name, sources, first_s, loaded_s):
    size = model(name).weight_bytes
    found = scale_out(ScaleOut(sources=sources, targets=12 - sources, weight_bytes=size, **LINK))
    digits = 3 if name == "llama-2-7b" else 2
    assert float(found.forms_s.min()) == pytest.approx(first_s, abs=0.6 * 10**-digits)
    assert float(found.complete_s.max()) == pytest.approx(loaded_s, abs=0.6 * 10**-digits)


@pytest.mark.parametrize(("nodes", "sources", "joint"), [(8, 1, 16), (8, 2, 8), (12, 3, 6), (12, 4, 4), (32, 8, 2)])
def test_the_joint_copy_is_there_after_blocks_over_sources(nodes, sources, joint):
    """Notes §2.5, in transfer blocks: 16 blocks over k; also with two transfer blocks to an execution block."""
    size = {"sources": sources, "targets": nodes - sources, "weight_bytes": 16.0, "bytes_per_s": 1.0}
    for variant in ("paper", "artifact"):
        assert scale_out(ScaleOut(blocks=16, parts=1, variant=variant, **size)).joint_steps == joint
    naive = scale_out(ScaleOut(blocks=16, parts=1, reorder=False, **size))
    assert naive.joint_steps == 16


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 5), st.integers(1, 14), st.integers(1, 9), st.integers(1, 2), st.sampled_from(["paper", "artifact"])
)
def test_what_holds_for_every_scale_out(sources, targets, blocks, parts, variant):
    asked = ScaleOut(
        sources=sources, targets=targets, blocks=blocks, parts=parts, variant=variant, weight_bytes=1.0, bytes_per_s=1.0
    )
    found = scale_out(asked)
    assert found.sending == min(sources, targets)
    assert (found.complete_s > 0).all()
    first = -(-blocks * parts // found.sending)
    assert found.joint_steps >= first
    piped = np.isfinite(found.forms_s)
    assert (found.forms_s[piped] >= found.joint_steps * asked.step_s - 1e-12).all()
    assert ((found.pipeline_of >= 0) == piped).all()
    if variant == "artifact" and targets >= blocks:
        assert found.pipelines[0].in_flight <= blocks


def test_more_sources_than_targets_are_idle():
    size = {"targets": 2, "weight_bytes": 16.0, "bytes_per_s": 1.0}
    many, two = (scale_out(ScaleOut(sources=k, **size)) for k in (7, 2))
    assert many.sending == 2
    assert many.complete_s.tolist() == two.complete_s.tolist()
    assert many.forms_s.tolist() == two.forms_s.tolist()


def formed(sources=2):
    return scale_out(
        ScaleOut(sources=sources, targets=12 - sources, weight_bytes=model("llama-2-7b").weight_bytes, **LINK)
    )


def test_the_plateau_is_one_step_with_one_source_and_half_of_the_time_with_two():
    """Notes §2.7: in a pipeline 4 tokens take τ1 + b c, alone τ1; §2.6: formation at 9 and 10 of 18 steps."""
    speed, found = Speed(token_s=0.014, overhead_s=0.002), formed()
    step = found.asked.step_s
    rates = tokens_per_s(lanes(found, speed), np.array([8.5, 9.5, 10.5, 17.5, 18.5]) * step)
    assert rates == pytest.approx([0, 8 * 4 / 0.030, 10 * 4 / 0.030, 10 * 4 / 0.030, 10 * 4 / 0.014])
    one = formed(1)
    early = [bool(k) for k in (one.forms_s < one.complete_s.max())]
    assert sum(early) == 8
    assert one.complete_s.max() - one.forms_s.min() == pytest.approx(step)


@pytest.mark.parametrize("switch", ["each", "whole"])
@pytest.mark.parametrize("sources", [1, 2, 4])
@pytest.mark.parametrize("resume_s", [0.0, 0.03])
def test_the_area_between_the_staircases_is_the_gain(switch, sources, resume_s):
    speed, found = Speed(token_s=0.014, overhead_s=0.003, resume_s=resume_s), formed(sources)
    late = np.array([10.0])
    early, waiting = (float(tokens_made(lanes(found, speed, switch, early=e), late)[0]) for e in (True, False))
    assert tokens_gained(found, speed, switch) == pytest.approx(early - waiting, abs=1e-6)
    limit = paying_overhead_s(found, speed, switch)
    if 0 < limit < np.inf:
        at = [tokens_gained(found, speed.model_copy(update={"overhead_s": x * limit}), switch) for x in (0.99, 1.01)]
        assert at[0] > 0 > at[1]


def test_without_loss_early_serving_always_pays():
    """Each node leaves when it is complete, resuming costs nothing: nothing is lost whatever a stage costs."""
    assert paying_overhead_s(formed(), Speed(token_s=0.014), "each") == np.inf
    assert tokens_gained(formed(), Speed(token_s=0.014, overhead_s=5.0), "each") > 0


BLOCKS_7B = [1_881_210_880] + [1_619_066_880] * 6 + [1_881_219_072]


def test_the_logged_warm_start():
    """Notes §2.9: 2 nodes, 8 blocks of Llama-2-7B, 0.0617 and 0.0716 s a block; joint at 0.257 s, all at 0.51 s."""
    found = warm_start(2, BLOCKS_7B, 26.2e9)
    assert found.joint_s == pytest.approx(0.257, abs=0.001)
    assert found.complete_s == pytest.approx(0.5145, abs=0.003)
    assert found.joint_s / found.complete_s.max() == pytest.approx(0.5, abs=0.05)
    assert [one.forms for one in found.pipelines] == [found.joint_s]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 8, 16])
def test_a_joint_copy_after_one_over_the_nodes(nodes):
    found = warm_start(nodes, [1.0] * 16, 1.0)
    assert found.joint_s == -(-16 // nodes)
    assert found.complete_s.tolist() == [16.0] * nodes


def test_switching_by_hand():
    """7B at 100 TFLOP/s: 0.13476 ms a token; 524,288 B of KV, 7/8 of it over 42 GB/s, 7 messages of 1 ms."""
    node = Switching(
        parameters=6.738e9, flops_per_s=100e12, least_s=0.014, kv_bytes=524_288, nodes=8, bytes_per_s=42e9, alpha_s=1e-3
    )
    assert recompute_s(node, [10, 1000]) == pytest.approx([0.014, 0.13476])
    assert move_s(node, 1000) == pytest.approx([0.007 + 0.010923], rel=1e-4)
    low, high = faster_to_recompute(node)
    assert (low, high) == (
        pytest.approx(0.007 / 1.0923e-5, rel=1e-4),
        pytest.approx(0.007 / (1.3476e-4 - 1.0923e-5), rel=1e-4),
    )


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ScaleOut(sources=0, targets=1, weight_bytes=1.0, bytes_per_s=1.0), "sources"),
        (lambda: ScaleOut(sources=1, targets=1, weight_bytes=-1.0, bytes_per_s=1.0), "weight_bytes"),
        (lambda: ScaleOut(sources=1, targets=1, weight_bytes=1.0, bytes_per_s=1.0, variant="mine"), "variant"),
        (lambda: Speed(token_s=0.0), "token_s"),
        (lambda: warm_start(0, [1.0], 1.0), "nodes"),
        (lambda: warm_start(1, [], 1.0), "block_bytes"),
        (lambda: warm_start(1, [1.0], 0.0), "bytes_per_s"),
        (
            lambda: recompute_s(Switching(parameters=1, flops_per_s=1, kv_bytes=1, nodes=1, bytes_per_s=1), [-1]),
            "tokens",
        ),
    ],
)
def test_bad_input_is_one_sentence_that_names_the_field(make, words):
    with pytest.raises(InputError, match=words) as caught:
        make()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)
