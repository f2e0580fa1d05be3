"""How long jobs compute in blocks of a transformer on this machine: readings of one process."""

from collections.abc import Sequence

from workbench.executor.chain_serving.profiling import Measured, job_seconds
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.transformer import Shape
from workbench.executor.watching import StopWanted

LIMIT_S = 600.0


def profile_jobs(
    jobs: Sequence[tuple[int, int, int]], *, hidden: int, rounds: int, seed: int, pool: Pool, stop: StopWanted = None
) -> Measured:
    """How long do jobs compute on this machine, each alone, in one process with one thread?

    Parameters:
        jobs: (blocks, tokens in, tokens out) of each.
        hidden: width of an activation, a multiple of 16; the feed-forward part is 2.7 times as wide.
        rounds: readings of each job; one more round before them warms up.
        seed: of weights, activations and the order within each round.
        pool: a process of it computes.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `RunFailed` when it takes longer than ten minutes; `RunStopped` when `stop`
        says so.
    """
    shape = Shape(
        layers=max(blocks for blocks, _, _ in jobs), hidden=hidden, ffn=round(2.7 * hidden), vocabulary=16,
        longest=max(tokens_in + tokens_out for _, tokens_in, tokens_out in jobs),
    )  # fmt: skip
    with pool.lease(1) as workers:
        workers[0].give(job_seconds, shape, list(jobs), rounds, seed)
        return gather(workers, pool.beats, LIMIT_S, stop)[0]
