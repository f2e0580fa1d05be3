"""A calibrated profile: coefficients, the measurements behind them, its file, and the step time it gives."""

import re
import warnings
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from workbench.errors import InputError, UnknownName, UserError
from workbench.latency.bound import bound_coefficients
from workbench.latency.box import Box, OutsideBox, Range
from workbench.latency.calibration.basis import TERMS, linear_coefficients, peaks_of
from workbench.latency.kernels.layout import LINEAR
from workbench.latency.step_time import StepTime
from workbench.paths import user_data_folder, write_atomic
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.checking import build
from workbench.profiles.deployment_record import Deployment
from workbench.profiles.model_record import Model
from workbench.profiles.toml_reading import read_toml
from workbench.profiles.toml_writing import toml_text
from workbench.records import Record, Source, shown

RESERVED = ("roofline", "kernels", "aegaeon", "blitzscale")
"""Names of sources that no profile may take."""

NotNegative = Annotated[float, Field(ge=0)]
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class PhaseFit(Record):
    """One phase: multiples of its terms at data-sheet peaks (seconds for those in `_s`), and how well they predict.

    Attributes:
        phase: "prefill" or "decode".
        coefficients: in the order of `basis.TERMS`.
        rows: measurements.
        in_sample_error: median |predicted / measured - 1| of the rows that were fitted.
        held_out_error, held_out_signed, held_out_p90: median size, median, and 90 % quantile of the size, each row
            predicted by a fit that did not see it.
        ranges: of the measurements.
    """

    phase: Literal["prefill", "decode"]
    coefficients: tuple[NotNegative, ...]
    rows: int
    in_sample_error: float
    held_out_error: float
    held_out_signed: float
    held_out_p90: float
    ranges: tuple[Range, ...]


class CalibratedProfile(Record):
    """Coefficients fitted to somebody's own benchmark rows.

    Attributes:
        name: under which it is saved.
        model, accelerator, dtype: what was measured.
        tp: group sizes among the rows.
        phases: one or both.
        source: the file and how many rows of it were used.
    """

    name: str
    model: str
    accelerator: str
    dtype: str
    tp: tuple[int, ...]
    phases: tuple[PhaseFit, ...]
    source: str

    def phase(self, name: str) -> PhaseFit | None:
        """The fit of one phase, or None."""
        return next((fit for fit in self.phases if fit.phase == name), None)

    def step_time(self, model: Model, accelerator: Accelerator, deployment: Deployment) -> StepTime:
        """The step time that these coefficients give.

        Raises:
            UserError: another model, accelerator, number format or group size than was measured.
        """
        wanted = (model.name, accelerator.name, model.weight_dtype)
        if wanted != (self.model, self.accelerator, self.dtype):
            raise UserError(
                f"Profile {self.name} was measured with {self.model} on {self.accelerator} in {self.dtype}, not with "
                f"{wanted[0]} on {wanted[1]} in {wanted[2]}; calibrate one for it, or use source='roofline'."
            )
        if deployment.tp not in self.tp:
            measured = ", ".join(map(str, self.tp))
            if len(self.tp) == 1:
                raise UserError(
                    f"Profile {self.name} was measured at TP {measured} only, which does not tell what TP "
                    f"{deployment.tp} costs; add rows of a second TP and calibrate again."
                )
            message = f"TP {deployment.tp} lies outside what {self.name} was fitted to (TP {measured})"
            warnings.warn(message, OutsideBox, stacklevel=3)
        fits = {name: self.phase(name) for name in TERMS}
        coefficients = {name: None if fit is None else fit.coefficients for name, fit in fits.items()}
        return StepTime(
            name=self.name,
            model=model,
            accelerator=accelerator,
            deployment=deployment,
            kind=LINEAR,
            coefficients=linear_coefficients(
                coefficients["prefill"], coefficients["decode"], peaks_of(model, accelerator, deployment.tp)
            ),
            bound=bound_coefficients(model, accelerator, deployment.tp),
            box=Box(**{name: () if fit is None else fit.ranges for name, fit in fits.items()}),
            phases=tuple(name for name, fit in fits.items() if fit is not None),
            source=f"calibrated profile {self.name}: {self.source}",
            status="user",
            numbers=tuple(
                Source(
                    quantity=f"{fit.phase} {term}", value=f"{value:.6g}", unit="s" if term.endswith("_s") else "1",
                    status="fitted", source=self.source,
                )
                for fit in self.phases
                for term, value in zip(TERMS[fit.phase], fit.coefficients, strict=True)
            ),
        )  # fmt: skip

    def save(self) -> Path:
        """Write it to the user's data folder, where `load_profile` finds it by name."""
        tables: dict[str, Any] = {"profile": self.model_dump(exclude={"phases"})}
        for fit in self.phases:
            row = fit.model_dump(exclude={"phase", "coefficients", "ranges"})
            row |= {"coefficients": dict(zip(TERMS[fit.phase], fit.coefficients, strict=True))}
            row |= {"ranges": {each.quantity: [each.least, each.most] for each in fit.ranges}}
            tables[fit.phase] = row
        return write_atomic(profile_file(self.name), toml_text(tables))


def checked_name(name: str) -> str:
    """The name itself if it can be a file's and is nobody else's, else an `InputError`."""
    if not isinstance(name, str):
        raise InputError(f"is {shown(name)}", "give a text", field="name")
    if name in RESERVED:
        raise InputError(f"is {name!r}, which names a source of its own", "choose another name", field="name")
    if not _NAME.fullmatch(name):
        raise InputError(f"is {name!r:.60}", "use small letters, digits, dots and dashes", field="name")
    return name


def profile_file(name: str) -> Path:
    """Where the profile of that name lies."""
    return user_data_folder() / "latency" / f"{checked_name(name)}.toml"


def calibrated() -> list[str]:
    """Names of all saved profiles, sorted."""
    return sorted(path.stem for path in (user_data_folder() / "latency").glob("*.toml"))


def load_profile(name: str) -> CalibratedProfile:
    """A saved profile.

    Raises:
        UnknownName, InputError: none of that name; a file that cannot be used.
    """
    if name not in calibrated():
        asked = name if isinstance(name, str) else shown(name)
        raise UnknownName("calibrated profile", asked, calibrated(), "`workbench calibrate FILE` makes one.")
    path = profile_file(name)
    tables = read_toml(path)
    phases = [_phase(phase, tables[phase], path) for phase in TERMS if phase in tables]
    return build(CalibratedProfile, {**tables.get("profile", {}), "phases": phases}, file=path)


def _phase(phase: str, table: dict[str, Any], path: Path) -> dict[str, Any]:
    try:
        ranges = [{"quantity": key, "least": low, "most": high} for key, (low, high) in table["ranges"].items()]
        coefficients = [table["coefficients"][term] for term in TERMS[phase]]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError("lacks coefficients or ranges", "calibrate again", file=path, field=phase) from None
    return {**table, "phase": phase, "coefficients": coefficients, "ranges": ranges}
