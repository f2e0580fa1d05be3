"""Generated arrivals and lengths have the properties their formulas promise."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson, spearmanr

from workbench.errors import UserError
from workbench.workloads import (
    Calendar,
    Counted,
    Fixed,
    GammaRenewal,
    Hump,
    Kind,
    Kinds,
    Lognormals,
    MarkovModulated,
    Modulated,
    Pair,
    Pauses,
    PiecewisePoisson,
    Poisson,
    Quantiles,
    SharedPrefixes,
    Swing,
    fixed_lengths,
    generate,
    lengths_of,
    market,
    on_off,
    trace,
    zipf_rates,
)
from workbench.workloads.generators.streams import stream
from workbench.workloads.statistics.arrivals import arrival_statistics, window_counts

LENGTHS = fixed_lengths(512, 128)
PROCESSES = [
    Poisson(rate_per_s=2.0),
    Poisson(rate_per_s=0.5, at_most_nominal=True),
    GammaRenewal(rate_per_s=2.0, shape=0.3),
    GammaRenewal(rate_per_s=2.0, shape=5.0),
    on_off(4.0, 5.0, 5.0),
    MarkovModulated(rates_per_s=(1.0, 5.0, 0.0), stays_s=(10.0, 3.0, 10.0), gap_shape=0.5),
    PiecewisePoisson(lengths_s=(10.0, 5.0), rates_per_s=(0.0, 6.0)),
    Calendar(per_day=(86400.0, 172800.0), hour_weights=(1.0,) * 24),
    Modulated(rate_per_s=2.0, swings=(Swing(cv=0.5, memory_s=5.0),)),
    Modulated(rate_per_s=2.0, gap_shape=0.5, pauses=Pauses(on_mean_s=5, on_cv=0.5, off_mean_s=9, off_cv=1)),
]


@pytest.mark.parametrize("process", PROCESSES, ids=lambda process: process.kind)
@given(duration_s=st.floats(0.5, 400), seed=st.integers(0, 1000))
@settings(max_examples=15, deadline=None)
def test_times_are_sorted_and_inside(process, duration_s, seed):
    times_s = process.times(duration_s, stream(seed, "arrivals"))
    assert np.all(np.diff(times_s) >= 0)
    assert np.all((times_s >= 0) & (times_s < duration_s * (1 + 1e-12)))
    assert np.array_equal(times_s, process.times(duration_s, stream(seed, "arrivals")))


@pytest.mark.parametrize("process", [entry for entry in PROCESSES if entry.kind != "calendar"], ids=lambda p: p.kind)
def test_the_long_run_rate(process):
    times_s = process.times(40_000.0, stream(1, "arrivals"))
    assert times_s.size / 40_000.0 == pytest.approx(process.mean_rate_per_s, rel=0.06)


@pytest.mark.parametrize("shape", [0.2, 0.5, 1.0, 4.0])
def test_gamma_gaps(shape):
    """CV^2 of the gaps is 1 / shape."""
    found = arrival_statistics(GammaRenewal(rate_per_s=3.0, shape=shape).times(40_000.0, stream(2, "arrivals")))
    assert found.gap_cv == pytest.approx(shape**-0.5, rel=0.03)


def test_a_renewal_process_starts_in_its_stride():
    """The first arrival of a stationary process comes after E[gap^2] / (2 E[gap]), not after E[gap]."""
    process = GammaRenewal(rate_per_s=1.0, shape=0.25)
    firsts = [process.times(200.0, stream(0, "arrivals", k))[0] for k in range(3000)]
    assert np.mean(firsts) == pytest.approx((1 + 4) / 2, rel=0.1)


def test_on_off_dispersion():
    """A two-state process: variance of the rate = p (1 - p) r^2, its correlation decays with 1/on + 1/off."""
    on_s, off_s, rate, width = 5.0, 20.0, 10.0, 1.0
    counts = window_counts(on_off(rate, on_s, off_s).times(200_000.0, stream(3, "arrivals")), width)
    share, decay = on_s / (on_s + off_s), 1 / on_s + 1 / off_s
    spread = share * (1 - share) * rate**2
    variance = share * rate * width + 2 * spread / decay**2 * (decay * width - 1 + np.exp(-decay * width))
    assert counts.var() / counts.mean() == pytest.approx(variance / (share * rate * width), rel=0.04)


def test_swings_have_their_cv_and_memory():
    process = Modulated(rate_per_s=200.0, swings=(Swing(cv=0.4, memory_s=20.0),))
    counts = window_counts(process.times(20_000.0, stream(4, "arrivals")), 1.0).astype(float)
    noise = counts.mean()
    assert np.sqrt(counts.var() - noise) / counts.mean() == pytest.approx(0.4, rel=0.1)
    centred = counts - counts.mean()
    correlation = np.mean(centred[:-20] * centred[20:]) / (counts.var() - noise)
    expected = np.expm1(np.log1p(0.4**2) * np.exp(-1)) / 0.4**2
    assert correlation == pytest.approx(expected, abs=0.06)


def test_aegaeons_generator_stops_early():
    """At most int(rate x duration) arrivals: the expectation is that of min(N, n), N Poisson with mean n."""
    counts = [
        Poisson(rate_per_s=0.1, at_most_nominal=True).times(60.0, stream(5, "arrivals", k)).size for k in range(4000)
    ]
    at = np.arange(100)
    assert max(counts) == 6
    assert np.mean(counts) == pytest.approx(float(np.minimum(at, 6) @ poisson.pmf(at, 6)), rel=0.02)


def test_piecewise_counts():
    process = PiecewisePoisson(lengths_s=(100.0, 100.0), rates_per_s=(0.0, 8.0))
    counts = window_counts(np.append(0.0, process.times(1000.0, stream(6, "arrivals"))), 100.0)
    assert counts[0] == 1
    assert counts[2] == counts[4] == 0
    assert counts[1] == pytest.approx(800, abs=120)


def test_counted_arrivals():
    process = Counted(counts=(5, 0, 3), window_s=10.0, span_s=27.0, gap_shape=0.3)
    times_s = process.times(27.0, stream(7, "arrivals"))
    assert np.bincount((times_s // 10).astype(int), minlength=3).tolist() == [5, 0, 3]
    assert (times_s[0], times_s[-1]) == (0.0, pytest.approx(27.0))
    with pytest.raises(UserError, match="span_s"):
        Counted(counts=(5, 0, 3), window_s=10.0, span_s=9.0, gap_shape=0.3)


def test_streams_do_not_disturb_each_other():
    """Other lengths leave the arrivals as they were, and the other way round."""
    process = Poisson(rate_per_s=1.0)
    free = Pair(prompt=Fixed(tokens=1), output=Lognormals(humps=(Hump(ln_mean=3, ln_std=1),)))
    first = generate(process, LENGTHS, duration_s=100, seed=8).requests
    other = generate(process, free, duration_s=100, seed=8).requests
    assert first["arrival_s"].equals(other["arrival_s"])
    later = generate(Poisson(rate_per_s=1.5), free, requests=other.height, seed=8).requests
    assert later["output_tokens"].equals(other["output_tokens"])


def test_a_seed_sequence_is_a_seed():
    root = np.random.SeedSequence(9)
    made = [generate(Poisson(rate_per_s=1), LENGTHS, duration_s=50, seed=seed) for seed in (9, root, root.spawn(1)[0])]
    assert made[0].requests.equals(made[1].requests)
    assert not made[0].requests.equals(made[2].requests)


def test_as_many_requests_as_asked_for():
    made = generate(on_off(2.0, 3.0, 60.0), LENGTHS, requests=500, seed=1)
    assert len(made) == 500
    assert made.requests["arrival_s"][0] == 0


def test_truncated_lognormals():
    side = Lognormals(humps=(Hump(weight=3, ln_mean=4, ln_std=1), Hump(ln_mean=7, ln_std=0.1)), least=20, most=1500)
    drawn = side.draw(20_000, stream(10, "lengths"))
    assert drawn.min() >= 20
    assert drawn.max() <= 1500
    assert np.mean(drawn > 700) == pytest.approx(0.27, abs=0.03)
    with pytest.raises(UserError, match="Hardly any"):
        Lognormals(humps=(Hump(ln_mean=20, ln_std=0.01),), most=10).draw(5, stream(0, "lengths"))


@given(st.integers(200, 3000), st.integers(0, 100))
@settings(deadline=None, max_examples=20)
def test_quantile_tables_are_met(count, seed):
    side = Quantiles(shares=(0, 0.5, 0.9, 1.0), tokens=(1, 100, 1000, 5000))
    drawn = side.draw(count, stream(seed, "lengths"))
    assert np.quantile(drawn, [0.5, 0.9]) == pytest.approx([100, 1000], rel=0.1)
    assert drawn.min() >= 1
    assert drawn.max() <= 5000


@pytest.mark.parametrize("wanted", [-0.5, 0.0, 0.7])
def test_rank_correlation_of_pairs(wanted):
    sides = {
        "prompt": Quantiles(shares=(0, 1), tokens=(1, 10_000)),
        "output": Quantiles(shares=(0, 1), tokens=(5, 900)),
    }
    drawn = Pair(**sides, rank_correlation=wanted).draw(20_000, stream(11, "lengths"))
    assert spearmanr(drawn.prompt_tokens, drawn.output_tokens).statistic == pytest.approx(wanted, abs=0.03)


def test_kinds_keep_their_lengths_and_models():
    kinds = Kinds(
        kinds=(
            Kind(weight=3, model="a", prompt=Fixed(tokens=10), output=Fixed(tokens=1)),
            Kind(weight=1, model="b", prompt=Fixed(tokens=20), output=Fixed(tokens=2)),
        )
    )
    requests = generate(Poisson(rate_per_s=100), kinds, duration_s=100).requests
    shares = requests.group_by("model", "prompt_tokens", "output_tokens").len().sort("model")
    assert shares.select("model", "prompt_tokens", "output_tokens").rows() == [("a", 10, 1), ("b", 20, 2)]
    assert shares["len"][0] / requests.height == pytest.approx(0.75, abs=0.02)


def test_lengths_of_a_trace():
    given_trace = trace(pl.DataFrame({"t": [0, 1, 2], "prompt": [1, 2, 3], "output": [10, 20, 30]}))
    joint = lengths_of(given_trace).draw(500, stream(0, "lengths"))
    assert np.array_equal(joint.output_tokens, 10 * joint.prompt_tokens)
    apart = lengths_of(given_trace, joint=False).draw(500, stream(0, "lengths"))
    assert not np.array_equal(apart.output_tokens, 10 * apart.prompt_tokens)
    assert set(apart.output_tokens) == {10, 20, 30}


@given(st.floats(0, 0.9), st.integers(1, 300), st.sampled_from([16, 512]), st.integers(0, 50))
@settings(deadline=None, max_examples=25)
def test_prefixes_meet_their_hit_share(share, count, block_tokens, seed):
    prompts = stream(seed, "lengths").integers(1, 9000, count)
    lists = SharedPrefixes(block_tokens=block_tokens, hit_share=share).draw(prompts, stream(seed, "prefixes"))
    blocks = -(-prompts // block_tokens)
    assert lists.list.len().to_list() == blocks.tolist()
    hits = 1 - lists.explode().n_unique() / blocks.sum()
    assert hits <= share + 1 / blocks.sum() + 1e-12
    parents: dict[int, tuple] = {}
    for ids in lists.to_list():
        for place, entry in enumerate(ids):
            assert parents.setdefault(entry, tuple(ids[:place])) == tuple(ids[:place])


def test_prefixes_reach_their_hit_share():
    prompts = np.full(2000, 8192)
    lists = SharedPrefixes(block_tokens=512, hit_share=0.4).draw(prompts, stream(0, "prefixes"))
    assert 1 - lists.explode().n_unique() / 32_000 == pytest.approx(0.4, abs=0.01)


def test_zipf_rates():
    rates = zipf_rates(100, 3.7, exponent=1.0)
    assert sum(rates.values()) == pytest.approx(3.7)
    assert rates["model-001"] / rates["model-010"] == pytest.approx(10)
    assert set(zipf_rates(4, 2.0, exponent=0).values()) == {0.5}


def test_a_market_of_models():
    made = market(zipf_rates(50, 20.0), LENGTHS, duration_s=1000, seed=2)
    counts = dict(made.requests["model"].value_counts().rows())
    assert len(made) == pytest.approx(20_000, rel=0.03)
    assert counts["model-001"] / counts["model-002"] == pytest.approx(2, rel=0.1)
    assert made.requests["arrival_s"].is_sorted()


def test_another_model_changes_nothing_for_the_others():
    rates = {"a": 1.0, "b": GammaRenewal(rate_per_s=2.0, shape=0.5)}
    fewer, more = (market(entry, LENGTHS, duration_s=200, seed=3) for entry in (rates, rates | {"c": 5.0}))

    def of_a(made):
        chosen = made.requests.filter(pl.col("model") == "a")["arrival_s"] + made.origin.start_s
        return chosen.to_numpy()

    assert of_a(fewer) == pytest.approx(of_a(more), abs=1e-9)


@pytest.mark.parametrize(
    ("build", "part"),
    [
        (lambda: GammaRenewal(rate_per_s=1, shape=0), "GammaRenewal.shape': is 0"),
        (lambda: MarkovModulated(rates_per_s=(1, 2), stays_s=(1, 2, 3)), "equally long"),
        (lambda: MarkovModulated(rates_per_s=(0, 0), stays_s=(1, 2)), "all be zero"),
        (lambda: PiecewisePoisson(lengths_s=(1,), rates_per_s=(0,)), "all be zero"),
        (lambda: Pauses(on_mean_s=1, on_cv=1, off_least_s=5, off_mean_s=4, off_cv=1), "off_mean_s"),
        (lambda: Quantiles(shares=(0, 0.5), tokens=(1, 2)), "from 0 to 1"),
        (lambda: Quantiles(shares=(0, 1), tokens=(2, 1)), "descend"),
        (lambda: Lognormals(humps=(Hump(ln_mean=1, ln_std=1),), least=9, most=3), "least"),
        (lambda: Poisson(rate=3), "Poisson.rate': is not a known field"),
        (lambda: Poisson(), "Poisson.rate_per_s': is missing"),
        (lambda: market({}, LENGTHS, duration_s=5), "at least one model"),
        (lambda: zipf_rates(0, 1.0), "'models': is 0; give a whole number"),
        (lambda: generate(Poisson(rate_per_s=1), LENGTHS, requests=0), "'requests': is 0; give a whole number"),
        (
            lambda: generate(Poisson(rate_per_s=1), LENGTHS, duration_s=-1),
            "'duration_s': is -1; give a finite number above 0",
        ),
    ],
)
def test_parameters_that_cannot_be(build, part):
    with pytest.raises(UserError, match=part):
        build()
