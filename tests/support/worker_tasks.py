"""Tasks that tests give to worker processes; a worker can only run what it can import."""

import os
import queue

from workbench.executor.desk import CalledOff


def threads(desk):
    """Threads that torch uses, and threads that OpenMP was told."""
    import torch

    return torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]


def remember(desk, value):
    """Keep a value, and give back the one kept before."""
    before, desk.kept["value"] = desk.kept.get("value"), value
    return before


def fail(desk):
    raise ValueError("no such luck")


def wait(desk):
    """Do nothing until called off, then say why."""
    desk.say("waiting")
    try:
        return desk.hear()
    except CalledOff as reason:
        return f"called off: {reason}"


def hold_blocks(desk, size):
    """Keep memory for one block, and say by which handle."""
    from workbench.executor.blocks import Blocks

    desk.kept["blocks"] = Blocks((size,))
    return desk.kept["blocks"].handle


def count_words(desk):
    """All words until "end", as they came by the callback."""
    words = queue.SimpleQueue()
    desk.on_word(words.put)
    desk.say("listening")
    return [*iter(words.get, "end"), "end"]
