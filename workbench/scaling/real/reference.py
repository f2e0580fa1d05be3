"""What the undisturbed model says on the texts of a run: the right answers that a run is laid beside."""

from collections.abc import Sequence

import numpy as np

from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.transformer import Identity, ModelFiles, NotIdentical, Output, compare
from workbench.executor.transformer_serving.judging import right_logits
from workbench.executor.watching import StopWanted
from workbench.scaling.real.outcome import LiveRun, Prompt

LIMIT_S = 120.0


def check_outputs(
    run: LiveRun,
    model: ModelFiles,
    prompts: Sequence[Prompt],
    pool: Pool,
    stop: StopWanted = None,
    device: str = "cpu",
) -> Identity:
    """Did a run say what the model says when nothing moves, splits, switches or dies?

    One process loads all blocks from their files and goes through every text once, whole. Given the same text so far,
    its choice is the next token of the undisturbed run; so where all tokens of a run are its choices, the run said what
    an undisturbed one says from the first token to the last.

    Parameters:
        run: whose outputs are in question.
        model: that it served.
        prompts: that it was given.
        pool: a process of it computes.
        stop: asked whether to give up.
        device: where the reference is computed; the same as the run's.

    Errors: `NotIdentical` where logits or tokens differ by more than `Identity` allows.
    """
    texts = [
        (prompt.tokens, tuple(output.tokens.tolist())) for prompt, output in zip(prompts, run.outputs, strict=True)
    ]
    with pool.lease(1) as workers:
        workers[0].give(right_logits, model, texts, device)
        (kept, logits) = gather(workers, pool.beats, LIMIT_S, stop)[0]
    right = [Output(np.array(tokens, dtype=np.int64), found) for (_, tokens), found in zip(texts, logits, strict=True)]
    identity = compare(right, run.outputs, same_order=kept)
    if not identity.holds:
        raise NotIdentical("What was served while loading", identity)
    return identity
