"""How long a start takes for real, part by part: from nothing, or with all but the weights made beforehand."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import polars as pl

from workbench.executor.driving import all_said
from workbench.executor.faults import RunFailed
from workbench.executor.gathering import gather
from workbench.executor.instances.starting import StartPlan, send_weights, start_instance
from workbench.executor.processes import Pool
from workbench.executor.transformer import Shape, write_model
from workbench.executor.watching import StopWanted
from workbench.records import Record, positive

SHAPE = Shape(layers=8, hidden=256, ffn=688, vocabulary=512, longest=64)
PROMPT = tuple(range(3, 35))
PATIENCE_S, SPARE_S = 30.0, 60.0
PROCESS, IMPORT = "process", "import of torch"


class RealStart(Record):
    """One start.

    Attributes:
        parts: `part, seconds` in order. From nothing: *process* (a new interpreter, up to its first task), *import of
            torch*, *engine* (a first pass of a small model), *group* (of gloo, with who sends), *weights* and *first
            token*; beforehand: *process* (the process is there and is told), *weights* and *first token*.
        weight_bytes: that really moved.
    """

    parts: pl.DataFrame
    weight_bytes: int


def measure_start(
    load_s: float, first_s: float, *, beforehand: bool, seed: int = 0, stop: StopWanted = None
) -> RealStart:
    """Seconds of each part of a start until the first token.

    Two processes: one sends the weights of a small model over a paced link, for which a card or an SSD may stand; the
    other one starts. Its first token is compared with that of the sender's own copy.

    Parameters:
        load_s: how long the link takes for all weights.
        first_s: how long computing the first token takes at least.
        beforehand: process, engine and group are there before the time begins; else a new interpreter makes them.
        seed: of the weights.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `RunFailed` when a process fails or the token is another one; `RunStopped`
        when `stop` says so.
    """
    positive(load_s, "load_s"), positive(first_s, "first_s")
    limit_s = load_s + first_s + SPARE_S
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True)))
        files = write_model(folder, SHAPE, seed, SHAPE.layers, f"seed-{seed}")
        shares = tuple(load_s * block.size / files.bytes for block in files.blocks)
        plan = StartPlan(
            str(folder), SHAPE, files.version, tuple(block.path for block in files.blocks), shares, PROMPT, first_s,
            beforehand,
        )  # fmt: skip
        senders = stack.enter_context(Pool(1))
        (sender,) = stack.enter_context(senders.lease(1))
        sender.give(send_weights, plan)
        all_said([sender], senders.beats, limit_s, stop, PATIENCE_S)
        begun_s = time.monotonic()
        pool = stack.enter_context(Pool(1, fresh=not beforehand))
        (new,) = stack.enter_context(pool.lease(1))
        new.give(start_instance, plan)
        if beforehand:
            all_said([new], pool.beats, limit_s, stop, PATIENCE_S)
            begun_s = time.monotonic()
            new.tell("start")
        (started,) = gather([new], pool.beats, limit_s, stop, PATIENCE_S)
        (wanted,) = gather([sender], senders.beats, limit_s, stop, PATIENCE_S)
    if started.said.token != wanted.token or not np.array_equal(started.said.logits, wanted.logits):
        raise RunFailed("The instance that started says another first token than who sent it the weights; run again.")
    waited_s = started.begun_s - begun_s
    rows = [(PROCESS, waited_s)] if beforehand else [(PROCESS, waited_s - started.import_s), (IMPORT, started.import_s)]
    last_s = started.begun_s
    for part, end_s in started.ends_s.items():
        rows.append((part, end_s - last_s))
        last_s = end_s
    return RealStart(parts=pl.DataFrame(rows, schema=["part", "seconds"], orient="row"), weight_bytes=files.bytes)
