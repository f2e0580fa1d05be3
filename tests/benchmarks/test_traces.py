"""Prints how long real traces take to load; run with `pytest -s tests/benchmarks` where `WORKBENCH_DATA` is set."""

import time
from statistics import median

import pytest

from workbench.workloads import trace


@pytest.mark.parametrize("name", ["azure-conv-2023", "mooncake-conversation"])
def test_loading(shared_data, name):
    """Budget: 100 ms for the 19,366 rows of the Azure conversation hour."""
    seconds = []
    for _ in range(4):
        start_s = time.perf_counter()
        found = trace(name)
        seconds.append(time.perf_counter() - start_s)
    print(f"\n{name}: {len(found):,} rows, first {seconds[0] * 1e3:.0f} ms, then {median(seconds[1:]) * 1e3:.0f} ms")
    assert name != "azure-conv-2023" or median(seconds[1:]) <= 0.1
