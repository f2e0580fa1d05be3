"""A request goes on at another node, for real: how long until its cache is there, computed anew or moved?"""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.executor.driving import all_said
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.scale import (
    LARGEST_THETA,
    OVERHEAD,
    ROOM,
    SHORTEST_STEP_S,
    TRIES,
    Scale,
    longer_by,
    times_show,
)
from workbench.executor.transformer import Shape
from workbench.executor.transformer_serving.resuming import FOLLOW, Resume, Resumed, go_on, hand_over
from workbench.executor.transformer_serving.timing import pass_seconds
from workbench.executor.watching import StopWanted
from workbench.records import Record, whole
from workbench.scaling.model import Switching, recompute_s

LIMIT_S = 120.0
MOST_MEMBERS = 16


class ResumeRun(Record):
    """What switches took, at full size.

    Attributes:
        times: `tokens, recompute_s, move_s`.
        identity: `tokens, way, difference, gap, distinct, fault` of what followed each switch; "" for no fault.
        scale: bytes of a token's cache at full size over those of the run, and seconds of the run over those of full
            size.
        overhead: mean lateness over the shortest hold, of prefills or of parts, whichever is more.
        waiting_share: share of the time in which the node used no processor.
    """

    times: pl.DataFrame
    identity: pl.DataFrame
    scale: Scale
    overhead: float
    waiting_share: float

    @property
    def label(self) -> str:
        """What the times show: "paced" the plan (the processes mostly waited for a clock), "busy" the machine."""
        return times_show(self.waiting_share)


def resume_elsewhere(
    switching: Switching,
    tokens: Sequence[int],
    seed: int = 0,
    *,
    pool: Pool | None = None,
    stop: StopWanted = None,
) -> ResumeRun:
    """How long until a request's cache is at another node, by a prefill or over the link, and is what follows right?

    Both are really done by a small model: the prefill is computed and held to its full-size time, the cache's parts
    travel over a link paced to theirs. Then the next tokens are laid beside those of a run without a switch.

    Parameters:
        switching: what it takes at full size.
        tokens: numbers of tokens so far, each at most 1,024.
        seed: of weights and texts.
        pool: processes to use; by default two are started and ended.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `InputError` for numbers that are none; `UserError` where θ would exceed 100;
        `RunFailed` when a process fails.
    """
    if not tokens:
        raise InputError("is empty", "give at least one number", field="tokens")
    tokens = [whole(count, "tokens", 1, 1024) for count in tokens]
    members = whole(switching.nodes, "nodes", 2, MOST_MEMBERS)
    shape = Shape(layers=members * -(-8 // members), longest=max(tokens) + FOLLOW)
    random = np.random.default_rng(seed)
    texts = tuple(tuple(random.integers(0, shape.vocabulary, count).tolist()) for count in tokens)
    full_s = recompute_s(switching, tokens)
    part_s = switching.alpha_s + np.array(tokens) * switching.kv_bytes / members / switching.bytes_per_s
    sigma = switching.kv_bytes / shape.kv_bytes_per_token
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(2))
        workers = stack.enter_context(pool.lease(2))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True)))
        workers[0].give(pass_seconds, shape, [(1, count) for count in tokens])
        alone_s = np.array(gather(workers[:1], pool.beats, LIMIT_S, stop)[0])
        theta = max(1.0, float((ROOM * alone_s / full_s).max()), SHORTEST_STEP_S / min(full_s.min(), part_s.min()))
        for turn in range(TRIES):
            if theta > LARGEST_THETA:
                raise UserError(
                    f"Time would have to be stretched {theta:.0f} times, more than {LARGEST_THETA:.0f}, for this "
                    "machine to keep up; take more tokens or slower links."
                )
            asked = Resume(
                str(folder / f"pair{turn}"), LIMIT_S, shape, seed, members, texts,
                tuple((theta * full_s).tolist()), tuple((theta * part_s).tolist()),
            )  # fmt: skip
            for worker, task in zip(workers, (go_on, hand_over), strict=True):
                worker.give(task, asked)
            all_said(workers, pool.beats, LIMIT_S, stop)
            all_said(workers[:1], pool.beats, LIMIT_S, stop)
            for worker in workers:
                worker.tell("end")
            found = gather(workers, pool.beats, LIMIT_S, stop)[0]
            run = _run(asked, found, Scale(sigma=sigma, theta=theta), tokens)
            if run.overhead <= OVERHEAD:
                break
            theta *= longer_by(run.overhead)
    return run


def _run(asked: Resume, found: Sequence[Resumed], scale: Scale, tokens: Sequence[int]) -> ResumeRun:
    late_s = np.array([one.late_s for one in found]).mean(axis=0)
    waited_s = sum(one.recompute_s + one.move_s for one in found)
    identities = [
        {"tokens": count, "way": way, **one.model_dump(include={"difference", "gap", "distinct"}), "fault": one.fault}
        for count, resumed in zip(tokens, found, strict=True)
        for way, one in (("recompute", resumed.recomputed), ("move", resumed.moved))
    ]
    return ResumeRun(
        times=pl.DataFrame(
            {
                "tokens": list(tokens),
                "recompute_s": [one.recompute_s / scale.theta for one in found],
                "move_s": [one.move_s / scale.theta for one in found],
            }
        ),
        identity=pl.DataFrame(identities),
        scale=scale,
        overhead=float(max(late_s[0] / min(asked.recompute_s), late_s[1] / min(asked.part_s))),
        waiting_share=1.0 - sum(one.busy_s for one in found) / waited_s,
    )
