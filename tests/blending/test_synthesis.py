"""Sources against their printed means and densities, mixes against what they were asked to be."""

import itertools

import numpy as np
import pytest
from blending_cases import llama_costs
from scipy.stats import norm

from workbench.blending.model.costs import costs_of
from workbench.blending.model.density import total_density
from workbench.blending.model.sources import Exponential, Lognormal, length_models, source_named
from workbench.blending.model.synthesis import mix
from workbench.blending.model.tree import sharing, tree_of
from workbench.errors import UnknownName, UserError
from workbench.profiles import accelerator, model

PRINTED = {
    # label: mean prompt, mean output as used, sharing ratio, density: Fig 2, appendix A.3, Table 4
    "wildchat-like": (496, 256, 0.19, 2.13),
    "sharegpt-like": (246, 322, 0.02, 3.12),
    "azure-like": (2508, 23, 0.01, 33.2),
    "burstgpt-like": (244, 27, 0.02, 17.78),
    "openvid-like": (121, 16_000, 0.00, 0.05),
    "mmlu-like": (804, 2, 0.86, 54.91),
    "limo-like": (109, 7617, 0.00, 0.14),
}


def moments(side):
    """First and second moment of a length, by summing over its distribution."""
    if isinstance(side, Lognormal):
        places = np.arange(side.least, side.most + 1)
        edges = norm.cdf((np.log(np.append(places, places[-1] + 1) - 0.5) - side.ln_mean) / side.ln_std)
        weight = np.diff(edges) / (edges[-1] - edges[0])
        return (places * weight).sum(), (places.astype(float) ** 2 * weight).sum()
    if isinstance(side, Exponential):
        places = (np.arange(400_000) + 0.5) / 400_000
        units = -np.log(1 - places * (1 - np.exp(-side.cut)))
        units *= side.mean / units.mean()
        return units.mean(), (units**2).mean()
    return side.tokens, side.tokens**2


@pytest.mark.parametrize("name", PRINTED)
def test_a_length_model_has_the_printed_means(name):
    source, (prompt, output, *_) = length_models()[name], PRINTED[name]
    assert moments(source.prompt)[0] + source.shared == pytest.approx(prompt, rel=0.002)
    assert moments(source.output)[0] == pytest.approx(output, rel=0.002)


@pytest.mark.parametrize("name", [name for name in PRINTED if name != "sharegpt-like"])
def test_a_length_model_has_the_printed_density_and_sharing(name):
    """(1 - s) (p + d) b over E[p d] + E[d^2] / 2, both lengths independent."""
    source, (_, _, shared, density) = length_models()[name], PRINTED[name]
    own, (output, square) = moments(source.prompt)[0], moments(source.output)
    prompt = own + source.shared
    ratio = source.shared / (prompt + output)
    ours = (1 - ratio) * (prompt + output) * llama_costs().balance / (prompt * output + square / 2)
    assert round(ratio, 2) == pytest.approx(shared, abs=0.0051)
    assert ours == pytest.approx(density, rel=0.05, abs=0.005)  # printed with two digits behind the point


@pytest.mark.parametrize("name", PRINTED)
def test_draws_have_the_density_too(name):
    source = length_models()[name]
    drawn = source.draw(400_000, np.random.default_rng(7))
    shared = source.shared / (drawn.own.mean() + source.shared + drawn.output.mean())
    ours = total_density(drawn.own + source.shared, drawn.output, llama_costs(), shared)
    assert ours == pytest.approx(PRINTED[name][3], rel=0.08)


def test_order_of_densities():
    """MMLU > Azure > BurstGPT > ShareGPT > WildChat > 1 > LIMO > OpenVid, as printed."""
    names = ["mmlu-like", "azure-like", "burstgpt-like", "sharegpt-like", "wildchat-like", "limo-like", "openvid-like"]
    found = []
    for name in names:
        source = length_models()[name]
        drawn = source.draw(100_000, np.random.default_rng(3))
        shared = source.shared / (drawn.own.mean() + source.shared + drawn.output.mean())
        found.append(total_density(drawn.own + source.shared, drawn.output, llama_costs(), shared))
    assert found == sorted(found, reverse=True)
    assert found[4] > 1 > found[5]


GRID = list(itertools.product([0.8 + 0.05 * k for k in range(13)], [0.05, 0.15, 0.25, 0.35, 0.45]))


@pytest.mark.parametrize(("density", "ratio"), GRID, ids=lambda value: f"{value:.2f}")
def test_the_generator_hits_every_point_of_the_grid(density, ratio):
    found = mix("burstgpt-like", density, ratio, 40_000, llama_costs(), np.random.default_rng(11))
    pool, tree = found.pool, tree_of(found.pool)
    ours = sharing(pool, tree)
    assert total_density(pool.prompt, pool.output, llama_costs(), ours) == pytest.approx(density, rel=0.01)
    assert ours == pytest.approx(ratio, abs=0.005)
    assert (found.density, found.sharing) == (pytest.approx(density, rel=0.01), pytest.approx(ours, abs=1e-12))
    assert pool.size == sum(found.counts.values()) == 40_000


@pytest.mark.parametrize("requests", [20_000, 400_000, 1_000_000])
def test_the_generator_at_other_sizes(requests):
    found = mix("burstgpt-like", 0.9, 0.35, requests, llama_costs(), np.random.default_rng(1))
    assert found.pool.size == requests
    assert found.density == pytest.approx(0.9, rel=0.01)
    assert found.sharing == pytest.approx(0.35, abs=0.005)
    assert found.scale == pytest.approx(1.0, abs=2000 / requests)


@pytest.mark.parametrize(
    ("main", "density", "ratio"), [("azure-like", 1.2, 0.25), ("sharegpt-like", 1.4, 0.05), ("wildchat-like", 1.6, 0.4)]
)
def test_other_compute_sources(main, density, ratio):
    found = mix(main, density, ratio, 40_000, llama_costs(), np.random.default_rng(1))
    assert found.density == pytest.approx(density, rel=0.01)
    assert found.sharing == pytest.approx(ratio, abs=0.005)


@pytest.mark.parametrize("name", ["qwen2.5-7b", "llama-2-7b"])
def test_another_model_gets_another_mix(name):
    costs = costs_of(model(name), accelerator("a100-80gb-sxm"))
    found = mix("burstgpt-like", 1.4, 0.35, 40_000, costs, np.random.default_rng(1))
    same = mix("burstgpt-like", 1.4, 0.35, 40_000, llama_costs(), np.random.default_rng(1))
    assert found.density == pytest.approx(1.4, rel=0.01)
    assert found.counts["OpenVid"] / same.counts["OpenVid"] == pytest.approx(
        costs.balance / llama_costs().balance, rel=0.5
    )


def test_a_mix_without_a_sharer():
    found = mix("burstgpt-like", 1.0, None, 40_000, llama_costs(), np.random.default_rng(1))
    assert found.counts["MMLU"] == 0
    assert found.density == pytest.approx(1.0, rel=0.01)
    none = mix("burstgpt-like", 1.0, None, 40_000, llama_costs(), np.random.default_rng(1), main_shared=0)
    assert none.sharing < 1e-3 < found.sharing


@pytest.mark.parametrize("times", [0.3, 1.0, 2.0])
def test_outputs_of_another_spread_have_the_same_mean(times):
    source = length_models()["burstgpt-like"]
    usual, other = source.output, source.spread(times).output
    assert moments(other)[0] == pytest.approx(moments(usual)[0], rel=1e-9)
    assert other.mean == pytest.approx(moments(other)[0])
    assert np.expm1(other.ln_std**2) == pytest.approx(times**2 * np.expm1(usual.ln_std**2))
    assert other.status == "user"


def test_a_mix_of_changed_sources():
    """Ten prefixes of 1,400 tokens in place of 57; an eighth of the length reads about a 64th, so many more videos."""
    models = length_models()
    sharer, heavy = models["mmlu-like"].grouped(10).sharing(1400), models["openvid-like"].lasting(2000)
    usual = mix("burstgpt-like", 1.0, 0.35, 20_000, llama_costs(), np.random.default_rng(1))
    found = mix("burstgpt-like", 1.0, 0.35, 20_000, llama_costs(), np.random.default_rng(1), sharer=sharer, heavy=heavy)
    assert found.density == pytest.approx(1.0, rel=0.01)
    assert found.sharing == pytest.approx(0.35, abs=0.005)
    tree = tree_of(found.pool)
    assert (tree.tokens[tree.request < 0] == 1400).sum() == 10
    videos = found.pool.output[found.pool.source == 2]
    assert videos.mean() == pytest.approx(2000, rel=0.1)
    assert found.counts["OpenVid"] > 20 * usual.counts["OpenVid"]


def test_a_mix_lies_between_its_sources():
    with pytest.raises(UserError, match="choose values between theirs"):
        mix("wildchat-like", 5.0, 0.2, 20_000, llama_costs(), np.random.default_rng(1))
    with pytest.raises(UserError, match="choose values between theirs"):
        mix("wildchat-like", 1.0, 0.05, 20_000, llama_costs(), np.random.default_rng(1))
    for wrong in (np.nan, -0.1, 1.5):
        with pytest.raises(UserError, match="'sharing': is"):
            mix("burstgpt-like", 1.4, wrong, 20_000, llama_costs(), np.random.default_rng(1))
    with pytest.raises(UserError, match="'main_shared': is -1"):
        mix("burstgpt-like", 1.4, 0.35, 20_000, llama_costs(), np.random.default_rng(1), main_shared=-1)


def test_a_real_trace_keeps_its_name_and_is_never_replaced(shared_data):
    found = source_named("azure-code-2023")
    assert found.traces == ("azure-code-2023",)
    assert found.prompt_tokens.mean() == pytest.approx(2047.85, abs=0.01)
    with pytest.raises(UserError, match="burstgpt-1"):
        source_named("burstgpt-1")


def test_an_unknown_source_lists_near_ones():
    with pytest.raises(UnknownName, match="burstgpt-like"):
        source_named("burstgpd-like")
