"""What packing, memory made ahead and direct transfer are worth on this machine, and where the elbow of sizes lies."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workbench.errors import InputError
from workbench.executor.driving import all_said
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.transformer_serving.copies import gpu_copy_seconds
from workbench.executor.transformer_serving.packing import Way, receive_blocks, serve_blocks
from workbench.executor.watching import StopWanted
from workbench.records import whole

LIMIT_S = 60.0
MOST_MESSAGES = 64
LOOPBACK, TO_GPU = "between two processes", "pinned host memory to the GPU"


class Swept(NamedTuple):
    """Seconds of one message of each size, float64 (sizes,), and by which path."""

    path: str
    seconds: np.ndarray


def message_times(
    sizes: Sequence[int], repeats: int = 5, *, gpu: bool = False, pool: Pool | None = None, stop: StopWanted = None
) -> Swept:
    """How long does one message of each size take here, one at a time and as fast as it goes?

    Parameters:
        sizes: bytes of a message, at least one size.
        repeats: readings of each; between processes each is of several messages, of all of which the first quartile is
            kept, since a machine that does other things too only ever makes a message later; on a GPU the median.
        gpu: whether to copy to a GPU where there is one; else, and where there is none, between two processes.
        pool, stop: as in `block_times`.

    Errors: as `block_times`.
    """
    if not sizes:
        raise InputError("is empty", "give at least one size", field="sizes")
    sizes = [whole(size, "sizes", 1, 2**32) for size in sizes]
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(2))
        if gpu:
            with pool.lease(1) as workers:
                workers[0].give(gpu_copy_seconds, sizes, whole(repeats, "repeats", 1, 1000))
                copied_s = gather(workers, pool.beats, LIMIT_S, stop)[0]
            if copied_s is not None:
                return Swept(TO_GPU, np.array(copied_s))
        counts = [max(1, min(max(sizes) // size, MOST_MESSAGES)) for size in sizes]
        ways = [Way(count, size, size) for count, size in zip(counts, sizes, strict=True)]
        turns = _messages(ways, repeats, pool, stop)
        quartiles = [np.quantile(np.concatenate(one), 0.25) for one in zip(*turns, strict=True)]
        return Swept(LOOPBACK, np.array(quartiles))


def block_times(
    ways: Sequence[Way], repeats: int = 5, *, pool: Pool | None = None, stop: StopWanted = None
) -> np.ndarray:
    """How long does each way take to receive a block between two processes here, as fast as it goes?

    Ways take turns, so that what else the machine does meets all of them alike; a first turn is not counted. Of every
    turn the quickest block is kept: other work on the machine only ever makes one later.

    Parameters:
        ways: see `Way`.
        repeats: readings of each.
        pool: processes to use; by default two are started and ended.
        stop: asked ten times a second whether to give up.

    Returns:
        seconds of a block, float64 (repeats, ways).

    Errors: `MissingExtra` without torch; `InputError` for sizes that are none; `RunFailed` when a process fails.
    """
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(2))
        turns = _messages(ways, repeats, pool, stop)
        return np.array([list(map(_quickest_block, ways, turn)) for turn in turns])


def _quickest_block(way: Way, messages: Sequence[float]) -> float:
    return float(np.reshape(messages, (way.blocks, -1)).sum(axis=1).min())


def _messages(ways: Sequence[Way], repeats: int, pool: Pool, stop: StopWanted) -> list[list[list[float]]]:
    """Seconds of every message of every way, in each of so many turns; a turn before them is not counted.

    Every other turn goes backwards, so that no way always comes after the same one.
    """
    if not ways:
        raise InputError("is empty", "give at least one way", field="ways")
    for row, way in enumerate(ways, start=1):
        for name in ("blocks", "block_bytes", "message_bytes"):
            whole(getattr(way, name), f"ways {row} {name}", 1, 2**32)
    forth, back = list(ways), list(ways)[::-1]
    turns = [forth if turn % 2 else back for turn in range(whole(repeats, "repeats", 1, 1000) + 1)]
    with ExitStack() as stack:
        workers = stack.enter_context(pool.lease(2))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True))
        for worker, task in zip(workers, (serve_blocks, receive_blocks), strict=True):
            worker.give(task, str(Path(folder) / "pair"), list(chain(*turns)), LIMIT_S)
        all_said(workers, pool.beats, LIMIT_S, stop)
        for worker in workers:
            worker.tell("go")
        all_said(workers[1:], pool.beats, LIMIT_S, stop)
        for worker in workers:
            worker.tell("end")
        took_s = gather(workers, pool.beats, LIMIT_S, stop)[1]
    found = [took_s[start : start + len(ways)] for start in range(0, len(took_s), len(ways))]
    return [one if turn is forth else one[::-1] for turn, one in zip(turns, found, strict=True)][1:]
