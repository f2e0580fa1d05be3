"""A notebook's kernel is interrupted in the middle of a sweep, which ends at once; the next call goes on from there."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import notebook_check
import pytest
from traitlets.config import Config

SUPPORT = Path(notebook_check.__file__).parent

HERE = "executor = None"
CLUSTER = """
from distributed import Client
executor = Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0")
"""
SWEEP = """
from workbench.sweeps import Task, run_tasks
given = [{{"number": n, "log": {log!r}, "sleep_s": 0.4}} for n in range(16)]
tasks = [Task("sweep_tasks:begun", one, str(one["number"])) for one in given]
finished = run_tasks(tasks, executor=executor, workers=2, folder={folder!r})
"""
ASK = """[sum(one.kept for one in finished), [one.table("squares")["square"][0] for one in finished]]"""


async def executed(client, code, during=None):
    """The reply to a cell and what it shows, `during` being called while it runs."""
    shown = []
    run = asyncio.ensure_future(
        client.execute_interactive(code, timeout=120, output_hook=lambda message: shown.append(message["content"]))
    )
    if during is not None:
        await during()
    reply = (await run)["content"]
    return reply, [content["data"]["text/plain"] for content in shown if "data" in content]


async def interrupt(manager, log, folder):
    """Once four results are kept; the time it was done."""
    while len(list(folder.rglob("tables.json"))) < 4:
        await asyncio.sleep(0.05)
    await manager.interrupt_kernel()
    return time.monotonic()


async def sweep_interrupted(tmp_path, start):
    log, folder = tmp_path / "log", tmp_path / "kept"
    log.mkdir()
    cell = SWEEP.format(log=str(log), folder=str(folder))
    path = os.pathsep.join([str(SUPPORT), os.environ.get("PYTHONPATH", "")])
    manager = notebook_check.LocalKernels(config=Config({"LocalKernels": {"ip": str(tmp_path / "kernel")}}))
    await manager.start_kernel(env={**os.environ, "PYTHONPATH": path})
    client = manager.client()
    client.start_channels()
    try:
        await client.wait_for_ready(timeout=60)
        assert (await executed(client, start))[0]["status"] == "ok"
        pressed = []

        async def during():
            pressed.append(await interrupt(manager, log, folder))

        reply, _ = await executed(client, cell, during)
        took_s = time.monotonic() - pressed[0]
        kept = {path.parent: path.stat().st_mtime_ns for path in folder.rglob("tables.json")}
        began = len(list(log.iterdir()))
        await asyncio.sleep(1.0)
        later = len(list(log.iterdir()))
        half = list(folder.rglob(".*"))
        again, _ = await executed(client, cell)
        _, (answer,) = await executed(client, ASK)
        same = all((path / "tables.json").stat().st_mtime_ns == stamp for path, stamp in kept.items())
        return reply, took_s, len(kept), later - began, half, again["status"], answer, same
    finally:
        client.stop_channels()
        await manager.shutdown_kernel(now=True)


@pytest.mark.notebook
@pytest.mark.parametrize("start", [HERE, CLUSTER], ids=["processes of its own", "a cluster"])
def test_an_interrupted_sweep_ends_at_once_and_goes_on_later(tmp_path, start):
    with ThreadPoolExecutor(1) as thread:  # a browser of other tests leaves its event loop running in this one
        found = thread.submit(lambda: asyncio.run(sweep_interrupted(tmp_path, start))).result()
    reply, took_s, kept, began_later, half, again, answer, same = found
    assert (reply["status"], reply["ename"]) == ("error", "KeyboardInterrupt")
    assert took_s < 10
    assert 4 <= kept < 16
    assert half == []
    assert began_later <= (2 if start == CLUSTER else 0)  # what a worker far away held already, a task each
    assert (again, same) == ("ok", True)
    assert answer == str([kept, [n * n for n in range(16)]])
