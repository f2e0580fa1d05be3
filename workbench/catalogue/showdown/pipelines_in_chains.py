"""λScale's execution pipelines among servers of chains: does a chain that is still loading serve sooner?"""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.chains.common import TokensIn, TokensOut
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, experiment
from workbench.chains import block_of, fleet_of, loading_path, loading_steps, new_chains, token_times, work_of
from workbench.chains.simulated import simulate_loading, simulate_loading_steps
from workbench.errors import InputError
from workbench.scaling.policy import group_pipelines
from workbench.transfer.policy import sub_groups

LOADED, LOADING = "chains, once loaded", "pipelines while loading"
WAYS = (LOADED, LOADING)
LINKS = (1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0)
"""Gbit/s of a server's card, beside the parameter's own rate."""

GBIT = 1e9 / 8
EXACT = (-1e-9, 1e-9)
"""Both answers follow the same jobs."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    served = tables["served"].filter(pl.col("backend") == tables["served"]["backend"][0])
    here = {row["way"]: row for row in served.filter(gbit_per_s=parameters["nic_bytes_per_s"] / GBIT).to_dicts()}
    text = (
        f"Pipelines begin after {here[LOADING]['first_s']:.3g} s, chains after {here[LOADED]['first_s']:.3g} s; a job "
        f"is answered after {here[LOADING]['mean_s']:.3g} s on average instead of {here[LOADED]['mean_s']:.3g} s"
    )
    even = tables["headline"].filter(pl.col("series") == EVEN)
    if even.is_empty():
        return f"{text}."
    return (
        f"{text}. Above {even['value'][0]:.3g} Gbit/s a first job's additional hops cost more than the wait they save."
    )


EVEN = "link at which a first job is answered as soon either way"


@experiment(
    "showdown/pipelines-in-chains",
    title="Execution pipelines inside chains",
    question="When chains are added by multicast, should their servers serve as longer pipelines while they load?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.05, "simpy": 0.5},
    draw="showdown_chains.pipelines_in_chains",
    panels=("answer", "done"),
    say=_say,
    agrees=(
        Agree("first job begins", "served", ("way", "gbit_per_s"), "first_s", {("analytic", "simpy"): EXACT}),
        Agree("mean answer", "served", ("way", "gbit_per_s"), "mean_s", {("analytic", "simpy"): EXACT}),
    ),
)
def pipelines_in_chains(
    context: Context,
    *,
    accelerator: Annotated[
        str, Par("Server", profile="accelerator", source="chosen: the fast kind of the paper on chains")
    ] = "a100-80gb-mig-3g.40gb",
    model: Annotated[str, Par("Model", profile="model", source="chosen: that of the paper on chains")] = "bloom-176b",
    servers: Annotated[int, Par("Servers of a chain", low=3, high=20, step=1, source="chosen: 14 blocks each")] = 5,
    sources: Annotated[int, Par("Chains that serve already", low=1, high=8, step=1, source="chosen")] = 2,
    added: Annotated[int, Par("Chains to add", low=1, high=16, step=1, source="chosen")] = 4,
    nic_bytes_per_s: Annotated[
        float, Par("Network of a server", "bytes/s", low=0.1e9, high=12.5e9, log=True, source="chosen: 10 Gbit/s")
    ] = 10 * GBIT,
    round_trip_s: Annotated[
        float, Par("Round trip", "s", low=1e-4, high=0.2, log=True, source="chosen: sites of one country")
    ] = 0.02,
    jobs: Annotated[int, Par("Jobs that wait", low=1, high=400, step=1, source="chosen: about two rounds")] = 100,
    tokens_in: TokensIn = 2000,
    tokens_out: TokensOut = 20,
) -> dict[str, pl.DataFrame]:
    """Seconds until jobs are answered that wait for chains whose servers load, by link and way to start.

    All chains are cut alike. The servers at one place of all chains hold the same blocks, so each place is a multicast
    of its own, from the chains that serve to those that are added, in λScale's rotated orders. *Chains, once loaded*:
    a chain serves when its servers hold all their blocks. *Pipelines while loading*: at each place one server of every
    sub-group, which hold its blocks jointly much sooner, stand in for one (Algorithm 2); a job then comes to more
    servers, each of which runs fewer of its blocks. Who runs which, λScale leaves open; here it is as few servers in a
    row as can be. Of all that can serve, the fastest with free cache slots takes the next job; nothing is moved. Chains
    that serve already are full and do not matter. Waiting jobs are all there when loading begins.

    Formula: closed forms of the multicast, and of the rounds in which slots begin jobs; exact for jobs that are alike.
    Simulation: blocks sent over shared links, and slots counted on each server.
    """
    if sources > added:
        why = "each sub-group needs a destination: k = min(copies, destinations), as in λScale's artifact"
        sources = context.cite("chains that send", added, "1", "published", why)
    chip, shape = context.accelerator(accelerator), context.model(model)
    block = block_of(shape)
    times = token_times([chip] * servers, [round_trip_s] * servers, block)
    if servers > shape.layers:
        raise InputError(f"is {servers} for {shape.layers} blocks", "give each server a block", field="servers")
    sizes, formula = shape.block_layers(servers), context.backend == "analytic"
    fleet = fleet_of([chip] * servers, shape.layers, block, times, work_of([tokens_in], [tokens_out])[0])
    ready = (loading_steps if formula else simulate_loading_steps)(sizes, sources, added)
    pipelines = group_pipelines([group[1:] for group in sub_groups(sources + added, sources)])
    made = new_chains(fleet, sizes, ready, pipelines)
    rows, done = [], []
    for gbit in sorted({*LINKS, nic_bytes_per_s / GBIT}):
        step_s = block.bytes / (gbit * GBIT)
        for way, chains in zip(WAYS, (made.loaded, made), strict=True):
            path = (loading_path if formula else simulate_loading)(chains, step_s, jobs)
            end_s = path.finish_s
            told = {"first_s": path.start_s.min(), "mean_s": end_s.mean(), "last_s": end_s.max()}
            rows.append({"way": way, "gbit_per_s": gbit, **told})
            if gbit == nic_bytes_per_s / GBIT:
                done += [{"way": way, "jobs": count, "seconds": at} for count, at in enumerate(np.sort(end_s), 1)]
    known = [(f"mean answer, {row['way']}", row["gbit_per_s"], row["mean_s"], "s") for row in rows]
    if made.even_step_s is not None:
        known.append((EVEN, "", block.bytes / made.even_step_s / GBIT, "Gbit/s"))
    chains = [{"serves": LOADED if one.complete else LOADING, "pipeline": one.pipeline, "steps": one.steps,
               "hops": one.hops, "jobs": one.capacity, "service_s": one.service_s} for one in made.chains]  # fmt: skip
    return {
        "served": pl.DataFrame(rows),
        "done": pl.DataFrame(done),
        "chains": pl.DataFrame(chains),
        "headline": headline(known),
    }
