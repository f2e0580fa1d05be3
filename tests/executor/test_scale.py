"""Scale models: σ and θ from ceilings, by hand-worked cases."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import UserError
from workbench.executor.ceilings import Ceilings, measure_ceilings
from workbench.executor.scale import LARGEST_THETA, OVERHEAD, SHORTEST_STEP_S, SUM_SHARE, Scale, choose_scale


def ceilings(processes=8, sum_bytes_per_s=2.5e9, lateness_s=0.0005):
    return Ceilings(
        processes=processes,
        block_bytes=1 << 22,
        raw_pair_bytes_per_s=3e9,
        gloo_pair_bytes_per_s=2.5e9,
        sum_bytes_per_s=sum_bytes_per_s,
        copy_bytes_per_s=1e10,
        lateness_s=lateness_s,
    )


def test_a_slow_small_run_needs_no_scaling():
    assert choose_scale(0.05, 1e6, 1e7, ceilings(), memory_bytes=1e9) == Scale()


def test_fast_links_shrink_bytes_until_the_machine_can_carry_them():
    """7 links of 50 GB/s against 0.4 x 2.5 GB/s: 350 times too fast."""
    scale = choose_scale(0.05, 1e9, 50e9, ceilings(), memory_bytes=1e12)
    assert scale == Scale(sigma=350.0, theta=1.0)
    assert scale.bytes_per_s(50e9) * 7 == pytest.approx(1e9)
    assert scale.bytes(1e9) / scale.bytes_per_s(50e9) == pytest.approx(1e9 / 50e9, rel=1e-6)


def test_memory_shrinks_bytes_too():
    """Eight copies of 26 GB in 2 GB: 104, rounded up to two digits."""
    assert choose_scale(0.05, 26e9, 1e7, ceilings(), memory_bytes=2e9).sigma == 110.0


def test_short_steps_stretch_time_to_20_ms():
    assert choose_scale(0.004, 1e6, 1e7, ceilings(), memory_bytes=1e9).theta == pytest.approx(5.0)


def test_an_unpunctual_machine_stretches_time_further():
    """2 ms late on average: a step must be 40 ms for 5 %."""
    assert choose_scale(0.02, 1e6, 1e7, ceilings(lateness_s=0.002), memory_bytes=1e9).theta == pytest.approx(2.0)


def test_more_than_a_hundredfold_is_refused_with_the_arithmetic():
    with pytest.raises(UserError, match=r"takes 0\.0001 s at full size and at least 0\.02 s .* stretched 200 times"):
        choose_scale(1e-4, 1e6, 1e7, ceilings())


@given(
    step_s=st.floats(1e-3, 1.0),
    bytes_per_s=st.floats(1e6, 1e12),
    message_bytes=st.floats(1e6, 1e12),
    lateness_s=st.floats(1e-5, 4e-3),
    processes=st.integers(2, 32),
)
def test_the_limits_hold_whatever_is_asked(step_s, bytes_per_s, message_bytes, lateness_s, processes):
    machine = ceilings(processes, lateness_s=lateness_s)
    scale = choose_scale(step_s, message_bytes, bytes_per_s, machine, memory_bytes=4e9)
    assert 1.0 <= scale.theta <= LARGEST_THETA
    assert scale.sigma >= 1.0
    assert scale.seconds(step_s) >= SHORTEST_STEP_S * (1 - 1e-9)
    assert lateness_s <= OVERHEAD * scale.seconds(step_s) * (1 + 1e-9)
    assert (processes - 1) * scale.bytes_per_s(bytes_per_s) <= SUM_SHARE * machine.sum_bytes_per_s * (1 + 1e-9)
    assert processes * scale.bytes(message_bytes) <= 4e9 + processes


def test_impossible_measurements_are_refused():
    with pytest.raises(UserError, match=r"processes'.*of 2 or more"):
        measure_ceilings(1)
    with pytest.raises(UserError, match=r"block_bytes'.*is 0"):
        measure_ceilings(2, block_bytes=0)


@pytest.mark.torch
@pytest.mark.real
@pytest.mark.quiet
def test_ceilings_of_this_machine(pool):
    """A library cannot beat the plain socket by much, nor a socket a plain copy."""
    found = measure_ceilings(2, block_bytes=1 << 20, total_bytes=1 << 24, pool=pool)
    assert (found.processes, found.block_bytes) == (2, 1 << 20)
    assert found.gloo_pair_bytes_per_s < 3 * found.raw_pair_bytes_per_s
    assert found.raw_pair_bytes_per_s < 3 * found.copy_bytes_per_s
    assert found.lateness_s > 0
