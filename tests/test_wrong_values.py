"""A value that no argument takes: every function of the face, and methods of what it returns, say so in a sentence.

Each argument is given numbers, texts, lists and tables that it cannot use. A call may find one of use; what it must not
do is to end in an error of another kind, which tells a reader nothing.
"""

import inspect
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import polars as pl
import pytest

import workbench as wb
from workbench.cli import main
from workbench.errors import UserError

WRONG = {
    "a number": -1.5,
    "no number": math.nan,
    "a text": "no\0such",
    "a list": [1, "a", None],
    "a table": {"a": 1},
    "an object": object(),
}
ENTRY = "lambdascale/block-count"
TRACE = pl.DataFrame({"arrival_s": [0.0, 1.0, 2.0], "prompt_tokens": [100] * 3, "output_tokens": [4] * 3})
WATCHED = {"progress": print, "stop": threading.Event()}


def serving():
    gpus = wb.cluster(hosts=1, accelerators=1, accelerator="a100-80gb-sxm", nic_bytes_per_s=25e9)
    return {"cluster": gpus, "models": "llama-3-8b", "trace": TRACE, "slo": wb.slo(ttft_s=1.0, tbt_s=0.1)}


@pytest.fixture(scope="module")
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def functions(tmp_path_factory, stack):
    """name -> function and arguments of a call that works, or that needs only the argument at fault."""
    given, entry = serving(), wb.experiment(ENTRY)
    run, result = wb.simulate("fixed", **given), entry.run("analytic")
    pooled = wb.simulate("dedicated", **given | {"slo": "aegaeon"})
    folder, system = tmp_path_factory.mktemp("written"), wb.system("lambdascale")
    threads = stack.enter_context(ThreadPoolExecutor(1))
    return {
        "accelerator": (wb.accelerator, {}), "model": (wb.model, {}), "cluster": (wb.cluster, {}),
        "load": (wb.load, {}),
        "trace": (wb.trace, {"name_or_path": TRACE}), "deployment": (wb.deployment, {}), "claims": (wb.claims, {}),
        "slo": (wb.slo, {"ttft_s": 1.0, "tbt_s": 0.1}), "findings": (wb.findings, {}), "browse": (wb.browse, {}),
        "experiment": (wb.experiment, {}), "exercise": (wb.exercise, {"id": "lambdascale/steps", "student": "Ada"}),
        "simulate": (wb.simulate, {"system": "fixed", **given}),
        "capacity": (wb.capacity, {"system": "fixed", **given}),
        "plan": (wb.plan, given),
        "compare": (wb.compare, {"run_a": run, "run_b": run}),
        "sweep": (wb.sweep, {"id": ENTRY, "grid": {"nodes": [4]}, "folder": folder, "executor": threads, **WATCHED}),
        "Experiment.run": (entry.run, {"backend": "analytic", "nodes": 4}),
        "Experiment.explore": (entry.explore, {"nodes": 4}),
        "Experiment.export_html": (entry.export_html, {"sliders": {"nodes": [4]}, "path": folder / "page.html"}),
        "Result.figure": (result.figure, {}), "Result.save": (result.save, {}),
        "Findings.counts": (wb.findings().counts, {}), "Findings.read": (wb.findings().read, {"verdict": "differs"}),
        "Run.metrics": (run.metrics, {}), "Run.token_times": (run.token_times, {}), "Run.save": (run.save, {}),
        "Run.chrome_trace": (run.chrome_trace, {}),
        "PooledRun.metrics": (pooled.metrics, {}), "PooledRun.token_times": (pooled.token_times, {}),
        "PooledRun.save": (pooled.save, {}), "PooledRun.chrome_trace": (pooled.chrome_trace, {}),
        "System.replaced": (system.replaced, dict.fromkeys(type(system).model_fields)),
    }  # fmt: skip


NAMES = (
    "accelerator", "model", "cluster", "load", "trace", "deployment", "claims", "slo", "findings", "browse",
    "experiment", "exercise", "simulate", "capacity", "plan", "compare", "sweep", "Experiment.run",
    "Experiment.explore", "Experiment.export_html", "Result.figure", "Result.save", "Findings.counts",
    "Findings.read", "Run.metrics", "Run.token_times", "Run.save", "Run.chrome_trace", "PooledRun.metrics",
    "PooledRun.token_times", "PooledRun.save", "PooledRun.chrome_trace", "System.replaced",
)  # fmt: skip


def error_of(function, given):
    """What a call ends in, None where it works."""
    try:
        function(**given)
    except Exception as error:
        return error


def arguments(function, base):
    """Names of all that a function takes."""
    taken = inspect.signature(function).parameters.values()
    return dict.fromkeys([*(one.name for one in taken if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)), *base])


@pytest.mark.parametrize("name", NAMES)
def test_what_an_argument_does_not_take_is_one_sentence(functions, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function, base = functions[name]
    if name == "System.replaced":
        base, names = {}, base
    else:
        names = arguments(function, base)
    refused = 0
    for argument in names:
        for kind, value in WRONG.items():
            if (error := error_of(function, {**base, argument: value})) is not None:
                refused += 1
                assert isinstance(error, UserError), (argument, kind, error)
                assert "\n" not in str(error), (argument, kind)
                assert len(str(error)) < 600, (argument, kind)
    assert refused >= len(names)


def test_every_function_of_the_face_is_tried(functions):
    takes_something = {name for name in wb.__all__ if inspect.signature(getattr(wb, name)).parameters}
    assert takes_something - {"system"} <= set(NAMES)  # that is `System.replaced`
    assert set(functions) == set(NAMES)


@pytest.mark.parametrize(
    "words",
    [
        ["show", "no\nsuch"],
        ["run", ENTRY, "--set", "nodes=nan"],
        ["run", ENTRY, "--seed", "-1"],
        ["run", ENTRY, "--backend", "nosuch"],
        ["sweep", ENTRY, "--grid", "nodes"],
        ["sweep", ENTRY, "--grid", "nodes=a,b"],
        ["simulate", "nosuch", "--trace", "nosuch", "--cluster", "dgx-h100", "--model", "llama-3-8b"],
        ["trace", "info", "nosuch"],
        ["plan", "--trace", "nosuch", "--cluster", "nosuch", "--model", "llama-3-8b", "--ttft", "1", "--tbt", "0.1"],
    ],
)
def test_the_command_line_ends_with_2(words, capsys):
    try:
        code = main(words)
    except SystemExit as ended:  # what argparse itself refuses
        code = ended.code
    assert code == 2
    assert "Traceback" not in capsys.readouterr().err
