"""A stand-in can be fitted to the user's own trace."""

import numpy as np
import polars as pl
import pytest

from workbench.errors import UserError
from workbench.workloads import (
    Calendar,
    Modulated,
    Pauses,
    Poisson,
    StandIn,
    Swing,
    fit,
    fixed_lengths,
    generate,
    trace,
)
from workbench.workloads.fitting import pauses_of, quantile_table
from workbench.workloads.statistics.likeness import arrival_measures, distance

LENGTHS = fixed_lengths(100, 10)


def test_a_bursty_trace_is_fitted():
    process = Modulated(
        rate_per_s=3.0,
        gap_shape=0.6,
        swings=(Swing(cv=0.5, memory_s=4.0),),
        pauses=Pauses(on_mean_s=15, on_cv=0.6, off_least_s=5, off_mean_s=30, off_cv=1),
    )
    given = generate(process, LENGTHS, duration_s=2000, seed=5, name="mine")
    recipe = fit(given)
    assert recipe.name == "mine-like"
    assert recipe.arrivals.pauses is not None
    drawn = [recipe.trace(seed) for seed in range(3)]
    for made in drawn:
        assert made.origin.stand_in
        assert distance(arrival_measures(made.requests["arrival_s"].to_numpy()), recipe.targets) < 0.2
    assert not drawn[0].requests.equals(drawn[1].requests)


def test_a_poisson_trace_stays_calm():
    recipe = fit(generate(Poisson(rate_per_s=4.0), LENGTHS, duration_s=1500, seed=6))
    assert recipe.arrivals.pauses is None
    assert recipe.arrivals.gap_shape == pytest.approx(1.0, rel=0.35)
    assert sum(swing.cv**2 for swing in recipe.arrivals.swings) < 0.1


def test_the_same_trace_gives_the_same_recipe():
    given = generate(Poisson(rate_per_s=2.0), LENGTHS, duration_s=600, seed=7)
    assert fit(given) == fit(given)


def test_a_recipe_can_be_kept():
    recipe = fit(trace("azure-code-2024-window-like", seed=3))
    assert StandIn(**recipe.model_dump()) == recipe


def test_lengths_and_reuse_are_measured():
    given = trace("mooncake-synthetic-like", seed=1)
    made = fit(given).trace(seed=2)
    for side in ("prompt", "output"):
        ours, theirs = getattr(made.statistics, side), getattr(given.statistics, side)
        assert ours.p50 == pytest.approx(theirs.p50, rel=0.05)
        assert ours.mean == pytest.approx(theirs.mean, rel=0.05)
    assert made.statistics.prefixes.ideal_hit_share == pytest.approx(
        given.statistics.prefixes.ideal_hit_share, abs=0.01
    )
    assert made.statistics.length_rank_correlation == pytest.approx(given.statistics.length_rank_correlation, abs=0.05)


def test_a_long_trace_is_fitted_on_its_most_representative_hour():
    weights = (*(1.0,) * 12, *(3.0,) * 12)
    given = generate(Calendar(per_day=(40_000.0,), hour_weights=weights), LENGTHS, duration_s=86_400, seed=8)
    recipe = fit(given)
    assert recipe.duration_s < 3600
    assert "cut" in recipe.basis


def test_pauses_by_hand():
    """Ten bursts of 33 arrivals within 1 s, 60 s apart from start to start: a pause is 32 mean gaps."""
    times_s = np.concatenate([60.0 * k + np.linspace(0, 1, 33) for k in range(10)])
    found = pauses_of(times_s)
    assert (found.on_mean_s, found.off_mean_s) == (1.0, 59.0)
    assert pauses_of(np.arange(1000.0)) is None


def test_the_quantile_table_takes_zero_for_one():
    table = quantile_table(np.array([0, 0, 5, 9]))
    assert table.tokens[0] == 1
    assert table.tokens[-1] == 9


def test_traces_that_cannot_be_fitted():
    with pytest.raises(UserError, match="needs 50"):
        fit(generate(Poisson(rate_per_s=1.0), LENGTHS, requests=20))
    no_times = trace(pl.DataFrame({"num_prefill_tokens": [1] * 60, "num_decode_tokens": [1] * 60}))
    with pytest.raises(UserError, match="needs 50"):
        fit(no_times)
