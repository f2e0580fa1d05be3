"""Deployments, objectives, and whether a model fits."""

import pytest

from workbench.errors import InputError, UnknownName, UserError
from workbench.profiles import accelerator, check_fits, deployment, model, slo


def test_a_deployment_and_its_refusals():
    one = deployment(tp=4, dtype="bf16", prefill=(1, 7), decode=(1, 7))
    assert (one.tp, one.prefill, one.colocated) == (4, (1, 7), False)
    for wrong, message in (
        ({"tp": 0}, "field 'tp'"),
        ({"tp": 2.0}, "field 'tp'"),
        ({"dtype": "bf61"}, "field 'dtype': is the number format 'bf61'"),
        ({"prefill": (7, 1)}, r"field 'prefill': is \(7, 1\), more at least than at most"),
        ({"decode": (1,)}, "field 'decode"),
        ({"decode": (-1, 2)}, "field 'decode"),
        ({"colocated": "yes"}, "field 'colocated'"),
    ):
        with pytest.raises(InputError, match=message) as caught:
            deployment(**wrong)
        assert "\n" not in str(caught.value)


def test_fitting_shows_the_arithmetic():
    big, h100 = model("qwen2.5-72b"), accelerator("h100")
    with pytest.raises(UserError, match=r"145.41 GB of weights / TP 1 = 145.41 GB each, but 0.9 x 80.00 GB = 72.00 GB"):
        check_fits(big, h100)
    fit = check_fits(big, h100, deployment(tp=4))
    assert fit.weight_bytes == big.weight_bytes / 4
    # 4 x (72 GB - 36.35 GB) / 327,680 bytes per token.
    assert fit.kv_tokens == int(4 * (72e9 - 145.412407296e9 / 4) / 327_680)
    # An eight-bit cache of the same weights: 163,840 bytes per token.
    thin = check_fits(big, h100, deployment(tp=4, kv_dtype="fp8"))
    assert (thin.weight_bytes, thin.kv_tokens) == (fit.weight_bytes, int(4 * (72e9 - 145.412407296e9 / 4) / 163_840))
    # BlitzScale trap 18: 30,000 blocks of 64 tokens of the 8B model would be 252 GB, more than the card has.
    assert check_fits(model("llama-3-8b"), accelerator("a800")).kv_tokens < 30_000 * 64
    assert check_fits(big, accelerator("h200"), deployment(dtype="fp8")).weight_bytes == big.weight_bytes / 2


def test_a_model_that_does_not_fit_is_told_the_smallest_tp_that_holds_it():
    """70B has 8 KV heads: of 40 GB, 36 usable, TP 4 (35.3 GB) holds it; of 16 GB, 14.4 usable, even TP 8 does not."""
    with pytest.raises(UserError, match="choose TP 4, a smaller"):
        check_fits(model("llama-3.1-70b"), accelerator("a100-40gb"))
    with pytest.raises(UserError, match="choose a smaller number format or another accelerator"):
        check_fits(model("llama-3.1-70b"), accelerator("v100-16gb"))


def test_tensor_parallelism_that_does_not_divide_the_heads():
    with pytest.raises(UserError, match=r"qwen2.5-7b has 4 KV heads, which TP 7 does not divide \(4 = 0 x 7 \+ 4\)"):
        check_fits(model("qwen2.5-7b"), accelerator("h100"), deployment(tp=7))
    with pytest.raises(UserError, match="28 attention heads, which TP 8 does not divide"):
        check_fits(model("qwen2.5-7b"), accelerator("h100"), deployment(tp=8))
    # Latent attention has no KV heads to divide, and keeps the whole cache everywhere.
    fit = check_fits(model("deepseek-v3"), accelerator("h200"), deployment(tp=8))
    assert fit.kv_tokens == int((0.9 * 141e9 - 671e9 / 8) // 70_272)


def test_usable_fraction_is_checked():
    with pytest.raises(UserError, match="usable_fraction is 2"):
        check_fits(model("llama-2-7b"), accelerator("h100"), usable_fraction=2)


def test_objectives_of_the_papers():
    # BlitzScale §3: 450/150 ms and 1250/200 ms; Aegaeon §7.1: 10 s and 100 ms, down to 2 s and 20 ms.
    assert [float(slo("blitzscale-8b").ttft_s), float(slo("blitzscale-8b").tbt_s)] == [0.45, 0.15]
    assert [float(slo("blitzscale-72b").ttft_s), float(slo("blitzscale-72b").tbt_s)] == [1.25, 0.2]
    strict = slo("aegaeon").scaled(0.2)
    assert [float(strict.ttft_s), float(strict.tbt_s)] == pytest.approx([2, 0.02])
    assert strict.definition == "qos-artifact"
    assert "0.2 x 10 s" in strict.ttft_s.source
    own = slo("aegaeon", ttft_s=5, definition="token")
    assert (float(own.ttft_s), own.ttft_s.status, float(own.tbt_s), own.definition) == (5, "user", 0.1, "token")
    assert slo(ttft_s=1.25, tbt_s=0.2).definition == "request"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"preset": "aegeon"}, "near names: aegaeon"),
        ({"ttft_s": 1}, "field 'tbt_s': is missing"),
        ({"ttft_s": -1, "tbt_s": 1}, "field 'ttft_s': is -1"),
        ({"ttft_s": "soon", "tbt_s": 1}, "'soon', not a number"),
        ({"ttft_s": 1, "tbt_s": 1, "definition": "tokens"}, "near names: token"),
    ],
)
def test_bad_objectives(arguments, message):
    with pytest.raises((InputError, UnknownName), match=message):
        slo(**arguments)
    with pytest.raises(InputError, match="factor above 0"):
        slo("aegaeon").scaled(0)
