"""A new schedule for the survivors when nodes have died in the middle of a multicast."""

from collections.abc import Iterable

import numpy as np

from workbench.errors import WorkbenchError
from workbench.records import whole
from workbench.transfer.policy.check import check_columns, held_of
from workbench.transfer.policy.schedule import Schedule, from_transfers


def replan(schedule: Schedule, dead: Iterable[int], held: np.ndarray) -> Schedule:
    """Complete the survivors from what they hold jointly, by a path that avoids the dead nodes.

    Greedy and one-port: in every step the node that lacks most takes the rarest block that a free survivor held before
    the step (ties to lower numbers). The result keeps the node and block numbers; check it with
    `check(plan, held=held, absent=dead)`. No claim of optimality.

    Parameters:
        schedule: the interrupted schedule.
        dead: nodes that are gone.
        held: bool (nodes, blocks), which complete blocks each node holds now.

    Raises:
        `WorkbenchError` when a block has no surviving copy; `InputError` when `held` has the wrong shape or a dead
        node does not exist.
    """
    check_columns(schedule)
    gone = {whole(node, "dead", 0, schedule.nodes - 1) for node in dead}
    have = held_of(schedule, held)
    have[sorted(gone)] = False
    alive = [node for node in range(schedule.nodes) if node not in gone]
    if lost := np.flatnonzero(~have.any(axis=0)).tolist():
        raise WorkbenchError(
            f"No survivor of {schedule.name!r} holds block {lost[0]} ({len(lost)} blocks lost with "
            f"{_named(sorted(gone))}); load them from another copy."
        )
    rows: list[tuple[int, int, int, int]] = []
    step = 0
    while not have[alive].all():
        moves = _one_step(have, alive)
        rows += [(step, *move) for move in moves]
        for _, target, block in moves:
            have[target, block] = True
        step += 1
    holders = tuple(node for node in alive if np.asarray(held)[node].all())
    return from_transfers(f"{schedule.name} replanned", schedule.nodes, schedule.blocks, holders, rows)


def _one_step(have: np.ndarray, alive: list[int]) -> list[tuple[int, int, int]]:
    """Moves (source, target, block) of one step, from what was held before it."""
    copies = have.sum(axis=0)
    free = list(alive)
    moves = []
    for target in sorted(alive, key=lambda node: (have[node].sum(), node)):
        wanted = np.flatnonzero(~have[target])
        for block in wanted[np.argsort(copies[wanted], kind="stable")].tolist():
            able = [node for node in free if have[node, block]]
            if able:
                source = min(able, key=lambda node: (have[node].sum(), node))  # who holds little can help few others
                moves.append((source, target, block))
                free.remove(source)
                copies[block] += 1
                break
    return moves


def _named(nodes: list[int]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"nodes {', '.join(map(str, nodes))}"
