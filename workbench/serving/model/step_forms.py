"""Step times as the engine takes them: the larger of two rows of five coefficients."""

import warnings

import numpy as np
from scipy.optimize import nnls

from workbench.errors import InputError
from workbench.latency.box import OutsideBox
from workbench.latency.step_time import StepTime
from workbench.records import Asked, NotNegative, Status

Row = tuple[NotNegative, NotNegative, NotNegative, NotNegative, NotNegative]
NOTHING = (0.0, 0.0, 0.0, 0.0, 0.0)
ROUNDS = 8
"""Of assigning steps to rows and fitting the rows anew; it settles in three or four."""


class StepForm(Asked):
    """Seconds of a step with p prompt tokens, q, kv and B: the larger of two rows a + b p + c q + d kv + e B.

    q adds up, over the prompts of the step, the square of the tokens stored after it less that before; kv is the tokens
    stored by the requests that decode; B is how many requests take part.

    Attributes:
        compute: the first row.
        memory: the second row, all 0 for a linear form.
        largest_error, median_error: of a fit, relative to what it was fitted to; 0 where the rows are given.
        source, status: whose numbers they are.
    """

    compute: Row
    memory: Row = NOTHING
    largest_error: NotNegative = 0.0
    median_error: NotNegative = 0.0
    source: str = "given"
    status: Status = "user"

    @property
    def rows(self) -> np.ndarray:
        """float64[2, 5]."""
        return np.array([self.compute, self.memory])

    def seconds(self, p, q, kv, b):
        """Of steps, numbers or arrays alike."""
        rows = [row[0] + row[1] * p + row[2] * q + row[3] * kv + row[4] * b for row in (self.compute, self.memory)]
        return np.maximum(*rows)


def step_form(step: StepTime, slots: int = 256, budget: int = 2048, context_tokens: int = 8192) -> StepForm:
    """Fit two rows to any source of step times, on steps of prompts, of decoding and of both.

    The rows start as the steps that only decode and those that only prefill; each step then belongs to the row that is
    larger there, and the rows are fitted anew with coefficients of 0 or more and relative errors as weights.

    Parameters:
        step: of `workbench.latency.step_time`.
        slots, budget: most running requests and most tokens of a step; the fit covers what can occur with them.
        context_tokens: the longest context a request is expected to have.

    Raises:
        InputError: a source that tells only one of the two phases.
    """
    if set(step.phases) != {"prefill", "decode"}:
        raise InputError(f"tells {' and '.join(step.phases)} only", "choose a source of both phases", field="step")
    p, cached, prompts, b, kv = _samples(slots, budget, context_tokens)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideBox)  # a fit covers what may occur; the source says where it was fitted
        seconds = step.mixed_s(p, b, kv, cached, prompts)
    return fitted_form(p, cached, prompts, b, kv, seconds, step.source)


def fitted_form(p, cached, prompts, b, kv, seconds, source: str) -> StepForm:
    """Two rows fitted to steps whose times are known, measured ones say.

    Parameters:
        p: float64[k], prompt tokens of each step.
        cached: float64[k], tokens that each of its prompts had stored before.
        prompts: float64[k], prompts of equal length that share them.
        b, kv: float64[k], requests that decode and the tokens that they have stored together.
        seconds: float64[k].
        source: whose times they are.
    """
    p, cached, prompts, b, kv = (np.asarray(values, dtype=float) for values in (p, cached, prompts, b, kv))
    q = 2 * p * cached + p * p / prompts
    table = np.column_stack([np.ones(p.size), p, q, kv, b + np.where(p > 0, prompts, 0)])
    in_first = p > 0
    for _ in range(ROUNDS):
        rows = [_fitted(table[mask], seconds[mask]) for mask in (in_first, ~in_first)]
        values = np.column_stack([table @ row for row in rows])
        larger = values[:, 0] > values[:, 1]
        if (larger == in_first).all() or larger.all() or not larger.any():
            break
        in_first = larger
    errors = np.abs(values.max(axis=1) / seconds - 1)
    return StepForm(
        compute=tuple(map(float, rows[0])),
        memory=tuple(map(float, rows[1])),
        largest_error=float(errors.max()),
        median_error=float(np.median(errors)),
        source=f"two rows fitted to {source}",
        status="fitted",
    )


def _samples(slots: int, budget: int, context_tokens: int) -> tuple[np.ndarray, ...]:
    """Steps that may occur: prompt tokens, cached tokens a prompt, prompts, decoding requests, their tokens."""
    tokens = np.unique(np.geomspace(16, max(16, budget), 10).astype(int))
    batches = np.unique(np.geomspace(1, slots, 9).astype(int))
    contexts = np.unique(np.geomspace(64, max(64, context_tokens), 6).astype(int))
    rows = [(p, c, n, 0, 0) for p in tokens for c in (0, context_tokens // 2) for n in (1, 4) if n <= p]
    rows += [(0, 0, 1, b, b * c) for b in batches for c in contexts]
    rows += [(p, 0, 1, b, b * c) for p in tokens[::2] for b in batches[::2] for c in contexts[::2] if p + b <= budget]
    return tuple(np.array(rows, dtype=float).T)


def _fitted(table: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    scale = np.abs(table).max(axis=0)
    scale[scale == 0] = 1
    return nnls(table / scale / seconds[:, None], np.ones(seconds.size))[0] / scale
