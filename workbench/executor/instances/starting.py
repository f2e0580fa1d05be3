"""The tasks of an instance that starts and of who sends it its weights: when each part of the start was done."""

import queue
import time
from collections.abc import Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.executor.clock import sleep_until
from workbench.executor.desk import Desk
from workbench.executor.instances.mail import Mail
from workbench.executor.instances.ports import Port, paced

SENDER, NEW = 0, 1
GO = 1
LONGEST_S = 60.0


class StartPlan(NamedTuple):
    """What both sides of a start know.

    Attributes:
        folder: where they meet.
        shape: of the model, `workbench.executor.transformer.Shape`.
        version: of its weights.
        files: one for each block of them, which the sender reads before it says that it is ready.
        seconds: that each block takes the link.
        prompt: tokens, whose next one is asked for.
        first_s: how long computing it takes at least.
        beforehand: the instance makes its engine and its group before it is told to start.
    """

    folder: str
    shape: Any
    version: str
    files: tuple[str, ...]
    seconds: tuple[float, ...]
    prompt: tuple[int, ...]
    first_s: float
    beforehand: bool


class Said(NamedTuple):
    """The first token and the logits, float32 (vocabulary,), it was chosen from."""

    token: int
    logits: np.ndarray


class Started(NamedTuple):
    """How an instance started.

    Attributes:
        begun_s: when its task began, or when it was told to start, on `time.monotonic`.
        import_s: seconds that its process needed to import torch.
        ends_s: part -> when it was done, in order; *engine* and *group* only if they were not there beforehand.
        said: the first token.
    """

    begun_s: float
    import_s: float
    ends_s: dict[str, float]
    said: Said


def send_weights(desk: Desk, plan: StartPlan) -> Said:
    """Send the blocks over a paced link when the new instance asks; then say what it should say, for comparison."""
    content = [Path(file).read_bytes() for file in plan.files]
    mail = Mail(plan.folder, SENDER, _nothing)
    try:
        desk.say("ready")
        group, asked = _group(plan, SENDER), _one_byte()
        group.recv([asked], NEW, GO).wait()

        def piece(block: int, due_s: float) -> None:
            mail.send(NEW, "weights", {"due_s": due_s}, content[block])

        pieces = ((seconds, partial(piece, block)) for block, seconds in enumerate(plan.seconds))
        paced(Port(), pieces, _go_on)
        return _first_token(plan, [np.frombuffer(bytearray(one), np.uint8) for one in content])
    finally:
        mail.close()


def start_instance(desk: Desk, plan: StartPlan) -> Started:
    """Make an engine and a group, or have them, load the weights as they come, and compute the first token."""
    begun_s, arrived, ends_s = time.monotonic(), queue.SimpleQueue(), {}

    def deliver(header: dict[str, Any], connection: Connection) -> None:
        memory = np.frombuffer(bytearray(connection.recv_bytes()), np.uint8)
        sleep_until(header["due_s"], _go_on)
        arrived.put(memory)

    mail = Mail(plan.folder, NEW, deliver)
    try:
        _warm_engine()
        ends_s["engine"] = time.monotonic()
        group = _group(plan, NEW)
        ends_s["group"] = time.monotonic()
        if plan.beforehand:
            desk.say("ready")
            desk.hear()
            begun_s, ends_s = time.monotonic(), {}
        group.send([_one_byte()], SENDER, GO).wait()
        stage = _engine(plan)
        for _ in plan.files:
            _load(stage, arrived.get(timeout=LONGEST_S), plan.version)
        ends_s["weights"] = time.monotonic()
        said = _say(stage, plan.prompt)
        ends_s["first token"] = sleep_until(ends_s["weights"] + plan.first_s, _go_on)
        return Started(begun_s, desk.import_s, ends_s, said)
    finally:
        mail.close()


def _group(plan: StartPlan, rank: int) -> Any:
    from workbench.executor.group import open_group

    return open_group(str(Path(plan.folder) / "group"), rank, 2, LONGEST_S)


def _one_byte() -> Any:
    import torch

    return torch.zeros(1, dtype=torch.uint8)


def _engine(plan: StartPlan) -> Any:
    from workbench.executor.transformer import Stage

    return Stage(plan.shape)


def _warm_engine() -> None:
    """Let every kernel of a pass run once, on a model of one layer that is dropped again."""
    from workbench.executor.transformer import Shape, Stage, make_weights

    small = Shape(layers=1, hidden=16, heads=1, kv_heads=1, ffn=16, vocabulary=16, longest=4)
    stage = Stage(small)
    stage.load(make_weights(small, 0, 0, 1), "warm-up")
    _say(stage, (1, 2))


def _load(stage: Any, memory: np.ndarray, version: str) -> None:
    from workbench.executor.transformer import unpack

    stage.load(unpack(memory, "a block").tensors, version)


def _say(stage: Any, prompt: Sequence[int]) -> Said:
    from workbench.executor.transformer import greedy

    (output,) = greedy([stage], [prompt], 1)
    return Said(int(output.tokens[0]), output.logits[0])


def _first_token(plan: StartPlan, blocks: Sequence[np.ndarray]) -> Said:
    stage = _engine(plan)
    for memory in blocks:
        _load(stage, memory, plan.version)
    return _say(stage, plan.prompt)


def _nothing(header: dict[str, Any], connection: Connection) -> None:
    """Nobody writes to the sender by mail."""


def _go_on() -> None:
    """A start is never called off from within; its parent ends the process."""
