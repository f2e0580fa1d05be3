"""Checked inputs of step times: numbers or arrays that broadcast, turned into the six arrays of the kernels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import InputError
from workbench.records import shown


class StepInputs(NamedTuple):
    """Six float64 arrays of one length, and the shape that the caller's arrays had.

    Attributes:
        tokens, pairs, prompt_context, prompts: new prompt tokens, (query, key) pairs, keys read, prompts.
        requests, context: decoding requests, tokens in their caches together.
        shape: of the result.
    """

    tokens: np.ndarray
    pairs: np.ndarray
    prompt_context: np.ndarray
    prompts: np.ndarray
    requests: np.ndarray
    context: np.ndarray
    shape: tuple[int, ...]


def prompt_and_decode(
    tokens: ArrayLike = 0,
    cached_tokens: ArrayLike = 0,
    prompts: ArrayLike = 1,
    requests: ArrayLike = 0,
    context_tokens: ArrayLike = 0,
) -> StepInputs:
    """Broadcast and check what a step processes.

    Parameters:
        tokens: new prompt tokens of the step in all.
        cached_tokens: tokens before them that each prompt already has in its cache.
        prompts: equal prompts that share the tokens; without tokens there is none.
        requests: decoding requests.
        context_tokens: tokens in the caches of the decoding requests together.

    Raises:
        InputError: a number that is negative or not finite, less than one prompt or one token of context a request, or
            arrays that do not fit together; with the field at fault.
    """
    given = {
        "tokens": tokens,
        "cached_tokens": cached_tokens,
        "requests": prompts,
        "batch": requests,
        "context_tokens_total": context_tokens,
    }
    arrays = [numbers(name, value) for name, value in given.items()]
    try:
        shape = np.broadcast_shapes(*(array.shape for array in arrays))
    except ValueError:
        sizes = ", ".join(f"{name} {array.shape}" for name, array in zip(given, arrays, strict=True) if array.ndim)
        raise InputError(f"the arrays do not fit together: {sizes}", "give numbers or arrays of one length") from None
    new, cached, count, decoding, context = (
        np.require(np.broadcast_to(array, shape), requirements="CW").reshape(-1) for array in arrays
    )
    if (count[new > 0] < 1).any() or (count > np.maximum(new, 1)).any():
        raise InputError("is not between 1 and the tokens", "a prompt has at least one token", field="requests")
    if (context < decoding).any():
        raise InputError("is below the batch", "each request has 1 token or more", field="context_tokens_total")
    prompted = np.where(new > 0, count, 0.0)
    each = new / np.maximum(prompted, 1.0)
    pairs = new * cached + new * (each + 1.0) / 2.0
    context = np.where(decoding > 0, context, 0.0)
    return StepInputs(new, pairs, new + prompted * cached, prompted, decoding, context, shape)


def numbers(name: str, value: ArrayLike, least: float = 0.0) -> np.ndarray:
    """An array of finite numbers of at least `least`, of any shape, or an `InputError` that names it."""
    try:
        given = np.asarray(value)
        if given.size and given.dtype.kind not in "iufO":
            raise TypeError
        array = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"is {shown(value)}", "give a number or an array of numbers", field=name) from None
    if array.size and not (array.min() >= least and array.max() < np.inf):
        worst = array[~((array >= least) & np.isfinite(array))].flat[0]
        raise InputError(f"holds {worst:g}", f"give finite numbers of {least:g} or more", field=name)
    return array
