"""The smallest stretching of time at which this machine serves and loads punctually."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from workbench.errors import UserError
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.scale import LARGEST_THETA, OVERHEAD, ROOM, SHORTEST_STEP_S, TRIES, Scale, longer_by
from workbench.executor.transformer import ModelFiles
from workbench.executor.transformer_serving.orders import Pace
from workbench.executor.transformer_serving.timing import pass_seconds
from workbench.executor.watching import StopWanted
from workbench.scaling.model import ScaleOut
from workbench.scaling.real.live import serve_while_loading
from workbench.scaling.real.outcome import LiveRun, Prompt

LIMIT_S = 60.0


def choose_live_scale(
    asked: ScaleOut,
    model: ModelFiles,
    prompts: Sequence[Prompt],
    pace: Pace,
    batch: int,
    pool: Pool,
    stop: StopWanted = None,
) -> Scale:
    """σ of a model, and the smallest θ at which no step is shorter than 20 ms and no pass computes past its time.

    Parameters: as of `serve_while_loading`; the longest prompts and a decoding step of a full batch are timed.

    Errors: `UserError` where θ would exceed 100.
    """
    longest, most = max(len(prompt.tokens) for prompt in prompts), min(batch, len(prompts))
    passes = [(most, longest), (most, 1)]
    with pool.lease(1) as workers:
        workers[0].give(pass_seconds, model.shape, passes)
        took_s = gather(workers, pool.beats, LIMIT_S, stop)[0]
    smallest = min(block.size for block in model.blocks)
    sigma = asked.weight_bytes / model.bytes
    step_s = asked.alpha_s + sigma * smallest / asked.bytes_per_s
    by_pass = max(
        ROOM * seconds / pace.pass_s(requests * tokens)
        for seconds, (requests, tokens) in zip(took_s, passes, strict=True)
    )
    theta = max(1.0, SHORTEST_STEP_S / step_s, by_pass)
    if theta > LARGEST_THETA:
        raise UserError(
            f"A step takes {step_s:.3g} s at full size and at least {SHORTEST_STEP_S:g} s here, a pass takes "
            f"{max(took_s):.3g} s here: time would have to be stretched {theta:.0f} times, more than "
            f"{LARGEST_THETA:.0f}; use fewer blocks, slower links, shorter prompts or smaller batches."
        )
    return Scale(sigma=sigma, theta=theta)


def serve_scaled(
    asked: ScaleOut,
    model: ModelFiles,
    prompts: Sequence[Prompt],
    pace: Pace,
    *,
    batch: int = 4,
    pool: Pool | None = None,
    stop: StopWanted = None,
    scale: Scale | None = None,
    **options: Any,
) -> LiveRun:
    """`serve_while_loading` at a scale that this machine keeps up with.

    A run whose own overhead exceeds 5 % is repeated with a larger θ, at most three runs in all; the last is returned
    whatever its overhead, which it states.

    Parameters: as of `serve_while_loading`; `scale` is where to begin, measured when not given.
    """
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(min(asked.sources, asked.targets) + asked.targets))
        scale = scale or choose_live_scale(asked, model, prompts, pace, batch, pool, stop=stop)
        for _ in range(TRIES):
            run = serve_while_loading(asked, model, prompts, pace, scale, batch=batch, pool=pool, stop=stop, **options)
            if run.overhead <= OVERHEAD:
                break
            scale = Scale(sigma=scale.sigma, theta=min(LARGEST_THETA, longer_by(run.overhead) * scale.theta))
    return run
