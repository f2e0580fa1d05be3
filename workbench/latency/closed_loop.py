"""Time per output token of a server that a fixed number of clients keeps busy, from its step times."""

import numpy as np
from numpy.typing import ArrayLike

from workbench.latency.inputs import numbers
from workbench.latency.step_time import StepTime


def closed_loop_tpot_s(
    step: StepTime, clients: ArrayLike, prompt_tokens: ArrayLike, output_tokens: ArrayLike
) -> np.ndarray:
    """Mean seconds between the tokens of a request while `clients` equal requests are always under way.

    Every step decodes for all clients at the mean length of their contexts; while a request emits its n tokens, each of
    the other clients finishes once and its next prompt is processed in between:

        TPOT = decode(C, C (p + n/2)) + (C - 1) prefill(p) / n

    First order in the share of time that goes to prompts: a server that is mostly busy with prompts decodes for fewer
    than C clients at a time, and is overestimated.

    Parameters:
        step: step times of one instance.
        clients: C, requests under way (a benchmark's concurrency).
        prompt_tokens, output_tokens: p and n.

    >>> from workbench.latency import step_time
    >>> step = step_time("llama-3-8b", "h100")
    >>> float(closed_loop_tpot_s(step, 1, 1000, 100)) == step.decode_s(1, 1050)
    True
    """
    count, prompt, output = (
        numbers(name, value, least=1.0)
        for name, value in (("clients", clients), ("prompt_tokens", prompt_tokens), ("output_tokens", output_tokens))
    )
    decode_s = step.decode_s(count, count * (prompt + output / 2))
    return np.asarray(decode_s + (count - 1) * step.prefill_s(prompt) / output)
