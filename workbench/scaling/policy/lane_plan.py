"""Which instance sends which stripe of the weights to which: the plan of BlitzScale's artifact.

Source: BlitzScale's artifact (exec_blitz.rs), as described in notes on BlitzScale, §2.3. It knows no leaf switch, no
order of bandwidths and no copy in host memory. What comes before (instances that drain are taken back, warm ones are
used again, a host that holds the model spreads it inside) is not part of this plan.
"""

from collections.abc import Sequence

from workbench.errors import InputError
from workbench.scaling.policy.chain_plan import Chain, Holder, Node, Spare, check_parts

Round = tuple[Chain, ...]
"""Lanes that run at the same time. Each is a chain that carries its own stripe, one of as many as there are lanes, past
one accelerator of each domain; inside a domain the stripes are gathered over its scale-up links."""


def plan_lanes(
    holders: Sequence[Holder], spares: Sequence[Spare], wanted: int, direction_aware: bool = True
) -> list[Round]:
    """Which lanes bring the weights to `wanted` spare accelerators, round after round?

    Lanes of a round: the least of the sources, the accelerators still wanted and the spare ones of the domain that has
    most. Domains are taken by rising number of spare accelerators; each that has enough gives exactly one to every
    lane, until no more are wanted, so a round may reach up to lanes - 1 too many. The planner waits for the end of a
    round before it plans the next.

    Parameters:
        holders, spares: what there is; accelerators of one domain are one host's.
        wanted: accelerators to reach.
        direction_aware: send from decode instances alone; else prefill instances come first (the artifact's setting
            `unidirect`, which its ablation uses).

    Raises:
        InputError: no instance that may send, a name given twice, fewer spares than wanted.
    """
    check_parts(holders, spares, wanted)
    roles = ("decode",) if direction_aware else ("prefill", "decode")
    sources = [holder for role in roles for holder in holders if holder.role == role]
    if not sources:
        raise InputError(
            f"have no {' or '.join(roles)} instance, and the artifact sends from nothing else",
            "add one, or take another planner",
            field="holders",
        )
    free: dict[int, list[Spare]] = {}
    for spare in spares:
        free.setdefault(spare.domain, []).append(spare)
    rounds: list[Round] = []
    left = wanted
    while left > 0:
        lanes = min(len(sources), left, max(map(len, free.values())))
        columns: list[list[Spare]] = []
        for group in sorted(free.values(), key=len):
            if len(group) >= lanes and left > 0:
                columns.append(group[:lanes])
                del group[:lanes]
                left -= lanes
        rounds.append(
            tuple(
                Chain(source=source, nodes=tuple(_alone(column[lane]) for column in columns))
                for lane, source in enumerate(sources[:lanes])
            )
        )
    return rounds


def _alone(spare: Spare) -> Node:
    return Node(members=(spare.name,), leaf=spare.leaf, bytes_per_s=spare.bytes_per_s)
