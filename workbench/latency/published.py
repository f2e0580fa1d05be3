"""Step times that papers' artifacts give: fitted coefficients of Aegaeon, per-instance rates of BlitzScale."""

import functools
from pathlib import Path

from pydantic import Field

from workbench.errors import UserError
from workbench.latency.bound import bound_coefficients
from workbench.latency.box import Box, Range
from workbench.latency.kernels.layout import LINEAR
from workbench.latency.rates import achievable_rates, number
from workbench.latency.step_time import StepTime
from workbench.latency.work import work_of
from workbench.paths import facts_folder
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.checking import build
from workbench.profiles.deployment_record import Deployment
from workbench.profiles.model_record import Model
from workbench.profiles.toml_reading import read_toml
from workbench.records import Record, Source, Status


class AegaeonRow(Record):
    """Seconds = prefill_s + b·tokens + c·squares for prompts, decode_s + b·context + c·requests for a decode step."""

    accelerator: str
    model: str
    prefill_s: float
    prefill_s_per_token: float
    prefill_s_per_squared_token: float
    decode_s: float
    decode_s_per_context_token: float
    decode_s_per_request: float
    note: str = ""


class AegaeonProfile(Record):
    """What all rows have in common: least and most prompt, batch and total tokens that were measured."""

    prompt_tokens: tuple[float, float]
    batch: tuple[float, float]
    total_tokens: tuple[float, float]
    status: Status
    source: str = Field(min_length=9)


class AegaeonFile(Record):
    """The whole file."""

    profile: AegaeonProfile
    rows: tuple[AegaeonRow, ...]


class BlitzScaleRow(Record):
    """Prompt tokens a second of one instance of `tp` accelerators."""

    model: str
    tp: int
    prefill_tokens_per_s: float = Field(gt=0)


class BlitzScaleProfile(Record):
    """What all rows have in common."""

    accelerators: tuple[str, ...]
    status: Status
    source: str = Field(min_length=9)
    decode_source: str = Field(min_length=9)


class BlitzScaleFile(Record):
    """The whole file."""

    profile: BlitzScaleProfile
    rows: tuple[BlitzScaleRow, ...]


def aegaeon(model: Model, accelerator: Accelerator, deployment: Deployment) -> StepTime:
    """Coefficients fitted to the artifact's profiles; negative ones count as 0, so no step is below its intercept.

    Raises:
        UserError: a pair of model and accelerator, or a deployment, that was not profiled.
    """
    facts = _aegaeon(facts_folder() / "latency" / "aegaeon.toml")
    row = next((r for r in facts.rows if (r.accelerator, r.model) == (accelerator.name, model.name)), None)
    if row is None:
        known = ", ".join(f"{r.model} on {r.accelerator}" for r in facts.rows)
        raise UserError(f"Aegaeon's artifact has no profile of {model.name} on {accelerator.name}; it has {known}.")
    if deployment.tp != 1 or model.weight_dtype not in ("fp16", "bf16"):
        raise UserError(
            f"Aegaeon's profiles are of one accelerator in 16 bits, not of TP {deployment.tp} in {model.weight_dtype}; "
            "choose TP 1 and fp16, or source='roofline'."
        )
    names = [name for name in AegaeonRow.model_fields if "_s" in name]
    about = facts.profile
    return StepTime(
        name="aegaeon",
        model=model,
        accelerator=accelerator,
        deployment=deployment,
        kind=LINEAR,
        coefficients=(*(max(0.0, getattr(row, name)) for name in names), 0.0),
        bound=bound_coefficients(model, accelerator, 1),
        box=Box(
            prefill=(_range("tokens", about.prompt_tokens), _range("total_tokens", about.total_tokens)),
            decode=(_range("batch", about.batch), _range("total_context_tokens", about.total_tokens)),
        ),
        source=about.source + (f"; {row.note}" if row.note else ""),
        status=about.status,
        numbers=tuple(
            Source(quantity=name, value=f"{getattr(row, name):g}", status=about.status, source=about.source)
            for name in names
        ),
    )


def blitzscale(model: Model, accelerator: Accelerator, deployment: Deployment) -> StepTime:
    """Prefill at the artifact's tokens per second; decode as weights and KV cache over achievable memory bandwidth.

    Raises:
        UserError: a model, accelerator or TP that its configurations do not hold.
    """
    facts = _blitzscale(facts_folder() / "latency" / "blitzscale.toml")
    about = facts.profile
    row = next((r for r in facts.rows if (r.model, r.tp) == (model.name, deployment.tp)), None)
    if row is None or accelerator.name not in about.accelerators:
        known = ", ".join(f"{r.model} at TP {r.tp}" for r in facts.rows)
        raise UserError(
            f"BlitzScale gives no rate for {model.name} at TP {deployment.tp} on {accelerator.name}; "
            f"it has {known}, on {' and '.join(about.accelerators)}."
        )
    work, rates = work_of(model, deployment.tp), achievable_rates(accelerator)
    return StepTime(
        name="blitzscale",
        model=model,
        accelerator=accelerator,
        deployment=deployment,
        kind=LINEAR,
        coefficients=(
            0.0,
            1.0 / row.prefill_tokens_per_s,
            0.0,
            work.weight_bytes / rates.memory_bytes_per_s,
            work.context_bytes / rates.decode_attention_bytes_per_s,
            0.0,
            0.0,
        ),
        bound=bound_coefficients(model, accelerator, deployment.tp),
        source=f"{about.source}; decode {about.decode_source}",
        status=about.status,
        numbers=(
            Source(
                quantity="prefill rate", value=f"{row.prefill_tokens_per_s:g}", unit="tokens/s", status=about.status,
                source=about.source,
            ),
            number("reading weights", accelerator.speed("memory_bytes_per_s")),
        ),
    )  # fmt: skip


def _range(quantity: str, bounds: tuple[float, float]) -> Range:
    return Range(quantity=quantity, least=bounds[0], most=bounds[1])


@functools.cache
def _aegaeon(path: Path) -> AegaeonFile:
    return build(AegaeonFile, read_toml(path), file=path)


@functools.cache
def _blitzscale(path: Path) -> BlitzScaleFile:
    return build(BlitzScaleFile, read_toml(path), file=path)
