"""The range of measurements that coefficients were fitted to, and a warning outside it."""

import warnings

import numpy as np

from workbench.latency.inputs import StepInputs
from workbench.records import Record


class OutsideBox(UserWarning):
    """A step time was asked for outside the measurements that its coefficients were fitted to."""


class Range(Record):
    """Least and most value of one quantity among the fitted measurements."""

    quantity: str
    least: float
    most: float


class Box(Record):
    """Ranges of the fitted measurements; a quantity that is not listed was not limited.

    Attributes:
        prefill: of `tokens` (new tokens a prompt), `cached_tokens` (a prompt) and `prompts` (a step).
        decode: of `batch` (requests) and `context_tokens` (a request).
    """

    prefill: tuple[Range, ...] = ()
    decode: tuple[Range, ...] = ()

    def outside(self, step: StepInputs) -> np.ndarray:
        """Which steps lie outside, bool (n,)."""
        return np.logical_or.reduce([mask for _, mask in self._masks(step)], axis=0, initial=False) | np.zeros(
            len(step.tokens), dtype=bool
        )

    def warn(self, step: StepInputs, whose: str) -> np.ndarray:
        """As `outside`, with one `OutsideBox` warning that names the ranges which are left."""
        left = [(each, mask) for each, mask in self._masks(step) if mask.any()]
        if left:
            ranges = ", ".join(f"{each.quantity} {each.least:g} to {each.most:g}" for each, _ in left)
            count = int(np.logical_or.reduce([mask for _, mask in left]).sum())
            message = f"{count} of {len(step.tokens)} steps lie outside what {whose} was fitted to ({ranges})"
            warnings.warn(message, OutsideBox, stacklevel=4)
        return self.outside(step)

    def _masks(self, step: StepInputs) -> list[tuple[Range, np.ndarray]]:
        prompts, requests = np.maximum(step.prompts, 1.0), np.maximum(step.requests, 1.0)
        values = {
            "tokens": step.tokens / prompts,
            "cached_tokens": (step.prompt_context - step.tokens) / prompts,
            "prompts": step.prompts,
            "total_tokens": step.tokens,
            "batch": step.requests,
            "context_tokens": step.context / requests,
            "total_context_tokens": step.context,
        }
        found = []
        for ranges, asked in ((self.prefill, step.tokens > 0), (self.decode, step.requests > 0)):
            for each in ranges:
                value = values[each.quantity]
                found.append((each, asked & ((value < each.least) | (value > each.most))))
        return found
