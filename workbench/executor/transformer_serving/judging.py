"""The task of the process that knows the right answers: all blocks from their files, every text whole."""

from collections.abc import Sequence

import numpy as np

from workbench.executor.desk import Desk
from workbench.executor.transformer import ModelFiles, Stage, keeps_bits, read_block, teacher_forced


def right_logits(
    desk: Desk, model: ModelFiles, texts: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], device: str
) -> tuple[bool, list[np.ndarray]]:
    """Whether this machine keeps the bits, and for each text (prompt, output) the logits after the prompt and on."""
    stage = Stage(model.shape, device=device)
    for block in model.blocks:
        found = read_block(block.path)
        stage.load(found.tensors, found.notes["version"])
    return keeps_bits(model.shape, device), [teacher_forced([stage], prompt, said).logits for prompt, said in texts]
