"""Serve requests while the model is multicast to the nodes that are to serve them, and go on when one is lost."""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

from workbench.errors import InputError, UnknownName, UserError
from workbench.executor.faults import Fault, Kill, ProcessLost, Stop
from workbench.executor.processes import Pool
from workbench.executor.scale import Scale
from workbench.executor.transformer import ModelFiles
from workbench.executor.transformer_serving.orders import MOST_IN_BATCH, Pace, Replace
from workbench.executor.watching import HEARTBEAT_S, StopWanted
from workbench.records import positive, whole
from workbench.scaling.model import ScaleOut
from workbench.scaling.real.book import Book
from workbench.scaling.real.manager import Manager, PhaseEnd, Watching
from workbench.scaling.real.outcome import LiveRun, Mode, Prompt
from workbench.scaling.real.planning import Operation, first_phase, second_phase
from workbench.scaling.real.reporting import report

SPARE_S = 60.0


def serve_while_loading(
    asked: ScaleOut,
    model: ModelFiles,
    prompts: Sequence[Prompt],
    pace: Pace,
    scale: Scale,
    mode: Mode = "pipelines",
    *,
    batch: int = 4,
    fault: Fault | Replace | None = None,
    held: Sequence[ModelFiles] = (),
    device: str = "cpu",
    timeout_s: float | None = None,
    heartbeat_s: float = HEARTBEAT_S,
    pool: Pool | None = None,
    stop: StopWanted = None,
) -> LiveRun:
    """How soon do requests get their first tokens while the nodes that are to serve them still load?

    Sources send the model's block files over paced links in the scale-out's order; each node is a process. Nodes that
    hold the model jointly serve in a pipeline: activations travel between them, caches stay where they were made. When
    all members of a pipeline are complete it dissolves: a request goes on at one of them, which computes its cache anew
    by one prefill over prompt and output so far. All requests are there at the start. Every block is checked before it
    is loaded or sent. A node that dies or hangs ends the phase: the survivors complete each other in a new group, and
    what was being said is said to its end by nodes that have everything.

    Parameters:
        asked: the scale-out at full size; its execution and transfer blocks are the blocks of `model`.
        model: what really moves; its `len(blocks)` is `asked.blocks` times `asked.parts`.
        prompts: the requests.
        pace: how long computing takes at full size.
        scale: θ; σ follows from the two sizes and is refused where it differs.
        mode: see `Mode`.
        batch: most requests that go through a pass together.
        fault: to plant: `Kill` or `Stop` of a node at seconds of the run, `Flip` or `Swap` of what reaches a node, or
            `Replace`.
        held: what each source has on disk; by default the model.
        device: where nodes compute, "cpu" or "cuda".
        timeout_s: longest time of a phase.
        heartbeat_s: silence after which a process counts as hung.
        pool: processes to use; by default some are started and ended.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `InputError` for impossible parameters; `BlockRefused` for wrong bytes or
        another version; `BlocksLost` where nobody left held a block; `ProcessLost` where nobody is left to serve;
        `RunFailed` when it takes too long or a link fails; `RunStopped` when `stop` says so.
    """
    if mode not in get_args(Mode):
        raise UnknownName("mode of serving", mode, get_args(Mode))
    operation = Operation(asked, model, _checked(prompts, model), pace, scale, mode, tuple(held), device)
    batch = whole(batch, "batch", 1, MOST_IN_BATCH)
    first = first_phase(operation, fault)
    limit_s = first.link_s + SPARE_S if timeout_s is None else positive(timeout_s, "timeout_s")
    watching = Watching(limit_s, positive(heartbeat_s, "heartbeat_s"), stop)
    with ExitStack() as stack:
        pool = pool or stack.enter_context(Pool(operation.nodes))
        workers = stack.enter_context(pool.lease(operation.nodes))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True)))
        book, drills = Book(prompts), (fault,) if isinstance(fault, Kill | Stop) else ()
        plans = first.plans(str(folder / "first"), limit_s)
        manager = Manager(workers, plans, first.pipelines, operation.targets, book, batch, watching)
        ends = [manager.run(pool.beats, drills)]
        phases = [first]
        if drills and not ends[0].losses:
            raise UserError(f"The run was over before the fault at {fault.at_s:g} s; plan the fault earlier.")
        if ends[0].losses:
            phases.append(second_phase(first, ends[0]))
            workers = [worker for worker in workers if worker.number in ends[0].reports]
            plans = phases[1].plans(str(folder / "second"), limit_s)
            manager = Manager(workers, plans, (), phases[1].targets, book, batch, watching)
            ends.append(manager.run(pool.beats))
            _refuse_another(ends[1])
    return report(operation, phases, ends, book)


def _checked(prompts: Sequence[Prompt], model: ModelFiles) -> tuple[Prompt, ...]:
    if not prompts:
        raise InputError("is empty", "give at least one request", field="prompts")
    for row, prompt in enumerate(prompts, start=1):
        whole(prompt.output, "output", 1)
        if not prompt.tokens or not all(0 <= token < model.shape.vocabulary for token in prompt.tokens):
            remedy = f"give at least one token, each below {model.shape.vocabulary}"
            raise InputError("has no token, or one outside the vocabulary", remedy, row=row, field="prompts")
        if len(prompt.tokens) + prompt.output > model.shape.longest:
            remedy = f"stay within the model's {model.shape.longest}"
            raise InputError(f"has {len(prompt.tokens) + prompt.output} tokens", remedy, row=row, field="prompts")
    return tuple(prompts)


def _refuse_another(end: PhaseEnd) -> None:
    if end.losses:
        loss = end.losses[0]
        rest = "the others were completing after an earlier loss and gave up; run it again"
        raise ProcessLost(loss.node, loss.kind, loss.noticed_s - end.start_s, None, rest)
