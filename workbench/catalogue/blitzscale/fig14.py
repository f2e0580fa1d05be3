"""Figure 14: every accelerator pair of two hosts carries its share, then the target host gathers the shares."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import curve_rows, headline
from workbench.catalogue.links import link_cost
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.spec import Agree, Assumption, Match, experiment
from workbench.errors import UserError
from workbench.profiles import Cluster
from workbench.transfer.model import lanes_completion_s, network_of, two_level
from workbench.transfer.policy import make_schedule
from workbench.transfer.simulated import simulate

AFTER, OVERLAPPED = "gather after the lanes", "gather overlapped"
PIECES = 32
_PAPER = "OSDI'25 paper §5.1, Fig 14"

SHARE = "time with one lane per GPU over time with one lane"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["lanes"].filter(pl.col("backend") == tables["lanes"]["backend"][0])
    rows = {(row["plan"], row["lanes"]): row["complete_s"] for row in table.to_dicts()}
    most, one = max(table["lanes"]), rows[OVERLAPPED, 1]
    return (
        f"{name_of(parameters['model'])} takes {one:.2f} s over one lane; over {most} it takes "
        f"{rows[OVERLAPPED, most] / one:.3f} of that with the gather overlapped, {rows[AFTER, most] / one:.3f} with it "
        "afterwards."
    )


@experiment(
    "blitzscale/fig14",
    title="Sharded lanes and a local all-gather",
    question="How much faster are g network cards than one, when the target host has to gather the shares itself?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.02, "simpy": 2.0},
    draw="chains.lanes",
    panels=("seconds", "share"),
    say=_say,
    matches=(
        Match(tolerance=0.1, assumptions=(Assumption("the all-gather overlaps with the lanes", {"overlap": False}),)),
    ),
    agrees=(
        Agree(
            "time by number of lanes", "lanes", ("lanes", "plan"), "complete_s", {("analytic", "simpy"): (-1e-9, 1e-9)}
        ),
    ),
)
def fig14(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster", profile="cluster", status="published", source=f"{_PAPER}; Table 1, cluster A")
    ] = "blitzscale-a",
    model: Annotated[
        str, Par("Model", profile="model", free=True, status="published", source="OSDI'25 paper §6")
    ] = "qwen2.5-72b",
    overlap: Annotated[bool, Par("Judge the overlapped gather", source="the artifact overlaps it")] = True,
) -> dict[str, pl.DataFrame]:
    """Seconds from host to host for g = 1, 2, 4, … lanes: gather afterwards, or overlapped piece by piece."""
    profile, size = context.cluster(cluster), context.model(model).weight_bytes
    nic = link_cost(context, profile, "nominal").bytes_per_s
    local = _local_rate(context, profile)
    lanes = [g for g in (1, 2, 4, 8, 16) if g <= profile.host.accelerators and g <= profile.host.nics]
    rows = []
    for g in lanes:
        for plan in (AFTER, OVERLAPPED):
            context.tell(f"{g} lanes, {plan}")
            seconds = _seconds(context, profile, plan, g, size, nic, local)
            rows.append({"lanes": g, "plan": plan, "complete_s": seconds})
    one_lane = pl.col("complete_s").first().over("plan")
    table = pl.DataFrame(rows).with_columns(share=pl.col("complete_s") / one_lane)
    wanted = table.filter(pl.col("plan") == (OVERLAPPED if overlap else AFTER))
    known = [(SHARE, f"{g} GPUs", value, "1") for g, value in wanted.select("lanes", "share").rows()]
    known += curve_rows(table, "plan", "lanes", "complete_s", "s")
    return {"lanes": table, "headline": headline(known)}


def _local_rate(context: Context, cluster: Cluster) -> float:
    host = cluster.host
    if host.accelerators > 1 and host.scale_up is None:
        raise UserError(f"Cluster {cluster.name} states no link between the accelerators of a host; choose another.")
    if host.accelerators == 1:
        raise UserError(f"Cluster {cluster.name} has one accelerator per host, so there is nothing to shard.")
    return context.cite(f"{cluster.name} accelerator to accelerator, nominal", host.scale_up.nominal_bytes_per_s)


def _seconds(context: Context, cluster: Cluster, plan: str, lanes: int, size: int, nic: float, local: float) -> float:
    """One lane needs no gather: the other accelerators of the host are not part of that run."""
    if context.backend == "analytic":
        if plan == AFTER:
            return two_level(size, lanes, nic, local).sequential_s
        block = size / (PIECES * lanes)
        return float(lanes_completion_s(2, lanes, PIECES * lanes, block / nic, block / local)[-1])
    pieces = 1 if plan == AFTER else PIECES
    per_host = cluster.host.accelerators
    nodes = [host * per_host + lane for host in range(2) for lane in range(lanes)]
    network = network_of(cluster.with_hosts(2), nodes, achievable=False)
    if lanes == 1:
        return simulate(make_schedule("chain", 2, pieces), network, size / pieces).finish_s
    schedule = make_schedule("sharded", 2 * lanes, pieces * lanes, lanes=lanes)
    return simulate(schedule, network, size / schedule.blocks).finish_s
