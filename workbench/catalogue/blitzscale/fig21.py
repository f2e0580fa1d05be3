"""Figure 21: tokens per second while six prefill instances are added, live over the network or from host memory."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.spec import ALL, Agree, Assumption, Match, experiment
from workbench.errors import UserError
from workbench.scaling.model.live_pair import LivePair, share_batches, throughput_gain
from workbench.scaling.simulated.live_pair import simulate

BLITZ, CACHED = "BlitzScale", "AllCache"
_LOADED = "time until six prefill instances of 24B are loaded"
_FIRST, _SHARE = "first extra tokens", "first extra tokens over BlitzScale's own load time"
_NOMINAL = "nominal over published load time"
_NOMINAL_RATE = Assumption("links give their nominal rate", {"efficiency": 0.77})
PUBLISHED_S = {BLITZ: 1.2, CACHED: 2.0}
_PAPER = "OSDI'25 paper Fig 21"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    loads = tables["loads"].filter(pl.col("backend") == tables["loads"]["backend"][0])
    taken = dict(zip(loads["system"], loads["load_s"], strict=True))
    text = (
        f"{parameters['wanted']} instances of {name_of(parameters['model'])} are loaded after {taken[BLITZ]:.3g} s over"
    )
    return f"{text} the network and after {taken[CACHED]:.3g} s from host memory."


@experiment(
    "blitzscale/fig21",
    title="Tokens per second while instances are added",
    question="When does added capacity show: step by step while layers come, or all at once?",
    backends=("analytic", "simpy"),
    seconds={"analytic": 0.05, "simpy": 0.5},
    draw="live.staircase",
    panels=("tokens", "loads"),
    say=_say,
    matches=(
        Match(
            series=(_LOADED,),
            assumptions=(_NOMINAL_RATE,),
        ),
        Match(series=(_NOMINAL, "nominal load time"), tolerance=0.02),
        Match(
            series=(_FIRST, _SHARE),
            note="counted from the decision to the first batch that is done sooner than without help",
            assumptions=(
                _NOMINAL_RATE,
                Assumption("batches are of 2,000 tokens, where the artifact allows 4,096", {"batch_tokens": 4096}),
            ),
        ),
        Match(series=("chains, three instances each",), fitted=ALL),
    ),
    agrees=(
        Agree("first batch done sooner", "loads", ("system",), "first_extra_s", {("analytic", "simpy"): (-1e-9, 1e-9)}),
    ),
)
def fig21(
    context: Context,
    *,
    cluster: Annotated[
        str, Par("Cluster", profile="cluster", status="published", source="OSDI'25 paper Table 1, cluster A")
    ] = "blitzscale-a",
    model: Annotated[str, Par("Model", profile="model", status="published", source=_PAPER)] = "mistral-small-24b",
    tp: Annotated[
        int, Par("Tensor parallelism", low=1, high=8, status="published", source="artifact's configuration")
    ] = 2,
    wanted: Annotated[int, Par("Instances added", low=1, high=32, status="published", source=_PAPER)] = 6,
    chains: Annotated[int, Par("Chains", low=1, high=16, status="published", source=f"{_PAPER}: two of three")] = 2,
    lanes: Annotated[
        int,
        Par("Lanes that carry stripes of the weights", low=1, high=8, status="inferred", source="two sources, §2.3"),
    ] = 2,
    before: Annotated[int, Par("Instances before", low=1, high=32, source="as many as chains; not published")] = 2,
    tokens_per_s: Annotated[
        float,
        Par(
            "Prefill rate of an instance",
            "1/s",
            low=100,
            high=200_000,
            log=True,
            status="published",
            source="artifact's configuration for 24B, TP2",
        ),
    ] = 12_000.0,
    batch_tokens: Annotated[
        int, Par("Prompt tokens of a batch", low=16, high=16_384, status="published", source="OSDI'25 paper §5.2")
    ] = 2000,
    efficiency: Annotated[
        float,
        Par("Rate of links over the nominal one", low=0.1, high=1.0, step=0.01, source="1: nominal, both systems"),
    ] = 1.0,
) -> dict[str, pl.DataFrame]:
    """Prefill tokens/s over time, load times, and when the first batch is done sooner than without help.

    Instances at the tails of chains serve live, each with an overloaded old one, at L / (L - k) of its rate while k
    layers are there (at most half of them). The others serve when all their layers are there.
    """
    shape, made = context.model(model), context.cluster(cluster)
    if chains > wanted:
        chains = context.cite("chains used", wanted, "1", "chosen", "each chain needs an instance of its own")
    nic = context.cite(f"{made.name} network card, nominal", made.nic.nominal_bytes_per_s) * efficiency
    if made.host.pcie is None:
        raise UserError(f"Cluster {made.name} has no PCIe link: no source states one; choose another cluster.")
    pcie = context.cite(f"{made.name} host to GPU, nominal", made.host.pcie.nominal_bytes_per_s) * efficiency
    load_s = {BLITZ: shape.weight_bytes / tp / nic / lanes, CACHED: shape.weight_bytes / tp / pcie}
    layer_s = batch_tokens / tokens_per_s / shape.layers
    pair = LivePair(layers=shape.layers, load_s=load_s[BLITZ] / shape.layers, arrival_s=(0.0,) * 40, layer_s=layer_s)
    run = simulate if context.backend == "simpy" else share_batches
    live = np.sort(run(pair).finish_s)
    # The first layer is there when it has come, not at once: everything live is later by that.
    live = live + load_s[BLITZ] / shape.layers
    alone = layer_s * shape.layers * np.arange(1, live.size + 1)
    sooner = live[live < alone - 1e-12]
    # An instance that has all layers is done with a batch of its own one batch later.
    first = {name: load_s[name] + layer_s * shape.layers for name in (BLITZ, CACHED)}
    first[BLITZ] = min(first[BLITZ], float(sooner[0])) if sooner.size else first[BLITZ]
    loads = pl.DataFrame(
        [{"system": name, "load_s": load_s[name], "first_extra_s": first[name]} for name in (BLITZ, CACHED)]
    )
    times = np.linspace(0, 1.25 * max(load_s.values()), 201)
    layers = np.minimum(np.floor(times / load_s[BLITZ] * shape.layers + 1e-9), shape.layers).astype(int)
    paired = min(chains, before)
    gains = {
        BLITZ: np.where(
            times < load_s[BLITZ],
            before - paired + paired * throughput_gain(shape.layers, np.minimum(layers, shape.layers - 1)),
            before + wanted,
        ),
        CACHED: np.where(times < load_s[CACHED], before, before + wanted),
    }
    tokens = pl.concat(
        [
            pl.DataFrame({"system": [name] * times.size, "time_s": times, "tokens_per_s": gain * tokens_per_s})
            for name, gain in gains.items()
        ]
    )
    known = [
        *((_LOADED, name, load_s[name], "s") for name in load_s),
        (f"{_LOADED}, AllCache over BlitzScale", "", load_s[CACHED] / load_s[BLITZ], "1"),
        (_FIRST, BLITZ, first[BLITZ], "s"),
        (_SHARE, "", first[BLITZ] / load_s[BLITZ], "1"),
        ("chains, three instances each", BLITZ, chains, "1"),
        ("nominal load time", f"BlitzScale, {lanes} lanes", load_s[BLITZ] * efficiency, "s"),
        ("nominal load time", CACHED, load_s[CACHED] * efficiency, "s"),
        *((_NOMINAL, name, load_s[name] * efficiency / PUBLISHED_S[name], "1") for name in load_s),
    ]
    return {"tokens": tokens, "loads": loads, "headline": headline(known)}
