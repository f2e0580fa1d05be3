"""How long a reader waits: import, first figure, and from a moved slider to new figure data.

Prints medians; nothing here fails for being slow but by a wide margin, since machines differ.
"""

import statistics
import subprocess
import sys
import time

import pytest

from workbench.catalogue import spec
from workbench.explore.explorer import Explorer

IDS = [id for id, entry in spec.all_specs().items() if entry.seconds.get(entry.backends[0], 9) < 0.5]


def seconds_of(code: str, **environment: str) -> float:
    import os

    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
    return time.perf_counter() - start


def test_import(capsys):
    empty = statistics.median(seconds_of("pass") for _ in range(5))
    full = statistics.median(seconds_of("import workbench") for _ in range(5))
    with capsys.disabled():
        print(f"\nimport workbench: {full - empty:.3f} s (budget 0.3)")


@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_first_figure_in_a_new_process(capsys, tmp_path, cache):
    code = "import workbench as wb; wb.experiment('theory/schedule').explore()"
    if cache == "warm":
        seconds_of(code, WORKBENCH_CACHE=str(tmp_path))
    taken = seconds_of(code, WORKBENCH_CACHE=str(tmp_path))
    with capsys.disabled():
        budget = 8 if cache == "cold" else 3
        print(f"\nfirst explorer, {cache} cache, process start included: {taken:.2f} s (budget {budget})")


@pytest.mark.parametrize("id", IDS)
def test_slider_to_new_figure_data(capsys, id):
    explorer = Explorer(spec.find(id), {})
    sliders = [
        control.widget.children[0]
        for control in explorer.controls.values()
        if control.parameter.kind in (int, float) and not control.parameter.many
    ]
    if not sliders:
        pytest.skip("no slider")
    slider = sliders[0]
    taken = []
    for _ in range(12):
        new = slider.value + slider.step if slider.value + slider.step <= slider.max else slider.min
        start = time.perf_counter()
        slider.value = new
        taken.append(time.perf_counter() - start)
    with capsys.disabled():
        print(f"\n{id}: {statistics.median(taken[2:]) * 1e3:.0f} ms from slider to figure data (budget 50)")
