"""Aegaeon's coefficients and BlitzScale's rates, against the numbers of the notes on both papers."""

import pytest

from workbench.errors import UserError
from workbench.latency import OutsideBox, step_time
from workbench.latency.calibration.profile import RESERVED
from workbench.latency.sources import FROM_PROFILES, PUBLISHED
from workbench.profiles import deployment, model


def test_aegaeon_by_hand():
    """Notes on Aegaeon §2.5, Llama-2-13B on H800: 6.85, 0.04516, 0.14e-6 and 12.56, 0.190e-3, 0.153 (ms)."""
    step = step_time("llama-2-13b", "h800", source="aegaeon")
    assert step.prefill_s(1000) == pytest.approx(6.85e-3 + 45.16e-3 + 0.14e-9 * 1000**2)
    assert step.prefill_s(2000, requests=2) == pytest.approx(6.85e-3 + 2 * 45.16e-3 + 0.14e-9 * 2 * 1000**2)
    assert step.decode_s(4, 2000) == pytest.approx(12.56e-3 + 0.190e-6 * 2000 + 4 * 0.153e-3)
    assert step.status == "fitted"
    assert "Aegaeon §2.5" in step.source


@pytest.mark.parametrize(("tokens", "seconds"), [(1024, 48.5e-3), (2048, 101.2e-3)])
def test_aegaeon_spot_values_of_the_artifact(tokens, seconds):
    step = step_time("llama-2-13b", "h800", source="aegaeon")
    assert step.prefill_s(tokens) == pytest.approx(seconds, rel=0.1)
    assert step.decode_s(1, 512) == pytest.approx(13.4e-3, rel=0.1)


def test_negative_coefficients_count_as_nothing_and_the_bound_holds():
    noisy = step_time("yi-1.5-6b", "h800", source="aegaeon")
    assert noisy.prefill_s(1000) == pytest.approx(35.04e-3)
    assert "noisy" in noisy.source
    falling = step_time("yi-1.5-9b", "h20", source="aegaeon")
    assert falling.decode_s(2, 4000) == falling.decode_s(2, 400) == pytest.approx(13.89e-3 + 2 * 0.218e-3)
    for found in (noisy.prefill([16, 4096]), falling.decode([1, 8], [16, 4096])):
        assert (found.seconds >= found.bound_s).all()


def test_aegaeon_warns_outside_what_was_profiled():
    step = step_time("qwen2.5-7b", "a100", source="aegaeon")
    with pytest.warns(OutsideBox, match="1 of 2 steps lie outside what aegaeon for qwen2.5-7b on a100-80gb-sxm was"):
        assert step.prefill([4096, 9000]).outside.tolist() == [False, True]
    with pytest.warns(OutsideBox, match="batch 1 to 200"):
        assert step.decode_s(300, 300) > step.decode_s(200, 300)


def test_aegaeon_covers_the_pairs_of_its_artifact_only():
    pairs = {
        "h800": ("qwen2.5-7b", "yi-1.5-6b", "yi-1.5-9b", "llama-2-13b", "qwen1.5-14b"),
        "h100": ("qwen2.5-7b", "yi-1.5-9b", "llama-2-13b"),
        "a100": ("qwen2.5-7b", "yi-1.5-9b", "llama-2-13b"),
        "h20": ("qwen2.5-7b", "yi-1.5-9b", "llama-2-13b"),
        "a10": ("yi-1.5-6b", "qwen2.5-7b", "llama-2-7b"),
    }
    for device, names in pairs.items():
        for name in names:
            assert step_time(name, device, source="aegaeon").decode_s(1, 100) > 0
    with pytest.raises(UserError, match=r"no profile of llama-3-8b on h100-80gb-sxm; it has qwen2\.5-7b on h800"):
        step_time("llama-3-8b", "h100", source="aegaeon")
    with pytest.raises(UserError, match="not of TP 2 in bf16"):
        step_time("qwen2.5-7b", "h100", deployment(tp=2), source="aegaeon")


@pytest.mark.parametrize(
    ("name", "tp", "time_l"),
    [("llama-2-7b", 1, 6.7), ("llama-3-8b", 1, 8.4), ("mistral-small-24b-2501", 2, 10.7), ("qwen2.5-72b", 4, 7.4)],
)
def test_blitzscale_layer_load_over_layer_compute(name, tp, time_l):
    """Notes on BlitzScale §4: Time_l at 2,000 tokens and 100 Gbit/s per accelerator."""
    shape = model(name)
    step = step_time(shape, "a800", deployment(tp=tp), source="blitzscale")
    layer_load_s = shape.layer_bytes / tp / 12.5e9
    assert layer_load_s / (step.prefill_s(2000) / shape.layers) == pytest.approx(time_l, abs=0.06)


def test_blitzscale_decodes_at_memory_bandwidth():
    step = step_time("llama-3-8b", "a100", source="blitzscale")
    weights = 2 * (8_030_261_248 - 128_256 * 4096)
    assert step.decode_s(10, 20_000) == pytest.approx(weights / 1494e9 + 20_000 * 131_072 / 1504e9, rel=1e-3)
    assert "no decode rate was published" in step.source


@pytest.mark.parametrize(("name", "device", "tp"), [("llama-3-8b", "h100", 1), ("llama-3-8b", "a100", 2)])
def test_blitzscale_covers_its_configurations_only(name, device, tp):
    with pytest.raises(UserError, match=f"BlitzScale gives no rate for {name} at TP {tp} on {device}"):
        step_time(name, device, deployment(tp=tp), source="blitzscale")


def test_no_profile_may_take_the_name_of_a_source():
    assert set(RESERVED) == {*FROM_PROFILES, *PUBLISHED}
