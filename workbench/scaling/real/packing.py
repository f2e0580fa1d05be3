"""What packing, memory made ahead and direct transfer are worth on this machine, and where the elbow of sizes lies."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from workbench.errors import InputError
from workbench.executor.driving import all_said
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.transformer_serving.packing import Way, receive_blocks, serve_blocks
from workbench.executor.watching import StopWanted
from workbench.records import whole

LIMIT_S = 60.0


def receive_times(ways: Sequence[Way], repeats: int = 5, *, pool: Pool | None = None, stop: StopWanted = None):
    """How long does each way of receiving a model take between two processes here, as fast as it goes?

    Ways take turns, so that what else the machine does meets all of them alike; a first turn is not counted.

    Parameters:
        ways: see `Way`.
        repeats: readings of each.
        pool: processes to use; by default two are started and ended.
        stop: asked ten times a second whether to give up.

    Returns:
        seconds, float64 (repeats, ways).

    Errors: `MissingExtra` without torch; `InputError` for sizes that are none; `RunFailed` when a process fails.
    """
    if not ways:
        raise InputError("is empty", "give at least one way", field="ways")
    for row, way in enumerate(ways, start=1):
        for name in ("blocks", "block_bytes", "message_bytes"):
            whole(getattr(way, name), f"ways {row} {name}", 1, 2**32)
    repeats = whole(repeats, "repeats", 1, 1000)
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(2))
        workers = stack.enter_context(pool.lease(2))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True))
        turns = list(ways) * (repeats + 1)
        for worker, task in zip(workers, (serve_blocks, receive_blocks), strict=True):
            worker.give(task, str(Path(folder) / "pair"), turns, LIMIT_S)
        all_said(workers, pool.beats, LIMIT_S, stop)
        for worker in workers:
            worker.tell("go")
        all_said(workers[1:], pool.beats, LIMIT_S, stop)
        for worker in workers:
            worker.tell("end")
        took_s = gather(workers, pool.beats, LIMIT_S, stop)[1]
    return np.array(took_s).reshape(repeats + 1, len(ways))[1:]
