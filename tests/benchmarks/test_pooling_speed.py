"""Prints how fast pools run; run with `pytest -s tests/benchmarks`."""

import pytest
from timing import median_s

from workbench.pooling import market_models, market_trace, pooled, pooling_on
from workbench.pooling.simulated import simulate


@pytest.mark.parametrize("system", ["aegaeon", "serverlessllm@aegaeon", "serverlessllm-plus", "muxserve"])
def test_64_models_for_two_minutes(system):
    """Budget: 0.5 s warm for a compiled point of 64 models, 0.1 requests per s each, 120 s."""
    trace, models, pooling = market_trace(64, 0.1, 120.0), market_models(64), pooling_on(system=system)
    seconds = median_s(lambda: pooled(pooling, models, trace))
    slow = median_s(lambda: pooled(pooling, models, trace, backend=simulate), repeats=1)
    print(f"\n{system}: {len(trace)} requests compiled {seconds * 1e3:.0f} ms, in SimPy {slow:.2f} s")
    assert seconds <= 0.5


def test_admission_by_look_ahead():
    """No budget: every arrival runs what was admitted to its end."""
    trace, models = market_trace(48, 0.1, 60.0, generator="poisson"), market_models(48)
    pooling = pooling_on(prefill=3, decode=5, nodes=1, admission="look-ahead")
    seconds = median_s(lambda: pooled(pooling, models, trace), repeats=3)
    print(f"\nlook-ahead: {len(trace)} arrivals in {seconds:.2f} s, {seconds / len(trace) * 1e3:.1f} ms each")
