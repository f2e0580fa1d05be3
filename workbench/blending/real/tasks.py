"""The task of the worker that serves a job in several orders.

Nothing here imports compiled kernels: a worker that takes a task in gives no sign of life while its imports last.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from workbench.blending.real.serving import Job, Model, Served, loaded, serve_job
from workbench.executor.desk import Desk
from workbench.executor.transformer import Output, Stage, compare, keeps_bits, teacher_forced


class OrderRun(NamedTuple):
    """One order, served.

    Attributes:
        step_s: float64[2, k], seconds of every step: parts one after the other, and beside each other.
        handing_s: median seconds of a step beside each other that belong to neither part.
        computed: prompt tokens that went through the model.
    """

    step_s: np.ndarray
    handing_s: float
    computed: int


def serve_orders(desk: Desk, model: Model, jobs: Mapping[str, Job], rounds: int) -> tuple[dict[str, OrderRun], list]:
    """The task: every order of one job in turn, round by round."""
    stage = loaded(model)
    right = alone(stage, next(iter(jobs.values())))
    best: dict[str, OrderRun] = {}
    identities = []
    for turn in range(rounds):
        for name, job in jobs.items():
            runs = [serve_job(stage, job, together) for together in (False, True)]
            step_s = np.array([run.step_s for run in runs])
            handing_s = float(np.median(runs[1].step_s - np.maximum(runs[1].compute_s, runs[1].memory_s)))
            if turn:
                step_s = np.minimum(step_s, best[name].step_s)
                handing_s = min(handing_s, best[name].handing_s)
            else:
                identities.append({"order": name, "arithmetic": model.arithmetic, **identity_of(stage, right, runs)})
            best[name] = OrderRun(step_s, handing_s, runs[1].computed)
    return best, identities


def alone(stage: Stage, job: Job) -> list[Output]:
    """What the model says of each request alone, whole, with nothing shared."""
    pairs = zip(job.prompts, job.answers, strict=True)
    return [teacher_forced([stage], prompt, (*answer, 0)) for prompt, answer in pairs]


def identity_of(stage: Stage, right: Sequence[Output], runs: Sequence[Served]) -> dict[str, object]:
    """The worst of some runs, laid beside each request alone."""
    kept = stage.arithmetic == "invariant" and keeps_bits(stage.shape, stage.device)
    found = [compare(right, run.outputs, same_order=kept) for run in runs]
    one = max(found, key=lambda identity: (bool(identity.fault), identity.difference))
    chosen = one.model_dump(include={"requests", "tokens", "difference", "gap", "distinct"})
    return {**chosen, "fault": one.fault}
