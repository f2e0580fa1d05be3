"""What three planners answer for one cluster, as tables: greedy chains, the artifact's lanes, the best chains."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from workbench.catalogue.blitzscale.plan_cluster import Shape
from workbench.errors import UserError
from workbench.scaling.model.chain_times import MOST_NODES, best_chains, chain_times, lane_times, plans_to_try
from workbench.scaling.policy.chain_plan import Holder, Spare, free_sources, grouped, plan_chains
from workbench.scaling.policy.lane_plan import Round, plan_lanes

GREEDY, ARTIFACT, BEST = PLANNERS = ("greedy chains", "artifact's lanes", "best chains")
FEW, MOST = 3000, 60_000
"""Plans that are tried unasked, at every move of a slider, and when they are asked for."""
CARRIES_KV, NO_HOST = "its way out carries KV", "the artifact sends from no host's memory"
SENDS, NOT_NEEDED = "sends", "no chain is left for it"

EDGE = {
    "round": pl.Int64, "chain": pl.Int64, "hop": pl.Int64, "senders": pl.List(pl.String),
    "members": pl.List(pl.String), "from_leaf": pl.Int64, "to_leaf": pl.Int64, "bytes": pl.Float64,
    "complete_s": pl.Float64,
}  # fmt: skip
UPLINK = {"planner": pl.String, "leaf": pl.Int64, "up_bytes": pl.Float64, "down_bytes": pl.Float64}
PLAN = {
    "planner": pl.String, "rounds": pl.Int64, "chains": pl.Int64, "reached": pl.Int64, "last_s": pl.Float64,
    "mean_s": pl.Float64, "uplink_bytes": pl.Float64,
}  # fmt: skip


class Planned(NamedTuple):
    """One planner's answer.

    Attributes:
        planner: its name.
        rounds: chains that run at once, one round after the other.
        size: bytes of the weights.
        seconds: until each node holds the weights, by round, chain and place in the chain.
    """

    planner: str
    rounds: list[Round]
    size: float
    seconds: list[list[list[float]]]

    def edges(self) -> list[dict[str, Any]]:
        """A row for each hop: who sends how much to whom, and when the receivers hold the weights."""
        rows = []
        for number, chains in enumerate(self.rounds):
            carried = self.size / (len(chains) if self.planner == ARTIFACT else 1)
            for index, chain in enumerate(chains):
                before, names = chain.source, [chain.source.name]
                for hop, node in enumerate(chain.nodes):
                    row = {"round": number, "chain": index, "hop": hop, "senders": names, "members": list(node.members)}
                    row |= {"from_leaf": before.leaf, "to_leaf": node.leaf, "bytes": carried}
                    rows.append(row | {"complete_s": self.seconds[number][index][hop]})
                    before, names = node, list(node.members)
        return rows


def planned(
    planner: str, holders: Sequence[Holder], spares: Sequence[Spare], wanted: int, chains: int, prune: bool,
    size: float, between_leaves: float, asked: bool = False,
) -> Planned | None:  # fmt: skip
    """What a planner answers; None where it cannot and nobody asked for it.

    Parameters:
        holders, spares, wanted: as of `plan_chains`.
        chains: of the greedy planner, as many as can be; 0 for one from every source.
        prune: leave out sources whose way out carries KV.
        size, between_leaves: as of `chain_times`.
        asked: raise an error where it cannot answer.

    Raises:
        UserError: too many plans to try, or nobody from whom the artifact sends.
    """
    if planner == ARTIFACT:
        if not asked and not any(one.role == "decode" or (one.role == "prefill" and not prune) for one in holders):
            return None
        rounds = plan_lanes(holders, spares, wanted, prune)
        seconds = lane_times(rounds, size, between_leaves)
        return Planned(planner, rounds, size, [[own] * len(lanes) for own, lanes in zip(seconds, rounds, strict=True)])
    nodes, sources = len(grouped(spares, wanted)), len(free_sources(holders, prune))
    if planner == GREEDY:
        count = min(chains or sources, sources, nodes) or None
        plan = plan_chains(holders, spares, wanted, count, prune)
    else:
        tries = plans_to_try(nodes, sources)
        if nodes > MOST_NODES or tries > (MOST if asked else FEW):
            if not asked:
                return None
            remedy = "want fewer accelerators, or choose another planner"
            raise UserError(f"The best of {tries:.3g} plans would take too long to find; {remedy}.")
        plan = best_chains(holders, spares, wanted, size, between_leaves, prune)
    rounds = [tuple(plan)] if plan else []
    return Planned(planner, rounds, size, [[chain_times(chain, size, between_leaves) for chain in plan]])


def edges_of(plan: Planned) -> pl.DataFrame:
    """The hops of a plan, see `Planned.edges`."""
    return _table(plan.edges(), EDGE)


def places_of(rows: Sequence[Mapping[str, Any]], plan: Planned) -> pl.DataFrame:
    """The accelerators of a cluster; those that a plan reaches with round, chain and whether they serve meanwhile."""
    found: dict[str, dict[str, Any]] = {}
    for number, chains in enumerate(plan.rounds):
        for index, chain in enumerate(chains):
            for name in itertools.chain.from_iterable(node.members for node in chain.nodes):
                found[name] = {"role": "target", "round": number, "chain": index, "live": name in chain.live}
    apart = {"round": -1, "chain": -1, "live": False}
    return pl.DataFrame([{**row, **apart, **found.get(row["name"], {})} for row in rows])


def sources_of(holders: Sequence[Holder], plan: Planned, prune: bool) -> pl.DataFrame:
    """Every copy: whether it sends, and why not."""
    sending = {chain.source.name for chains in plan.rounds for chain in chains}
    left = {holder.name for holder in free_sources(holders, prune)}
    rows = []
    for holder in holders:
        why = SENDS if holder.name in sending else NOT_NEEDED
        pruned = False
        if holder.name not in sending and plan.planner == ARTIFACT and holder.role == "host":
            pruned, why = True, NO_HOST
        elif holder.name not in left and holder.name not in sending:
            pruned, why = True, CARRIES_KV
        rows.append({"name": holder.name, "role": holder.role, "leaf": holder.leaf, "pruned": pruned, "why": why})
    return pl.DataFrame(rows)


def uplinks_of(plans: Sequence[Planned], shape: Shape) -> pl.DataFrame:
    """Bytes that each plan sends up from each leaf switch to the spine, and down to it."""
    rows = []
    for plan in plans:
        crossing = [edge for edge in plan.edges() if edge["from_leaf"] != edge["to_leaf"]]
        for leaf in range(shape.leaf(shape.hosts - 1) + 1):
            up = sum(edge["bytes"] for edge in crossing if edge["from_leaf"] == leaf)
            down = sum(edge["bytes"] for edge in crossing if edge["to_leaf"] == leaf)
            rows.append({"planner": plan.planner, "leaf": leaf, "up_bytes": up, "down_bytes": down})
    return _table(rows, UPLINK)


def plans_of(plans: Sequence[Planned], uplinks: pl.DataFrame) -> pl.DataFrame:
    """A row for each plan: how many chains and rounds, whom it reaches, and when."""
    rows = []
    for plan in plans:
        seconds = [edge["complete_s"] for edge in plan.edges() for _ in edge["members"]]
        up = uplinks.filter(planner=plan.planner)["up_bytes"].sum()
        row = {"planner": plan.planner, "rounds": len(plan.rounds), "chains": max(map(len, plan.rounds))}
        row |= {"reached": len(seconds), "last_s": max(seconds), "mean_s": sum(seconds) / len(seconds)}
        rows.append(row | {"uplink_bytes": up})
    return _table(rows, PLAN)


def _table(rows: list[dict[str, Any]], schema: Mapping[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict(schema))
