"""How long a reader waits: import, first figure, and from a moved slider to new figure data.

Prints medians beside their budgets. Machines differ and may be busy, so only what misses its budget by `MARGIN` fails.
"""

import math
import os
import statistics
import subprocess
import sys
import time

import ipywidgets as w
import pytest

from workbench.catalogue import spec
from workbench.explore.explorer import Explorer

MARGIN = 5
IDS = [id for id, entry in spec.all_specs().items() if entry.seconds.get(entry.backends[0], 9) < 0.5]


def seconds_of(code: str, **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
    return time.perf_counter() - start


def report(capsys, what: str, seconds: float, budget_s: float) -> None:
    """Print a measured time beside its budget, and fail by a wide margin only."""
    with capsys.disabled():
        print(f"\n{what}: {seconds:.3g} s (budget {budget_s:g})")
    assert seconds < MARGIN * budget_s, f"{what} took {seconds:.3g} s, more than {MARGIN} times its budget"


def one_step_on(slider):
    """The slider's next value, or its first one at the end; ends and step of a logarithmic slider are exponents."""
    logarithmic = isinstance(slider, w.FloatLogSlider)
    place = (math.log(slider.value, slider.base) if logarithmic else slider.value) + slider.step
    place = place if place <= slider.max else slider.min
    return slider.base**place if logarithmic else place


def test_import(capsys):
    empty = statistics.median(seconds_of("pass") for _ in range(5))
    full = statistics.median(seconds_of("import workbench") for _ in range(5))
    report(capsys, "import workbench", full - empty, 0.3)


@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_first_figure_in_a_new_process(capsys, tmp_path, cache):
    code = "import workbench as wb; wb.experiment('theory/schedule').explore()"
    if cache == "warm":
        seconds_of(code, NUMBA_CACHE_DIR=str(tmp_path))
    taken = seconds_of(code, NUMBA_CACHE_DIR=str(tmp_path))
    report(capsys, f"first explorer, {cache} cache, process start included", taken, 8 if cache == "cold" else 3)


@pytest.mark.parametrize("id", IDS)
def test_slider_to_new_figure_data(capsys, id):
    explorer = Explorer(spec.find(id), {})
    explorer.wait()  # a live backend is compiled, once; then it answers at every move too
    sliders = [control.slider for control in explorer.controls.values() if control.slider]
    if not sliders:
        pytest.skip("no slider")
    slider = sliders[0]
    taken = []
    for _ in range(12):
        before = slider.value
        start = time.perf_counter()
        slider.value = one_step_on(slider)
        taken.append(time.perf_counter() - start)
        assert slider.value != before
    budget_s = 0.2 if spec.find(id).live else 0.05
    report(capsys, f"{id}, from slider to figure data", statistics.median(taken[2:]), budget_s)
