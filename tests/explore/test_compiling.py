"""Explorers say what is compiled, once, with the formula drawn already; then live backends follow the slider."""

import threading

import pytest
from numba.core import config

from workbench import jit
from workbench.catalogue import running, spec
from workbench.explore import explorer as module
from workbench.explore.compiling import compiling
from workbench.explore.explorer import Explorer


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    """Two kernels that share an inner one."""
    monkeypatch.setattr(config, "CACHE_DIR", str(tmp_path))

    def kernels_of(scope):
        source = (
            "@inner_kernel\ndef leaf(x):\n    return x + 1.0\n\n"
            "@inner_kernel\ndef middle(x):\n    return leaf(x) * 2.0\n\n"
            "@kernel\ndef first(x):\n    return middle(x) + leaf(x)\n\n"
            "@kernel\ndef second(x):\n    return leaf(x)\n"
        )
        path = tmp_path / "kernels_under_test.py"
        path.write_text(source)
        exec(compile(source, str(path), "exec"), scope)
        return scope

    return kernels_of({"inner_kernel": jit.inner_kernel, "kernel": jit.kernel, "__name__": "kernels_under_test"})


def test_what_is_compiled_is_counted_as_it_turns_out_to_be_needed(kernels):
    """The first kernel brings three functions, the second one only itself: its part is there already."""
    told = []
    with compiling(told.append):
        assert kernels["first"](1.0) == 6.0
        assert kernels["second"](1.0) == 2.0
        assert kernels["second"](2.0) == 3.0
    assert told == [f"compiling, once ({k} of {n})" for k, n in ((1, 3), (2, 3), (3, 3), (4, 4))]


def test_nothing_is_said_where_nothing_is_compiled(kernels):
    kernels["second"](1.0)
    told = []
    with compiling(told.append):
        kernels["second"](2.0)
    assert told == []
    kernels["first"](1.0)  # compiles, after the count has ended
    assert told == []


def test_the_formula_is_drawn_while_the_live_backend_is_compiled(monkeypatch):
    """On a cold cache: the curve is there, the status says what is compiled, and then the replay joins."""
    monkeypatch.setattr(module, "_WARM", set())
    real, compiled, go_on = running.run, threading.Event(), threading.Event()

    def slow(entry, values, *, backends, **options):
        if "compiled" in backends and options.get("progress"):
            options["progress"]("compiling, once (3 of 9)")
            compiled.set()
            assert go_on.wait(60)
        return real(entry, values, backends=backends, **options)

    monkeypatch.setattr(running, "run", slow)
    explorer = Explorer(spec.find("serving/replay"), {"trace": "azure-code-2023-like"})
    assert compiled.wait(60)
    assert {trace.name for trace in explorer._figure.data} == {"TTFT, alone (formula)", "TPOT, alone (formula)"}
    assert "compiling, once (3 of 9)" in explorer._status.value
    assert list(explorer.buttons) == ["simpy"]
    go_on.set()
    explorer.wait(120)
    assert explorer._message.value == ""
    assert len(explorer._figure.data) == 4
    assert "keep both promises for" in explorer._below.value

    explorer.controls["instances"].value.value = 9  # from now on both answer at once
    assert not explorer._background.busy
    assert len(explorer._figure.data) == 4
    assert "9 instances keep both promises for" in explorer._below.value
    assert explorer._instant() == ("analytic", "compiled")


def test_a_first_run_that_is_stopped_begins_again_with_the_next_move(monkeypatch):
    monkeypatch.setattr(module, "_WARM", set())
    real, begun = running.run, []

    def watched(entry, values, *, backends, stop=None, **options):
        if "compiled" in backends:
            begun.append(values["instances"])
            stop.wait(60)
        return real(entry, values, backends=backends, stop=stop, **options)

    monkeypatch.setattr(running, "run", watched)
    explorer = Explorer(spec.find("serving/replay"), {"trace": "azure-code-2023-like"})
    explorer._stop_button.click()
    explorer.wait(60)
    assert "Stopped" in explorer._status.value
    explorer.controls["instances"].value.value = 2
    assert explorer._background.busy
    explorer.stop()
    explorer.wait(60)
    assert begun == [4, 2]
    assert not module._WARM
