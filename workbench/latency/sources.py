"""Every source of step times by name, and the one function that makes any of them."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

from workbench.errors import InputError, UnknownName
from workbench.latency.calibration.profile import calibrated, load_profile
from workbench.latency.fitted_kernels import fitted_kernels
from workbench.latency.overheads import Overheads
from workbench.latency.published import aegaeon, blitzscale
from workbench.latency.roofline import roofline
from workbench.latency.step_time import StepTime
from workbench.latency.work import work_of
from workbench.profiles import accelerator as find_accelerator
from workbench.profiles import check_fits
from workbench.profiles import model as find_model
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.deployment_record import Deployment
from workbench.profiles.model_record import Model
from workbench.records import shown

FROM_PROFILES: dict[str, tuple[Callable[..., StepTime], str]] = {
    "roofline": (roofline, "any dense model on any accelerator, from their profiles at achievable rates"),
    "kernels": (fitted_kernels, "accelerators whose kernels were swept, by coefficients fitted to the sweeps"),
}
"""Sources that take overheads: name -> (what makes it, what it covers)."""

PUBLISHED: dict[str, tuple[Callable[..., StepTime], str]] = {
    "aegaeon": (aegaeon, "pairs of model and accelerator that Aegaeon's artifact profiled"),
    "blitzscale": (blitzscale, "models whose prefill rate BlitzScale's artifact configures"),
}
"""Sources with numbers of their own."""


def step_time(
    model: str | Path | Model,
    accelerator: str | Path | Accelerator,
    deployment: Deployment | None = None,
    source: str = "roofline",
    overheads: Overheads | None = None,
) -> StepTime:
    """How long steps of a model take on an accelerator, by one of `step_time_sources()`.

    Parameters:
        model, accelerator: names, paths or records, as `workbench.model` and `workbench.accelerator` take them.
        deployment: tensor parallelism and number formats; one accelerator and the model's own when None.
        source: "roofline", "kernels", "aegaeon", "blitzscale", or the name of a profile that `calibrate` saved.
        overheads: of a step, a layer and a request, for "roofline" and "kernels"; BLIS's by default.

    Raises:
        UserError: MoE and MLA models, a TP that does not divide the heads, weights that do not fit, a pair that the
            source does not cover; each in one sentence with the arithmetic.
        UnknownName: no such source.

    >>> step = step_time("llama-3-8b", "h100")
    >>> step.decode(batch=1, context_tokens_total=1024)
    <6.45... ms (computed: roofline of every kernel at achievable rates, overheads of BLIS)>
    """
    model, accelerator = find_model(model), find_accelerator(accelerator)
    deployment = Deployment() if deployment is None else deployment
    for value, kind, maker in ((deployment, Deployment, "deployment"), (overheads, Overheads, "overheads")):
        if value is not None and not isinstance(value, kind):
            raise InputError(f"is a {type(value).__name__}", f"make one with {maker}(...)", field=maker)
    model = model.with_dtype(deployment.dtype, deployment.kv_dtype)
    work_of(model, deployment.tp)  # refuses what cannot be modelled before asking whether it fits
    check_fits(model, accelerator, deployment)
    if not isinstance(source, str):
        raise UnknownName("source of step times", shown(source), [*FROM_PROFILES, *PUBLISHED, *calibrated()])
    if overheads is not None and source not in FROM_PROFILES:
        remedy = f"leave them out, or take source={' or '.join(map(repr, FROM_PROFILES))}"
        raise InputError(f"are given, and {source!r:.60} has its own inside its numbers", remedy, field="overheads")
    if source in FROM_PROFILES:
        return FROM_PROFILES[source][0](model, accelerator, deployment, overheads)
    if source in PUBLISHED:
        return PUBLISHED[source][0](model, accelerator, deployment)
    if source not in calibrated():
        raise UnknownName("source of step times", source, [*FROM_PROFILES, *PUBLISHED, *calibrated()])
    return load_profile(source).step_time(model, accelerator, deployment)


def step_time_sources() -> pl.DataFrame:
    """All sources: name and what each covers."""
    rows = [(name, covers) for name, (_, covers) in (FROM_PROFILES | PUBLISHED).items()]
    for name in calibrated():
        profile = load_profile(name)
        rows.append((name, f"{profile.model} on {profile.accelerator}, calibrated from {profile.source}"))
    return pl.DataFrame(rows, schema={"source": pl.String, "covers": pl.String}, orient="row")
