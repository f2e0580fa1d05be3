"""Serving early: tokens per second while a cluster scales out, and when waiting would have been better."""

import numpy as np
import polars as pl

from workbench.records import Asked, AtLeastOne, NotNegative, Positive
from workbench.scaling.kernels.early import paying_step_s, steps_gained
from workbench.scaling.kernels.lanes import made_over_time, rate_over_time
from workbench.scaling.model.scale_out import Formed
from workbench.scaling.policy import Switch, leave_times

WAITING, PIPELINE, ALONE = "waiting", "pipeline", "alone"


class Speed(Asked):
    """How fast a node makes tokens.

    Attributes:
        token_s: seconds of a decoding step on a node that has the whole model.
        stages: dispatches of a token through a pipeline, one for each execution block.
        overhead_s: of each dispatch; the blocks of a pipeline together compute for `token_s`.
        batch: tokens of a step, one for each prompt of a request's batch.
        resume_s: seconds that a node loses when it takes a request out of a pipeline: what the prefill, which makes a
            token too, takes beyond a decoding step.

    >>> Speed(token_s=0.014, stages=8, overhead_s=0.002).piped_s
    0.03
    """

    token_s: Positive
    stages: AtLeastOne = 8
    overhead_s: NotNegative = 0.002
    batch: AtLeastOne = 4
    resume_s: NotNegative = 0.0

    @property
    def piped_s(self) -> float:
        """Seconds of a step through a pipeline: the same computing, and every dispatch."""
        return self.token_s + self.stages * self.overhead_s


def lanes(formed: Formed, speed: Speed, switch: Switch = "whole", early: bool = True) -> pl.DataFrame:
    """When each target serves, how, and how fast: `target, how, begin_s, end_s, tokens_per_s`.

    A pipeline of p nodes has p requests in flight, each of which makes a step every `speed.piped_s`; it is drawn as p
    lanes, one for each node. A target that waits for everything serves from its own completion on.

    Parameters:
        formed: the scale-out.
        speed: of tokens.
        switch: when targets leave their pipelines, see `workbench.scaling.policy.Switch`.
        early: False for targets that wait for all their weights.
    """
    alone_s = leave_times(formed.complete_s, switch) if early else formed.complete_s
    rows = [_lane(target, ALONE, begin_s, np.inf, speed) for target, begin_s in enumerate(alone_s)]
    if early:
        piped = np.flatnonzero(formed.forms_s < alone_s)
        for target in piped:
            begins_s = alone_s[target] + speed.resume_s
            rows[target] = _lane(target, ALONE, begins_s, np.inf, speed)
            rows.append(_lane(target, PIPELINE, formed.forms_s[target], alone_s[target], speed))
    schema = {"target": pl.Int64, "how": pl.String, "begin_s": pl.Float64, "end_s": pl.Float64, "tokens_per_s": float}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("begin_s", "target", maintain_order=True)


def _lane(target: int, how: str, begin_s: float, end_s: float, speed: Speed) -> tuple:
    step_s = speed.piped_s if how == PIPELINE else speed.token_s
    return int(target), how, float(begin_s), float(end_s), speed.batch / step_s


def tokens_per_s(table: pl.DataFrame, time_s: np.ndarray) -> np.ndarray:
    """Tokens per second of all lanes together at each time, float64[t]: the staircase of a scale-out."""
    out = np.empty(len(time_s))
    rate_over_time(np.asarray(time_s, dtype=float), *_columns(table), out)
    return out


def tokens_made(table: pl.DataFrame, time_s: np.ndarray) -> np.ndarray:
    """Tokens that all lanes together have made up to each time, float64[t]."""
    out = np.empty(len(time_s))
    made_over_time(np.asarray(time_s, dtype=float), *_columns(table), out)
    return out


def tokens_gained(formed: Formed, speed: Speed, switch: Switch = "whole") -> float:
    """Tokens that serving early makes more than waiting, once all targets serve alone; negative where it makes fewer.

    This is the area between the two staircases. What it leaves out: the weights are as fast as if nobody computed.
    """
    times = _times(formed, switch)
    return speed.batch * float(steps_gained(*times, speed.token_s, speed.piped_s, speed.resume_s))


def paying_overhead_s(formed: Formed, speed: Speed, switch: Switch = "whole") -> float:
    """The overhead of a dispatch above which waiting makes more tokens than serving early; infinity where none does.

    Below 0 where serving early makes fewer even without any overhead.
    """
    step_s = float(paying_step_s(*_times(formed, switch), speed.token_s, speed.resume_s))
    return (step_s - speed.token_s) / speed.stages


def _times(formed: Formed, switch: Switch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return formed.forms_s, formed.complete_s, leave_times(formed.complete_s, switch)


def _columns(table: pl.DataFrame) -> list[np.ndarray]:
    return [np.ascontiguousarray(table[name].to_numpy()) for name in ("begin_s", "end_s", "tokens_per_s")]
