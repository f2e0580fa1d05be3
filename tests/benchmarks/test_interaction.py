"""How long a reader waits: import, first figure, and from a moved slider to new figure data.

Medians beside their budgets. Machines differ and may be busy, so only what misses its budget by a wide margin fails.
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
from workbench.catalogue.aegaeon import pools
from workbench.catalogue.blendserve import jobs
from workbench.explore.explorer import Explorer

SEEDS = [id for id, entry in spec.all_specs().items() if entry.stochastic and "compiled" in entry.backends]
KEPT = (jobs.made, jobs.planned, jobs._served, pools._market_trace, pools._market_models)
IDS = [id for id, entry in spec.all_specs().items() if entry.seconds.get(entry.backends[0], 9) < 0.5]


def seconds_of(code: str, **environment: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **environment})
    return time.perf_counter() - start


def one_step_on(slider):
    """The slider's next value, or its first one at the end; ends and step of a logarithmic slider are exponents."""
    logarithmic = isinstance(slider, w.FloatLogSlider)
    place = (math.log(slider.value, slider.base) if logarithmic else slider.value) + slider.step
    place = place if place <= slider.max else slider.min
    return slider.base**place if logarithmic else place


def test_import(budget):
    empty = statistics.median(seconds_of("pass") for _ in range(5))
    full = statistics.median(seconds_of("import workbench") for _ in range(5))
    budget("import", full - empty)


@pytest.mark.parametrize("cache", ["cold", "warm"])
def test_first_figure_in_a_new_process(budget, tmp_path, cache):
    """From `python -c` to its end. Warm is a second start: machine code and Python's own bytecode lie on the disk."""
    code = "import workbench as wb; wb.experiment('theory/schedule').explore()"
    kept = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    if cache == "warm":
        kept |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
        seconds_of(code, **kept)
    taken = seconds_of(code, **kept)
    budget(
        "first figure" if cache == "warm" else "first figure, cold", taken, "theory/schedule, process start included"
    )


def test_first_compiled_answer_in_a_new_process(budget, tmp_path):
    """The largest of what explorers compile at a first move: a trace replayed by the serving loop."""
    code = "import workbench as wb; wb.experiment('serving/replay').run('compiled')"
    budget("first compiled", seconds_of(code, NUMBA_CACHE_DIR=str(tmp_path)), "serving/replay, process start included")


@pytest.mark.parametrize("id", IDS)
def test_slider_to_new_figure_data(budget, id):
    explorer = Explorer(spec.find(id), {})
    explorer.wait()  # a live backend is compiled, once; then it answers at every move too
    sliders = [control.slider for control in explorer.controls.values() if control.slider]
    if not sliders:
        pytest.skip("no slider")
    slider = sliders[0]
    taken, drawn, draw = [], [], explorer._draw
    explorer._draw = lambda outcome, how: (draw(outcome, how), drawn.append(time.perf_counter()))
    for _ in range(12):
        before = slider.value
        start = time.perf_counter()
        slider.value = one_step_on(slider)  # the figure first, then what is said beneath it
        taken.append(drawn[-1] - start)
        assert slider.value != before
    budget("slider, compiled" if spec.find(id).live else "slider", statistics.median(taken[2:]), id)


@pytest.mark.parametrize("id", SEEDS)
def test_first_picture_of_one_seed(budget, id):
    """From the button of the compiled engine to the first figure with its answer, once all is compiled.

    What was drawn and run before is forgotten: a reader presses once.
    """
    explorer = Explorer(spec.find(id), {})
    explorer.wait()  # a live backend answers already
    if "compiled" not in explorer.buttons:
        pytest.skip("no button")
    shown, show = [], explorer._show
    explorer._show = lambda outcome, draw: (show(outcome, draw), shown.append(time.perf_counter()))
    for _ in range(2):
        shown.clear()
        for kept in KEPT:
            kept.cache_clear()
        start = time.perf_counter()
        explorer.buttons["compiled"].click()
        while not shown and explorer._background.busy:
            time.sleep(0.01)
        explorer.stop()
        explorer.wait()
    budget("seed", shown[0] - start, id)
