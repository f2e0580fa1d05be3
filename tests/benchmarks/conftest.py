"""Each benchmark gives its budgets what it measured; `--budgets FILE` writes them all as one table at the end."""

import datetime
import math
import os
import platform
from pathlib import Path

import pytest
from budgets import BUDGETS, ends_of, table_of, text_of

MEASURED = pytest.StashKey[dict]()
LOAD = pytest.StashKey[float]()


def pytest_addoption(parser):
    parser.addoption("--budgets", metavar="FILE", help="write the table of all budgets to this file")


def pytest_configure(config):
    config.stash[MEASURED] = {}
    config.stash[LOAD] = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan


@pytest.fixture
def budget(request, capsys):
    """A function of a key of `BUDGETS`, a measurement and what it is of: notes and prints it. The test is an error at
    its end where a budget was missed by more than its margin."""
    missed = []

    def measured(key: str, value: float, detail: str = "") -> None:
        one = BUDGETS[key]
        request.config.stash[MEASURED].setdefault(key, []).append((value, detail))
        with capsys.disabled():
            told = f"{one.what}{f', {detail}' if detail else ''}"
            print(f"\n{told}: {text_of(value, one.unit)} ({ends_of(one)}{'' if one.met(value) else ': MISSED'})")
        if not one.met(value) and not value < one.margin * one.high < math.inf:
            missed.append(told)

    yield measured
    assert not missed


def pytest_sessionfinish(session):
    """Numbers of a busy machine are nobody's: they are not written."""
    config, load = session.config, session.config.stash[LOAD]
    if not (file := config.getoption("--budgets")):
        return
    cores = os.cpu_count() or 1
    if load > cores + 0.5:
        print(f"\n{file} is not written: the load average was {load:.1f} on {cores} cores when this began.")
        return
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
    about = f"{date}, {platform.system()} {platform.machine()}, {cores} cores, load average {load:.1f} when it began"
    Path(file).write_text(table_of(config.stash[MEASURED], about))
    print(f"\n{file} is written.")
