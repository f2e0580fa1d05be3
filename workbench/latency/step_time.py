"""How long a step of an instance takes: one interface over every source of numbers."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from workbench.errors import UserError
from workbench.latency.box import Box
from workbench.latency.estimate import Estimate
from workbench.latency.inputs import StepInputs, prompt_and_decode
from workbench.latency.kernels.step import fill_bounds, fill_steps
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.deployment_record import Deployment
from workbench.profiles.model_record import Model
from workbench.records import Record, Source, Status


class StepTime(Record):
    """Prefill, decode and mixed step times of one model on one kind of accelerator; `latency.step_time` makes them.

    All times are for one instance of `deployment.tp` accelerators. Numbers and arrays are taken alike, arrays of one
    shape or broadcast. Methods that end in `_s` give seconds, their namesakes an `Estimate` that also tells bound and
    source. No answer lies below the roofline at data-sheet peaks.

    Attributes:
        name: which source of numbers ("roofline", "kernels", "aegaeon", "blitzscale", or a calibrated profile's name).
        model: in the number formats of the deployment.
        accelerator, deployment: on what and how it runs.
        kind: which kernel function computes it, see `kernels.layout`.
        coefficients, bound: the kernel's numbers.
        box: the measurements behind fitted coefficients.
        phases: what it can tell; a calibrated profile may know one of them only.
        source, status: whose numbers they are, in one sentence, and how they are known.
        numbers: every number with where it comes from.
    """

    name: str
    model: Model
    accelerator: Accelerator
    deployment: Deployment
    kind: int
    coefficients: tuple[float, ...]
    bound: tuple[float, ...]
    box: Box = Box()
    phases: tuple[str, ...] = ("prefill", "decode")
    source: str
    status: Status
    numbers: tuple[Source, ...] = ()

    @cached_property
    def kernel_arguments(self) -> tuple[int, np.ndarray, np.ndarray]:
        """What `kernels.step.step_s` takes first: kind, coefficients and bound, for loops that are compiled."""
        return self.kind, np.array(self.coefficients), np.array(self.bound)

    def prefill(self, tokens: ArrayLike, cached_tokens: ArrayLike = 0, requests: ArrayLike = 1) -> Estimate:
        """A step that processes prompts only.

        Parameters:
            tokens: new prompt tokens in the step, all prompts together.
            cached_tokens: tokens of each prompt whose keys and values are there already.
            requests: prompts of equal length that share the step.

        Raises:
            InputError: a number that cannot be, with the field.
        """
        return self._estimate(prompt_and_decode(tokens, cached_tokens, requests))

    def decode(self, batch: ArrayLike, context_tokens_total: ArrayLike) -> Estimate:
        """A step that gives one token to each of `batch` requests, whose caches hold so many tokens together."""
        return self._estimate(prompt_and_decode(requests=batch, context_tokens=context_tokens_total))

    def mixed(
        self,
        tokens: ArrayLike,
        batch: ArrayLike,
        context_tokens_total: ArrayLike,
        cached_tokens: ArrayLike = 0,
        requests: ArrayLike = 1,
    ) -> Estimate:
        """A step of both kinds (chunked prefill); parameters as in `prefill` and `decode`."""
        return self._estimate(prompt_and_decode(tokens, cached_tokens, requests, batch, context_tokens_total))

    def prefill_s(self, tokens: ArrayLike, cached_tokens: ArrayLike = 0, requests: ArrayLike = 1):
        """Seconds of `prefill`: a float, or an array of the shape of the arguments."""
        return self._seconds(prompt_and_decode(tokens, cached_tokens, requests))

    def decode_s(self, batch: ArrayLike, context_tokens_total: ArrayLike):
        """Seconds of `decode`."""
        return self._seconds(prompt_and_decode(requests=batch, context_tokens=context_tokens_total))

    def mixed_s(
        self,
        tokens: ArrayLike,
        batch: ArrayLike,
        context_tokens_total: ArrayLike,
        cached_tokens: ArrayLike = 0,
        requests: ArrayLike = 1,
    ):
        """Seconds of `mixed`."""
        return self._seconds(prompt_and_decode(tokens, cached_tokens, requests, batch, context_tokens_total))

    def sources(self) -> list[Source]:
        """Every number behind the answers with where it comes from."""
        return list(self.numbers)

    def _seconds(self, step: StepInputs):
        self._refuse_unknown(step)
        self.box.warn(step, self._whose)
        return self._shaped(self._filled(step), step)

    def _filled(self, step: StepInputs) -> np.ndarray:
        seconds = np.empty(len(step.tokens))
        fill_steps(*self.kernel_arguments, *step[:-1], seconds)
        return seconds

    def _estimate(self, step: StepInputs) -> Estimate:
        self._refuse_unknown(step)
        outside = self.box.warn(step, self._whose)
        bounds = np.empty(len(step.tokens))
        fill_bounds(self.kernel_arguments[2], *step[:-1], bounds)
        return Estimate(
            seconds=self._shaped(self._filled(step), step),
            bound_s=self._shaped(bounds, step),
            outside=bool(outside[0]) if step.shape == () else outside.reshape(step.shape),
            source=self.source,
            status=self.status,
        )

    def _refuse_unknown(self, step: StepInputs) -> None:
        for phase, count in (("prefill", step.tokens), ("decode", step.requests)):
            if phase not in self.phases and (count > 0).any():
                raise UserError(
                    f"Profile {self.name} was calibrated without {phase} rows and cannot tell {phase} times; "
                    "add such rows and calibrate again, or use source='roofline'."
                )

    @property
    def _whose(self) -> str:
        return f"{self.name} for {self.model.name} on {self.accelerator.name}"

    @staticmethod
    def _shaped(values: np.ndarray, step: StepInputs):
        return float(values[0]) if step.shape == () else values.reshape(step.shape)

    def __repr__(self) -> str:
        return (
            f"<StepTime {self.model.name} on {self.accelerator.name}, TP {self.deployment.tp}, "
            f"{self.model.weight_dtype} ({self.status}: {self.source})>"
        )

    __str__ = __repr__
