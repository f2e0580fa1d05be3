"""From what the orchestrator heard to the record of a run, and to whether it said the right things."""

from collections.abc import Mapping

import numpy as np
import polars as pl

from workbench.chains.real.orchestrator import Orchestrator
from workbench.chains.real.outcome import ChainRun
from workbench.chains.real.planning import Work
from workbench.executor.chain_serving.orders import ServerReport
from workbench.executor.chain_serving.server import right_logits
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.scale import Scale
from workbench.executor.transformer import Identity, NotIdentical, Output, Shape, compare

LIMIT_S = 120.0


def report(work: Work, run: Orchestrator, reports: Mapping[int, ServerReport], theta: float) -> ChainRun:
    """The record of a run; servers that were lost have no report."""
    wall_s = max(job.finish_s for job in run.jobs) - run.start_s
    jobs = [
        (
            number,
            " - ".join(f"j{server + 1}" for server in job.chain.servers),
            float(work.jobs.arrival_s[number]),
            (job.start_s - run.start_s) / theta,
            (job.finish_s - run.start_s) / theta,
            job.attempt,
        )
        for number, job in enumerate(run.jobs)
    ]
    tokens = [
        (number, place, (at_s - run.start_s) / theta, token)
        for number, job in enumerate(run.jobs)
        for place, (at_s, token, _) in enumerate(job.said)
    ]
    made = work.composition
    servers = [
        (
            j,
            int(made.placement.blocks[j]),
            int(made.slots[j]),
            one.most_slots,
            one.left,
            one.passes,
            one.held_s / wall_s,
        )
        for j, one in sorted(reports.items())
    ]
    columns = ["server", "blocks", "slots", "most_slots", "sessions_left", "passes", "held_share"]
    return ChainRun(
        jobs=pl.DataFrame(jobs, ["job", "servers", "arrival_s", "start_s", "finish_s", "attempts"], orient="row"),
        tokens=pl.DataFrame(tokens, ["job", "place", "time_s", "token"], orient="row"),
        servers=pl.DataFrame(servers, columns, orient="row"),
        outputs=tuple(
            Output(np.array([token for _, token, _ in job.said]), np.stack([logits for _, _, logits in job.said]))
            for job in run.jobs
        ),
        prompts=work.prompts,
        scale=Scale(theta=theta),
        overhead=sum(run.late_s) / sum(run.hold_s),
        waiting_share=max(0.0, 1 - sum(one.busy_s for one in reports.values()) / len(reports) / wall_s),
        losses=tuple(run.losses),
    )


def check_outputs(run: ChainRun, shape: Shape, seed: int, pool: Pool) -> Identity:
    """Did jobs say what the model says that is never cut, queued or interrupted?

    One process has all blocks and goes through every text once, whole; so where all tokens of a run are its choices,
    the run said what an undisturbed one says.

    Parameters:
        run: whose outputs are in question.
        shape, seed: of its model.
        pool: a process of it computes.

    Errors: `NotIdentical` where logits or tokens differ by more than `Identity` allows.
    """
    texts = [(prompt, tuple(output.tokens.tolist())) for prompt, output in zip(run.prompts, run.outputs, strict=True)]
    with pool.lease(1) as workers:
        workers[0].give(right_logits, shape, seed, texts)
        kept, logits = gather(workers, pool.beats, LIMIT_S)[0]
    right = [Output(output.tokens, found) for output, found in zip(run.outputs, logits, strict=True)]
    identity = compare(right, run.outputs, same_order=kept)
    if not identity.holds:
        raise NotIdentical("What chains of servers said", identity)
    return identity
