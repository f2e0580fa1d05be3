"""Loading through tiers: by hand, and formula against a simulated pipeline."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.caching.model import Tier, load_seconds
from workbench.caching.simulated import simulate_loading
from workbench.errors import InputError


def test_blitzscale_from_ssd():
    """OSDI'25 §1: 16 GB at 10 Gbit/s take 12.8 s."""
    assert load_seconds(16e9, [Tier("SSD", 1.25e9)]) == pytest.approx(12.8)


def test_overlap_hides_the_faster_leg():
    """8 GB in chunks of 1 GB: 1 s a chunk from SSD, the last one 0.25 s more over PCIe."""
    way = [Tier("SSD", 1e9), Tier("PCIe", 4e9)]
    assert load_seconds(8e9, way, 1e9) == 8.25
    assert load_seconds(8e9, way) == 10.0
    assert load_seconds(8e9, way, 1e12) == 10.0


@given(st.integers(1, 60), st.lists(st.floats(0.1, 10), min_size=1, max_size=4))
def test_formula_and_simulated_pipeline_agree_for_whole_chunks(chunks, rates):
    tiers = [Tier(f"leg {place}", rate * 1e9) for place, rate in enumerate(rates)]
    formula = load_seconds(chunks * 1e8, tiers, 1e8)
    assert simulate_loading(chunks * 1e8, tiers, 1e8) == pytest.approx(formula, rel=1e-9)


@given(st.floats(1e8, 1e10), st.floats(1e7, 1e9), st.lists(st.floats(0.1, 10), min_size=1, max_size=3))
def test_a_smaller_last_chunk_is_off_by_less_than_a_chunk(size, chunk, rates):
    """The formula moves the rest at the pace of the slowest leg; the pipeline also waits for its own way through."""
    tiers = [Tier(f"leg {place}", rate * 1e9) for place, rate in enumerate(rates)]
    simulated = simulate_loading(size, tiers, chunk)
    assert load_seconds(size, tiers, chunk) == pytest.approx(simulated, abs=2 * chunk / min(rates) / 1e9)


def test_what_makes_no_sense_is_refused():
    for call in (
        lambda: load_seconds(0, [Tier("SSD", 1e9)]),
        lambda: load_seconds(1e9, []),
        lambda: load_seconds(1e9, [Tier("SSD", -1.0)]),
        lambda: load_seconds(1e9, [Tier("SSD", 1e9)], 0.0),
    ):
        with pytest.raises(InputError):
            call()
