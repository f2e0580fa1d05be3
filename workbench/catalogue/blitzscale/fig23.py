"""Figure 23: what a start is made of, for vLLM from an SSD and for BlitzScale over the network."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Assumption, Match, experiment
from workbench.errors import UserError
from workbench.latency import step_time
from workbench.profiles import Deployment

VLLM, BLITZ = "vLLM", "BlitzScale"
TOTAL, CONTEXT, GROUP = "start-up time", "CUDA context with kernels", "NCCL group set-up"
BROADCAST = "NVLink broadcast of Llama3-8B to 8 GPUs"
PARTS = ("context", "communication", "weights", "first token")
_PAPER = "OSDI'25 paper"


def _say(tables: Mapping[str, pl.DataFrame], _: Mapping[str, Any]) -> str:
    total = tables["parts"].group_by("system", maintain_order=True).agg(pl.col("seconds").sum())
    weights = dict(tables["parts"].filter(part="weights").select("system", "seconds").iter_rows())
    parts = [
        f"{name} {seconds:.3g} s, {weights[name] / seconds:.0%} of it weights" for name, seconds in total.iter_rows()
    ]
    return f"A start takes: {'; '.join(parts)}."


@experiment(
    "blitzscale/fig23",
    title="What a start is made of",
    question="Which part of a start is left when contexts and connections are made beforehand?",
    backends=("analytic",),
    seconds={"analytic": 0.01},
    draw="evaluated.fig23",
    say=_say,
    matches=(
        Match((CONTEXT, GROUP), fitted=ALL),
        Match(
            (TOTAL,),
            note="two notes on the figure; model and links of the figure are not in the text",
            assumptions=(Assumption("links give their nominal rate", {"efficiency": 0.79}),),
        ),
    ),
)
def fig23(
    context: Context,
    *,
    cluster: Annotated[str, Par("Cluster", profile="cluster", source="chosen: cluster A; not stated")] = "blitzscale-a",
    model: Annotated[str, Par("Model", profile="model", source="chosen: the one of OSDI'25 paper §4")] = "llama-3-8b",
    context_s: Annotated[
        float,
        Par("A context with kernels", "s", low=0, high=5, step=0.1, status="published", source=f"{_PAPER} A.1: about"),
    ] = 0.5,
    group_s: Annotated[
        float,
        Par("A group of NCCL", "s", low=0, high=2, step=0.05, status="published", source=f"{_PAPER} A.1: about"),
    ] = 0.1,
    prompt_tokens: Annotated[
        int, Par("Prompt of the first token", low=1, high=8192, status="published", source=f"{_PAPER} §5.2")
    ] = 2000,
    efficiency: Annotated[
        float, Par("Rate of links over the nominal one", low=0.1, high=1, step=0.01, source="1: nominal, both systems")
    ] = 1.0,
) -> dict[str, pl.DataFrame]:
    """Seconds of each part: context, communication, weights, first token.

    vLLM makes context and group at the start and reads the SSD; importing its framework is not counted, for which no
    time was published. BlitzScale made both beforehand, and gets the weights from another GPU over its card.
    """
    hosts, shape = context.cluster(cluster), context.model(model)
    host = hosts.host
    if host.ssd is None or host.scale_up is None:
        raise UserError(f"Cluster {hosts.name} states no SSD or no links inside a host; choose another one.")
    ssd = context.cite(f"{hosts.name} SSD of a GPU, nominal", host.ssd.nominal_bytes_per_s)
    nic = context.cite(f"{hosts.name} network card, nominal", hosts.nic.nominal_bytes_per_s) * efficiency
    near = context.cite(f"{hosts.name} GPU to GPU in a host, nominal", host.scale_up.nominal_bytes_per_s) * efficiency
    step = step_time(shape, host.accelerator, Deployment(), source="blitzscale")
    first_s = context.cite("first token", float(step.prefill_s(prompt_tokens)), "s", step.status, step.source)
    size = shape.weight_bytes
    seconds = {
        VLLM: (context_s, group_s, size / (ssd * efficiency), first_s),
        BLITZ: (0.0, 0.0, size / nic, first_s),
    }
    rows = [(name, part, value) for name, all_ in seconds.items() for part, value in zip(PARTS, all_, strict=True)]
    known = [
        *((TOTAL, name, sum(all_), "s") for name, all_ in seconds.items()),
        (CONTEXT, "", context_s, "s"),
        (GROUP, "", group_s, "s"),
        (BROADCAST, "", size / near, "s"),
    ]
    return {
        "parts": pl.DataFrame(rows, schema=["system", "part", "seconds"], orient="row"),
        "headline": headline(known),
    }
