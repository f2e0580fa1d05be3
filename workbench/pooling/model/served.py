"""A model of a pool in numbers: weights, KV cache, and seconds of prompts and decode steps."""

import warnings

import numpy as np

from workbench import profiles
from workbench.errors import InputError
from workbench.latency import OutsideBox, StepTime, step_time
from workbench.latency.kernels.layout import LINEAR
from workbench.latency.regression import nonnegative_fit
from workbench.pooling.model.facts import Variant, facts
from workbench.profiles import Accelerator, Deployment, Model
from workbench.records import Asked, AtLeastOne, NotNegative, Positive

PROMPTS = (16, 64, 256, 1024, 4096)
BATCHES = (1, 2, 4, 8, 16, 32, 64)
CONTEXTS = (64, 256, 1024, 4096)


class PoolModel(Asked):
    """One model on one kind of instance.

    Attributes:
        name: of the model.
        weight_bytes: of an instance.
        kv_bytes_per_token: that move and are held.
        kv_bytes: of an instance that holds the model, for KV caches; what memory leaves when None.
        longest_tokens: of a request that the model takes.
        prefill: seconds of a prompt: constant, per token, per squared token, and the least of the part per token.
        decode: seconds of a decode step: constant, per token of context, per request.
        source: whose numbers they are.
    """

    name: str
    weight_bytes: Positive
    kv_bytes_per_token: Positive
    kv_bytes: Positive | None = None
    longest_tokens: AtLeastOne = 4096
    prefill: tuple[NotNegative, NotNegative, NotNegative, NotNegative]
    decode: tuple[Positive, NotNegative, NotNegative]
    source: str = "given"


def pool_model(
    model: str | Model,
    accelerator: str | Accelerator,
    tp: int = 1,
    steps: str = "aegaeon",
    variant: Variant | None = None,
) -> PoolModel:
    """A model's numbers on an accelerator.

    Parameters:
        model, accelerator: names or records.
        tp: accelerators of an instance.
        steps: source of step times, see `workbench.latency.step_time`; all but Aegaeon's are fitted by a line.
        variant: whose sizes and step times to take where it tells.

    Raises:
        UnknownName: no such model, accelerator or source. UserError: a model that the source cannot time.

    >>> made = pool_model("llama-2-13b", "h800-80gb-sxm")
    >>> round(made.decode[0] * 1e3, 2), made.kv_bytes_per_token
    (12.56, 819200.0)
    """
    model, accelerator = profiles.model(model), profiles.accelerator(accelerator)
    variant = facts().variants["paper"] if variant is None else variant
    step = step_time(model, variant.accelerator or accelerator, Deployment(tp=tp), steps)
    prefill, decode = linear(step)
    weights = {
        "shape": lambda: float(model.weight_bytes),
        "parameters": lambda: 2.0 * float(model.override("aegaeon-artifact", "parameters")),
        "simulated": lambda: float(model.override("aegaeon-artifact", "weight_bytes")),
    }[variant.weights]()
    kv_bytes, moved = None, float(model.kv_bytes_per_token)
    if variant.kv_bytes_per_token is not None:
        # The simulator moves a fixed number of bytes a token, and counts what fits by the full hidden size.
        room = float(variant.memory_fraction) * (float(accelerator.memory_bytes) - weights)
        held = 2.0 * model.layers * model.hidden * 2.0
        moved = float(variant.kv_bytes_per_token)
        kv_bytes = room / held * moved
    return PoolModel(
        name=model.name,
        weight_bytes=weights,
        kv_bytes_per_token=moved,
        kv_bytes=kv_bytes,
        longest_tokens=model.max_context,
        prefill=prefill,
        decode=decode,
        source=step.source,
    )


def linear(step: StepTime) -> tuple[tuple[float, float, float, float], tuple[float, float, float]]:
    """Coefficients of prompts and of decode steps: those of a source that has them, else a fit to steps it tells."""
    if step.kind == LINEAR:
        constant, per_token, per_square, decode, per_context, per_request, least = step.coefficients
        return (constant, per_token, per_square, least), (decode, per_context, per_request)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideBox)
        tokens = np.array(PROMPTS, dtype=float)
        prompts = nonnegative_fit(np.column_stack([np.ones(tokens.size), tokens, tokens**2]), step.prefill_s(tokens))
        batch, context = (grid.ravel().astype(float) for grid in np.meshgrid(BATCHES, CONTEXTS))
        columns = np.column_stack([np.ones(batch.size), batch * context, batch])
        decode = nonnegative_fit(columns, step.decode_s(batch, batch * context))
    if not decode[0] > 0:
        raise InputError(f"{step.name} gives {step.model.name} steps without a constant part", "use another source")
    return (*map(float, prompts), 0.0), tuple(map(float, decode))
