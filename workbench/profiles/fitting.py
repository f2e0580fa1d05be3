"""Whether a model fits an accelerator under a deployment, with the arithmetic when it does not."""

from workbench.errors import UserError
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.deployment_record import Deployment
from workbench.profiles.model_record import Model
from workbench.records import Record

USABLE_FRACTION = 0.9
"""Share of the memory that engines give to weights and KV cache: the usual default of vLLM, and what BlitzScale's
capacity arithmetic uses; the rest is for activations and the runtime."""


class Fit(Record):
    """How a model lies in the memory of one accelerator.

    Attributes:
        weight_bytes: its share of the weights.
        kv_bytes: what is left for its share of the KV cache.
        kv_tokens: tokens whose KV cache fits the instance.
    """

    weight_bytes: float
    kv_bytes: float
    kv_tokens: int


def check_fits(
    model: Model,
    accelerator: Accelerator,
    deployment: Deployment | None = None,
    usable_fraction: float = USABLE_FRACTION,
) -> Fit:
    """Refuse, in one sentence with the arithmetic, a model that this deployment cannot hold.

    Parameters:
        model, accelerator: what runs on what.
        deployment: tensor parallelism and number formats; one accelerator and the model's own when None.
        usable_fraction: share of the memory for weights and KV cache.

    Raises:
        UserError: TP divides neither heads nor KV heads, or the weights leave no room.
    """
    deployment = deployment or Deployment()
    model = model.with_dtype(deployment.dtype, deployment.kv_dtype)
    tp = deployment.tp
    # Latent attention has no KV heads to divide: every accelerator keeps the whole cache.
    heads = [(model.heads, "attention heads")]
    if model.latent_attention is None:
        heads.append((model.kv_heads, "KV heads"))
    for count, what in heads:
        if count % tp:
            raise UserError(
                f"{model.name} has {count} {what}, which TP {tp} does not divide "
                f"({count} = {count // tp} x {tp} + {count % tp}); choose a TP that divides {model.kv_heads}."
            )
    if not 0 < usable_fraction <= 1:
        raise UserError(f"usable_fraction is {usable_fraction}; give a share between 0 and 1.")
    memory = float(accelerator.memory_bytes)
    share, room = model.weight_bytes / tp, memory * usable_fraction
    if share >= room:
        raise UserError(
            f"{model.name} in {model.weight_dtype} does not fit {accelerator.name}: {_gb(model.weight_bytes)} of "
            f"weights / TP {tp} = {_gb(share)} each, but {usable_fraction:g} x {_gb(memory)} = {_gb(room)} is usable; "
            f"choose {_remedy(model, room, [count for count, _ in heads])}."
        )
    kv_bytes = room - share
    cached_by = 1 if model.latent_attention is not None else tp
    return Fit(weight_bytes=share, kv_bytes=kv_bytes, kv_tokens=int(kv_bytes * cached_by // model.kv_bytes_per_token))


def _remedy(model: Model, room: float, divided: list[int]) -> str:
    """What else could hold the weights: the smallest TP that divides all heads and does, where there is one."""
    for tp in range(2, min(divided) + 1):
        if all(count % tp == 0 for count in divided) and model.weight_bytes / tp < room:
            return f"TP {tp}, a smaller number format or another accelerator"
    return "a smaller number format or another accelerator"


def _gb(count: float) -> str:
    return f"{count / 1e9:.2f} GB"
