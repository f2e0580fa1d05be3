"""A real pool run from outside: one process for all models, another for each model alone, and how they compare."""

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import polars as pl

from workbench.errors import InputError
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.transformer import Identity, NotIdentical, Output, Shape, compare
from workbench.executor.watching import StopWanted
from workbench.pooling.real.asked import BLOCK_TOKENS, Asked, ByChance, ByQuota, Clock, Fault, Kind, Prompt, Turned
from workbench.pooling.real.memory import block_bytes
from workbench.records import Record, whole

LIMIT_S = 300.0
PATIENCE_S = 60.0
"""A process that imports numba, or compiles the kernel of quotas, gives no sign of life meanwhile."""

SLABS_AT_FIRST = 2
"""More slabs than all KV caches at their longest would fill, of each shape."""


class TurnsRun(Record):
    """What happened. Instants are seconds from the first turn's begin on the run's clock, as the run took them.

    Attributes:
        turns: `round, model, left_s, ready_s, end_s, steps, requests, fetched, load_s, moved_s, quota_s, pace`: rounds
            below 0 only measured; a turn's switch is from `left_s`, the end of the step before it, to `ready_s`;
            `pace` is α as Eq 3 has it at the begin of the round, NaN where turns go by chance.
        tokens: `request_id, model, place, time_s, token`.
        outputs: tokens and logits of each request; none where logits were not kept.
        identity: of each model with itself alone; none where logits were not kept.
        tbt_s, quota_s: that quotas aimed at.
        slabs: `block_bytes, used_bytes, slab_bytes` at the moment when most slabs were taken.
        left_bytes: of KV blocks that nobody freed.
        device: that it ran on.
        overhead: share of the wall time between the first turn's begin and the last one's end that is neither a step
            nor a part of a switch: the loop's own work.
        waiting_share: share of the wall time in which the process used no processor.
    """

    turns: pl.DataFrame
    tokens: pl.DataFrame
    outputs: tuple[Output, ...]
    identity: tuple[Identity, ...]
    tbt_s: float
    quota_s: float
    slabs: pl.DataFrame
    left_bytes: int
    device: str
    overhead: float
    waiting_share: float

    @property
    def paces(self) -> pl.DataFrame:
        """Of each model over all rounds by quotas: `model, measured, predicted, over_alpha, rounds`.

        Measured is the rounds' time over the tokens that a request of the model got in them, in units of the promised
        time between tokens; predicted is the mean of α, each of which was known before its round, weighted by the
        rounds' time; then measured over predicted.
        """
        rounds = self.turns.filter(pl.col("round") >= 0)
        length_s = pl.col("end_s").max() - pl.col("left_s").min()
        each = rounds.group_by("round").agg(length_s=length_s, pace=pl.col("pace").first())
        whole_s = float(each["length_s"].sum())
        predicted = float((each["pace"] * each["length_s"]).sum()) / whole_s if len(each) else float("nan")
        found = rounds.group_by("model").agg(measured=whole_s / pl.col("steps").sum() / self.tbt_s).sort("model")
        return found.select(
            "model", "measured", predicted=pl.lit(predicted), over_alpha=pl.col("measured") / predicted,
            rounds=pl.lit(len(each)),
        )  # fmt: skip


def run_turns(
    kinds: Sequence[Kind],
    prompts: Sequence[Prompt],
    turns: ByChance | ByQuota,
    *,
    prefetch: bool = True,
    device: str = "cpu",
    clock: Clock = "wall",
    fault: Fault = "",
    keep: bool = True,
    pool: Pool | None = None,
    stop: StopWanted = None,
) -> TurnsRun:
    """Let several small transformers share one process by turns, and lay what they say beside each of them alone.

    Weights are bump-allocated in one buffer, KV caches leave for slabs of the host at the end of each turn and come
    back at the begin of the next one, and the next model of a round is copied by a side thread (on a GPU: also on a
    stream of its own, from pinned memory).

    Parameters:
        kinds: the models. prompts: requests; the output of each at least 1, prompt and output within the longest.
        turns: how long turns are.
        prefetch, device, clock, fault, keep: see `workbench.pooling.real.asked.Asked`.
        pool: processes to use; by default one is started and ended.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `InputError` for a prompt that its model cannot take; `RunFailed` when the
        process fails.
    """
    if not kinds or not prompts:
        raise InputError("is empty", "give at least one", field="kinds" if not kinds else "prompts")
    for prompt in prompts:
        whole(prompt.model, "model", 0, len(kinds) - 1), whole(prompt.output, "output", 1)
        longest = kinds[prompt.model].shape.longest
        if not 0 < len(prompt.tokens) <= longest - prompt.output:
            problem = f"has {len(prompt.tokens)} tokens of prompt and {prompt.output} of output"
            raise InputError(problem, f"stay within the {longest} that its model takes", field="prompts")
    slab_bytes, slabs = _slabs([kind.shape for kind in kinds], prompts)
    asked = Asked(tuple(kinds), tuple(prompts), turns, prefetch, device, clock, slab_bytes, slabs, fault, keep)
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(1))
        (worker,) = stack.enter_context(pool.lease(1))
        from workbench.pooling.real.turning import alone, take_turns

        worker.give(take_turns, asked)
        (turned,) = gather([worker], pool.beats, LIMIT_S, stop, PATIENCE_S)
        reference = None
        if keep:
            worker.give(alone, asked, turned.tokens)
            (reference,) = gather([worker], pool.beats, LIMIT_S, stop, PATIENCE_S)
    return _report(asked, turned, reference)


def require_same(run: TurnsRun) -> None:
    """Raise `NotIdentical` where a model's requests were answered otherwise than by the model alone."""
    for model, identity in enumerate(run.identity):
        if not identity.holds:
            raise NotIdentical(f"What model {model} said by turns", identity)


def _slabs(shapes: Sequence[Shape], prompts: Sequence[Prompt]) -> tuple[int, int]:
    """Size of a slab, three of the largest blocks and a half so that blocks of most shapes leave a rest; and how many
    slabs hold all caches at their longest, each shape's last one being hardly used."""
    slab = 7 * max(map(block_bytes, shapes)) // 2
    most = SLABS_AT_FIRST * len(shapes)
    for shape, size in zip(shapes, map(block_bytes, shapes), strict=True):
        blocks = sum(-(-shape.longest // BLOCK_TOKENS) for prompt in prompts if shapes[prompt.model] == shape)
        most += -(-blocks // max(1, slab // size - 1))
    return slab, most


def _report(asked: Asked, turned: Turned, reference: list[Output] | None) -> TurnsRun:
    start_s = turned.turns[0].left_s if turned.turns else 0.0
    names = ("number", "model", "left_s", "ready_s", "end_s", "steps", "requests", "fetched", "load_s", "moved_s",
             "quota_s", "pace")  # fmt: skip
    turns = pl.DataFrame(turned.turns, schema=list(names), orient="row").rename({"number": "round"})
    instants = [pl.col(name) - start_s for name in ("left_s", "ready_s", "end_s")]
    rows = [
        (request, asked.prompts[request].model, place, time_s - start_s, token)
        for request, (times, tokens) in enumerate(zip(turned.token_s, turned.tokens, strict=True))
        for place, (time_s, token) in enumerate(zip(times, tokens, strict=True))
    ]
    outputs: list[Output] = []
    identity: list[Identity] = []
    if reference is not None:
        outputs = [
            Output(np.array(tokens), logits) for tokens, logits in zip(turned.tokens, turned.logits, strict=True)
        ]
        for model, same in enumerate(turned.same_bits):
            own = [request for request, prompt in enumerate(asked.prompts) if prompt.model == model]
            if own:
                pairs = [reference[request] for request in own], [outputs[request] for request in own]
                identity.append(compare(*pairs, same_order=same))
    spent_s = sum(turn.end_s - turn.ready_s + turn.load_s + turn.moved_s for turn in turned.turns)
    turning_s = turned.turns[-1].end_s - start_s if turned.turns else 1.0
    return TurnsRun(
        turns=turns.with_columns(instants),
        tokens=pl.DataFrame(rows, schema=["request_id", "model", "place", "time_s", "token"], orient="row"),
        outputs=tuple(outputs),
        identity=tuple(identity),
        tbt_s=turned.tbt_s,
        quota_s=turned.quota_s,
        slabs=pl.DataFrame(
            [(size, *pair) for size, pair in sorted(turned.slabs.items())],
            schema={"block_bytes": pl.Int64, "used_bytes": pl.Int64, "slab_bytes": pl.Int64}, orient="row",
        ),
        left_bytes=turned.left_bytes,
        device=asked.device,
        overhead=max(0.0, 1.0 - spent_s / turning_s),
        waiting_share=max(0.0, 1.0 - turned.busy_s / turned.wall_s),
    )  # fmt: skip
