"""sweep from the command line: the same numbers as in Python, read the second time, one sentence for what is wrong."""

import socket

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import workbench as wb
from workbench.cli import main

GRID = ["--grid", "nodes=4,8", "--grid", "overhead_factor=0.5", "--workers", "1"]


def run(capsys, *arguments):
    code = main(["sweep", "lambdascale/block-count", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_it_gives_the_numbers_of_python_and_reads_them_again(capsys, tmp_path):
    kept, csv = tmp_path / "kept", tmp_path / "deep" / "summary.csv"
    code, out, err = run(capsys, *GRID, "--folder", kept, "--out", csv)
    assert (code, err.splitlines()) == (0, [f"{done} of 2 runs, 0 of them kept from before" for done in (0, 1, 2)])
    swept = wb.sweep("lambdascale/block-count", {"nodes": [4, 8], "overhead_factor": [0.5]}, folder=kept, workers=1)
    assert swept.kept == 2
    assert_frame_equal(pl.read_csv(csv).cast(swept.summary().schema), swept.summary())
    assert out.endswith(f"Summary: {csv}\n")
    code, again, err = run(capsys, *GRID, "--folder", kept)
    assert (code, err) == (0, "2 of 2 runs, 2 of them kept from before\n")
    assert out.startswith(again.rstrip())


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--grid", "nodes"], "--grid takes NAME=VALUE, got 'nodes'; for example --grid nodes=4,8."),
        (["--grid", "nodse=4"], "There is no parameter of lambdascale/block-count named 'nodse'; near names: nodes"),
        (["--grid", "nodes=4,many"], "parameter 'nodes' takes a number, got 'many'"),
        (["--grid", "nodes=4", "--set", "nodes=5"], "'nodes' is both in the grid and fixed; leave one out."),
    ],
)
def test_what_is_wrong_is_said_before_anything_runs(capsys, tmp_path, more, sentence):
    code, out, err = run(capsys, *more, "--folder", tmp_path / "kept")
    assert (code, out) == (2, "")
    assert sentence in err
    assert not (tmp_path / "kept").exists()


def test_a_scheduler_that_does_not_answer(capsys, monkeypatch):
    import distributed

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"  # bound, and nobody listens
        real = distributed.Client
        monkeypatch.setattr(distributed, "Client", lambda **given: real(**{**given, "timeout": "0.5s"}))
        code, _, err = run(capsys, *GRID, "--scheduler", address)
    assert code == 2
    assert f"No Dask scheduler answers at {address}" in err


def test_without_the_extra_it_says_how_to_add_it(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    code, _, err = run(capsys, *GRID, "--scheduler", "tcp://127.0.0.1:8786")
    assert (code, err) == (
        2,
        'workbench: --scheduler needs distributed, which is not installed: pip install "workbench-llm[cluster]".\n',
    )
