"""Prompts through a chain of stages in one process: prefill whole or in chunks, greedy decoding, teacher forcing."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from workbench.executor.transformer.cache import KvCache
from workbench.executor.transformer.stage import Stage
from workbench.records import whole


class Output(NamedTuple):
    """What a model said after a prompt.

    Attributes:
        tokens: int64 (n,), the tokens.
        logits: float32 (n, vocabulary), the logits from which each was, or could have been, chosen.
    """

    tokens: np.ndarray
    logits: np.ndarray


def forward(stages: Sequence[Stage], tokens: Sequence[Sequence[int]], caches: Sequence[KvCache]) -> list[Any]:
    """Activations behind the last layer for the new tokens of each request.

    Parameters:
        stages: together they hold all layers, each a range, in order.
        tokens: new tokens of each request.
        caches: cache of each request.
    """
    hidden = stages[0].embed(tokens)
    for stage in stages:
        layers = stage.layers()
        hidden = stage.run(layers[0], len(layers), hidden, caches)
    return hidden


def prefill(
    stages: Sequence[Stage], prompts: Sequence[Sequence[int]], caches: Sequence[KvCache], chunk: int | None = None
) -> Any:
    """Logits after each prompt, (requests, vocabulary).

    Parameters:
        stages, caches: as in `forward`.
        prompts: tokens of each request.
        chunk: most tokens of a request in one pass; by default whole prompts.
    """
    longest = max(map(len, prompts))
    chunk = longest if chunk is None else whole(chunk, "chunk", 1)
    last: dict[int, Any] = {}
    for start in range(0, longest, chunk):
        going = [place for place, prompt in enumerate(prompts) if start < len(prompt)]
        parts = [prompts[place][start : start + chunk] for place in going]
        hidden = forward(stages, parts, [caches[place] for place in going])
        last |= dict(zip(going, hidden, strict=True))
    return stages[-1].logits([last[place] for place in range(len(prompts))])


def greedy(
    stages: Sequence[Stage], prompts: Sequence[Sequence[int]], count: int, chunk: int | None = None
) -> list[Output]:
    """The next `count` tokens after each prompt, the likeliest one at each step; all prompts in one batch.

    Parameters:
        stages, prompts, chunk: as in `prefill`.
        count: tokens for each prompt.
    """
    import torch

    caches = [KvCache(stages[0].shape, device=stages[0].device) for _ in prompts]
    with torch.inference_mode():
        steps = [prefill(stages, prompts, caches, chunk)]
        while len(steps) < count:
            chosen = steps[-1].argmax(-1, keepdim=True).tolist()
            steps.append(stages[-1].logits(forward(stages, chosen, caches)))
        logits = torch.stack(steps, 1).cpu().numpy()
    return [Output(one.argmax(-1), one) for one in logits]


def teacher_forced(stages: Sequence[Stage], prompt: Sequence[int], tokens: Sequence[int]) -> Output:
    """What the model says on another run's text: logits after the prompt and after each of `tokens` but the last."""
    import torch

    given, caches = [*prompt, *tokens[:-1]], [KvCache(stages[0].shape, device=stages[0].device)]
    with torch.inference_mode():
        (hidden,) = forward(stages, [given], caches)
        logits = stages[-1].all_logits(hidden[len(prompt) - 1 :]).cpu().numpy()
    return Output(np.array(tokens, dtype=np.int64), logits)
