"""Real processes share batches while the weights come: an old instance, a new one, and whoever sends the weights."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import chain

import numpy as np
import polars as pl

from workbench.errors import InputError, UserError
from workbench.executor.faults import Kill, Stop
from workbench.executor.gathering import gather
from workbench.executor.instances.orders import Batch, InstancePlan
from workbench.executor.processes import Pool
from workbench.executor.scale import LARGEST_THETA, OVERHEAD, ROOM, TRIES, Scale, longer_by
from workbench.executor.transformer import ModelFiles
from workbench.executor.transformer_serving.orders import Replace
from workbench.executor.transformer_serving.timing import pass_seconds
from workbench.executor.watching import HEARTBEAT_S, StopWanted
from workbench.records import positive, whole
from workbench.scaling.real.live_copies import Copies
from workbench.scaling.real.live_director import Director
from workbench.scaling.real.live_ended import Ended
from workbench.scaling.real.live_outcome import Cancel, LiveScaleOut, LiveShare
from workbench.scaling.real.manager import Watching
from workbench.scaling.real.outcome import spoken
from workbench.scaling.real.scaled import LIMIT_S

SPARE_S = 60.0
SHORTEST_LAYER_S = 0.08
"""Chosen: steps of two processes follow each other by the dozen, each a fraction of a millisecond late."""

PIECES = 8
"""Into how many pieces a layer is cut on its way: a hop of a chain then costs an eighth of a layer."""

Planted = Kill | Stop | Cancel | Replace


def share_for_real(
    asked: LiveScaleOut,
    model: ModelFiles,
    batches: Sequence[Batch],
    scale: Scale,
    unit_s: float = 1.0,
    *,
    follow: int = 15,
    faults: Sequence[Planted] = (),
    serving: ModelFiles | None = None,
    held: ModelFiles | None = None,
    device: str = "cpu",
    timeout_s: float | None = None,
    heartbeat_s: float = HEARTBEAT_S,
    pool: Pool | None = None,
    stop: StopWanted = None,
) -> LiveShare:
    """When are batches done that an old instance shares with one whose layers still come, in real processes?

    Each node is a process. Weights travel block by block from the source's cards, and down each chain piece by piece;
    a layer counts when its block is whole, its SHA-256 is right and it is loaded. The same policy that formula and
    simulation ask (`workbench.scaling.policy.live_pair`) says who runs which layer; each is really computed, and then
    held for the time of a layer. A batch that goes on at the old instance takes its activation along. At the end both
    halves of every cache go to one node, which says what follows. Nodes between a source and a tail serve whole batches
    once they are complete.

    Where a node is lost its receivers go on from another copy (`workbench.scaling.model.parameter_pool`), and what was
    computed on it is computed again. Where a load is cancelled its node hands over what it has begun.

    Parameters:
        asked: what is asked for; its layers are the blocks of `model`. Time 0 is when the first layer is at the tails,
            as in the formula; a load time of 0 means that all layers are there.
        model: what really moves, one layer a block.
        batches: prompts of each batch of each pair, pair by pair.
        scale: θ, and σ for the record.
        unit_s: seconds at full size of one unit of the times that are asked for. (What happens at one instant in whole
            layer times, where formula and simulation have rules for it, is a rounding apart in seconds.)
        follow: tokens that are said after the first.
        faults: what goes wrong on purpose, `Kill`, `Stop` and `Cancel` at seconds of the run after time 0.
        serving: what the old instances serve, by default the model; another version must not be mixed with it.
        held: what the source has on disk, by default the model.
        device: where nodes compute, "cpu" or "cuda".
        timeout_s, heartbeat_s: as in `workbench.scaling.real.serve_while_loading`.
        pool: processes to use; by default some are started and ended.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `InputError` for impossible parameters; `BlockRefused` for wrong bytes or
        another version of a block; `Refusal` for an activation of another version; `BlocksLost` where nobody left
        holds the weights; `ProcessLost` where nobody is left to serve; `RunFailed` when it takes too long; `RunStopped`
        when `stop` says so.
    """
    batches = _checked(asked, model, batches, follow, faults)
    own = serving or model
    if own.shape != model.shape:
        raise InputError("has another shape", "take a model of the same shape", field="serving")
    unit_s = scale.theta * positive(unit_s, "unit_s")
    layer_s, hand_s = unit_s * asked.pair.arrays[2], unit_s * asked.pair.arrays[3]
    load_s = unit_s * asked.pair.load_s
    limit_s = SPARE_S + 4 * asked.pair.layers * (load_s + float(np.sum(layer_s + hand_s)))
    limit_s = limit_s if timeout_s is None else positive(timeout_s, "timeout_s")
    watching = Watching(limit_s, positive(heartbeat_s, "heartbeat_s"), stop)
    files, sender = (tuple(block.path for block in one.blocks) for one in (own, held or model))
    there = sender if load_s == 0 else ()
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(asked.nodes))
        workers = stack.enter_context(pool.lease(asked.nodes))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True))

        def plan(node: int) -> InstancePlan:
            old = node in asked.old
            return InstancePlan(
                folder=folder,
                model=own if old else model,
                files=sender if node == 0 else files if old else () if node in asked.hosts else there,
                computes=node != 0 and node not in asked.hosts,
                batches=batches,
                layer_s=tuple(layer_s.tolist()) * asked.chains,
                hand_s=tuple(hand_s.tolist()) * asked.chains,
                block_s=load_s,
                pieces=PIECES,
                cards=asked.chains if node == 0 else 1,
                capacity=max(map(len, chain(*batches))) + 1 + follow,
                device=device,
                faults=tuple(fault for fault in faults if isinstance(fault, Replace) and fault.node == node),
            )

        copies = Copies(asked, float(model.bytes), 0.0)
        drills = [fault for fault in faults if not isinstance(fault, Replace)]
        plans = {node: plan(node) for node in range(asked.nodes)}
        ended = Director(workers, plans, asked, unit_s, copies, follow, drills, watching).run(pool.beats)
    if len(ended.losses) < len(drills):
        last_s = max(drill.at_s for drill in drills)
        raise UserError(f"The run was over before the fault at {last_s:g} s; plan the fault earlier.")
    return _record(asked, model, scale, unit_s, copies, ended)


def share_scaled(
    asked: LiveScaleOut,
    model: ModelFiles,
    batches: Sequence[Batch],
    unit_s: float,
    full_bytes: float,
    *,
    pool: Pool,
    stop: StopWanted = None,
    scale: Scale | None = None,
) -> LiveShare:
    """`share_for_real` at a scale that this machine keeps up with.

    θ is the smallest at which no layer is held for less than `SHORTEST_LAYER_S`, and none is computed past its time. A
    run whose own overhead exceeds 5 % is repeated with a larger θ, at most three runs in all; the last is returned
    whatever its overhead, which it states.

    Parameters: as of `share_for_real`; `full_bytes` are those of a model of full size, `scale` is where to begin.

    Errors: as of `share_for_real`, and `UserError` where θ would exceed 100.
    """
    scale = scale or _scale(asked, model, batches, unit_s, full_bytes, pool, stop)
    for turn in range(TRIES):
        run = share_for_real(asked, model, batches, scale, unit_s, pool=pool, stop=stop)
        if run.overhead <= OVERHEAD or turn + 1 == TRIES:
            break
        scale = Scale(sigma=scale.sigma, theta=min(LARGEST_THETA, longer_by(run.overhead) * scale.theta))
    return run


def _scale(
    asked: LiveScaleOut,
    model: ModelFiles,
    batches: Sequence[Batch],
    unit_s: float,
    full_bytes: float,
    pool: Pool,
    stop: StopWanted,
) -> Scale:
    most = max(batches, key=lambda batch: sum(map(len, batch)))
    with pool.lease(1) as workers:
        workers[0].give(pass_seconds, model.shape, [(len(most), max(map(len, most)))])
        (took_s,) = gather(workers, pool.beats, LIMIT_S, stop)[0]
    layer_s = unit_s * float(asked.pair.arrays[2].min())
    theta = max(1.0, SHORTEST_LAYER_S / layer_s, ROOM * took_s / asked.pair.layers / layer_s)
    if theta > LARGEST_THETA:
        raise UserError(
            f"A layer takes {layer_s:.3g} s at full size and at least {SHORTEST_LAYER_S:g} s here: time would have "
            f"to be stretched {theta:.0f} times, more than {LARGEST_THETA:.0f}; take larger batches."
        )
    return Scale(sigma=full_bytes / model.bytes, theta=theta)


def _checked(
    asked: LiveScaleOut, model: ModelFiles, batches: Sequence[Batch], follow: int, faults: Sequence[Planted]
) -> tuple[Batch, ...]:
    if len(model.blocks) != asked.pair.layers or model.shape.layers != asked.pair.layers:
        raise InputError(
            f"has {model.shape.layers} layers in {len(model.blocks)} blocks",
            f"cut one of {asked.pair.layers} layers into as many blocks", field="model",
        )  # fmt: skip
    wanted = asked.chains * len(asked.pair.arrival_s)
    if len(batches) != wanted:
        raise InputError(f"holds {len(batches)} batches", f"give {wanted}", field="batches")
    longest = model.shape.longest - 1 - whole(follow, "follow")
    for row, batch in enumerate(batches, start=1):
        if not batch or not all(0 < len(prompt) <= longest for prompt in batch):
            raise InputError("has no prompts, or one of no or too many tokens", f"give 1 to {longest}", row=row)
        if not all(0 <= token < model.shape.vocabulary for prompt in batch for token in prompt):
            remedy = f"give tokens below {model.shape.vocabulary}"
            raise InputError("holds a token outside the vocabulary", remedy, row=row, field="batches")
    for fault in faults:
        nodes = asked.tails if isinstance(fault, Cancel) else range(asked.nodes)
        if fault.node not in nodes:
            raise InputError(f"is {fault.node}", f"name one of {', '.join(map(str, nodes))}", field="fault.node")
    return tuple(tuple(map(tuple, batch)) for batch in batches)


def _record(
    asked: LiveScaleOut, model: ModelFiles, scale: Scale, unit_s: float, copies: Copies, ended: Ended
) -> LiveShare:
    start_s, count = ended.start_s, len(asked.pair.arrival_s)

    def at(instant_s: float) -> float:
        return (instant_s - start_s) / unit_s

    keys = [(pair, batch) for pair in range(asked.chains) for batch in range(count)]
    queues = ended.queues
    wall_s = max([*(end_s for *_, end_s in ended.slots), *ended.took.values()]) - start_s
    busy_s = sum(report.busy_s for report in ended.reports.values()) / len(ended.reports)
    late = [np.mean(ended.late_s) / (unit_s * asked.pair.arrays[2].min())]
    if blocks_late_s := [value for report in ended.reports.values() for value in report.late_s]:
        late.append(np.mean(blocks_late_s) / (unit_s * asked.pair.load_s))
    outputs = []
    for key in keys:
        for first, rest in zip(ended.logits[key], ended.said[key], strict=True):
            outputs.append(spoken([(int(one.argmax()), one) for one in (first, *rest)]))
    return LiveShare(
        asked=asked,
        version=model.version,
        batches=pl.DataFrame(
            {
                "pair": [pair for pair, _ in keys],
                "batch": [batch for _, batch in keys],
                "arrival_s": list(asked.pair.arrival_s) * asked.chains,
                "finish_s": [at(ended.finish_s[pair][batch]) for pair, batch in keys],
                "moved": [int(queues[pair].moved[batch]) for pair, batch in keys],
                "by": [int(queues[pair].by[batch]) for pair, batch in keys],
                "turn": [int(queues[pair].turn[batch]) for pair, batch in keys],
            }
        ),
        slots=pl.DataFrame(
            [(*who, at(begin_s), at(end_s)) for *who, begin_s, end_s in ended.slots],
            schema={
                "pair": pl.Int64, "instance": pl.String, "batch": pl.Int64, "start_s": pl.Float64, "end_s": pl.Float64,
            },
            orient="row",
        ).sort("pair", "start_s", "instance"),
        blocks=pl.DataFrame(
            [(node, block, at(instant_s)) for (node, block), instant_s in ended.took.items()],
            schema={"node": pl.Int64, "block": pl.Int64, "time_s": pl.Float64},
            orient="row",
        ).sort("node", "block"),
        copies=pl.DataFrame(
            [(max(0.0, at(now_s)), step.kind, step.copy.host, step.copy.instance) for now_s, step in copies.log],
            schema={"time_s": pl.Float64, "kind": pl.String, "host": pl.String, "instance": pl.String},
            orient="row",
        ),
        losses=pl.DataFrame(
            [(at(loss.at_s), loss.node, loss.kind) for loss in ended.losses],
            schema={"time_s": pl.Float64, "node": pl.Int64, "kind": pl.String},
            orient="row",
        ),
        outputs=tuple(outputs),
        scale=scale,
        unit_s=unit_s,
        overhead=float(max(late)),
        waiting_share=max(0.0, 1.0 - busy_s / wall_s),
        wall_s=wall_s,
    )  # fmt: skip
