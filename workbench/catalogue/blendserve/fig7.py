"""Figure 7: throughput of five systems on the four traces, Llama-3-8B on one A100 and 70B on eight."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import polars as pl

from workbench.blending.model.bounds import phases
from workbench.blending.model.running import DENSE_BATCH
from workbench.catalogue.blendserve.jobs import (
    BLEND,
    NF_BALANCE,
    NF_DFS,
    OPTIMAL,
    TRACES,
    USUAL,
    VLLM,
    Rates,
    Setup,
    cite_sources,
    costs_for,
    limits,
    made,
    own_rates,
    served,
    size_of,
)
from workbench.catalogue.blendserve.parameters import (
    BIASED,
    FEEDBACK,
    PRINTED,
    REACHED,
    ComputeShare,
    ComputeSlope,
    MemoryShare,
    MemorySlope,
    On,
    Requests,
    Scan,
    Served,
)
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Agree, Assumption, Match, Ordering, experiment

SYSTEMS = (VLLM, NF_BALANCE, NF_DFS, BLEND)
LARGE, LARGE_TP = "llama-3-70b", 8
PANELS = ("a", "b")
QUICK = 200_000
OVERLAP = f"{NF_DFS} over {VLLM}, mean of the traces"
PROTOTYPE = "prototype: share of the optimum, "
PROTOTYPES = {
    PRINTED: "Algorithm 3 open loop, p+d/2",
    BIASED: "Algorithm 3, length-biased mean",
    FEEDBACK: "dual scan with density feedback",
}
_LITERAL = PROTOTYPE + PROTOTYPES[PRINTED]


def _ratio(panel: str, over: str, which: str) -> str:
    return f"panel {panel}: {BLEND} over {over}, {which}"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["throughput"].filter(pl.col("panel") == "a")
    table = table.filter((pl.col("backend") == table["backend"][0]) & (pl.col("replication") == 0))
    if not len(table.filter(pl.col("system") == BLEND)):
        best = table.filter(pl.col("system") == OPTIMAL)["tokens_per_s"]
        return (
            f"By formula no order serves more than {best.min():,.0f} to {best.max():,.0f} tokens/s on the four traces."
        )
    shares = {system: table.filter(pl.col("system") == system)["share"] for system in SYSTEMS}
    gain = shares[BLEND] / shares[NF_DFS]
    return (
        f"On the four traces {BLEND} serves {gain.min():.2f} to {gain.max():.2f} times as much as {NF_DFS} and reaches "
        f"{shares[BLEND].mean():.1%} of the practical optimum; {NF_DFS} reaches {shares[NF_DFS].mean():.1%}."
    )


_BATCH = Assumption("a step of the 70B model holds 2048 tokens", {"large_batch": "1024"})


def _order(panel: str, trace: str, *systems: str) -> Ordering:
    """The published order of throughputs on one trace."""
    return Ordering(
        f"panel {panel}, {trace}: " + " < ".join(systems),
        tuple(f"panel {panel}: throughput, {system}" for system in systems),
        trace,
        (_BATCH,) if panel == "b" else (),
    )


ORDERINGS = (
    *(
        _order(panel, trace, *((NF_DFS, NF_BALANCE) if trace[-1] in "34" else (NF_BALANCE, NF_DFS)), BLEND)
        for panel in PANELS
        for trace in TRACES
    ),
    Ordering(
        f"{NF_DFS} gains more over {VLLM} where communication overlaps too (panel b)",
        tuple(f"panel {panel}: {OVERLAP}" for panel in PANELS),
    ),
)


@experiment(
    "blendserve/fig7",
    title="Throughput on the four traces",
    question="How much does a blended order gain over the order down the prefix tree and over a random one?",
    backends=("compiled", "analytic"),
    seconds={"compiled": 25, "analytic": 6},
    draw="blending.throughput",
    panels=("a", "b"),
    say=_say,
    stochastic=True,
    matches=(
        Match(
            ("panel a: throughput of BlendServe",),
            assumptions=(
                Assumption(
                    "kernels reach the rates of Table 1's operations at a batch of 1024",
                    {"compute_share": 0.5, "memory_share": 0.6},
                ),
            ),
        ),
        Match(
            ("panel a: gap to the practical optimum, best",),
            assumptions=(
                Assumption("the dense batch follows the memory time of every step", {"scan": BIASED}),
            ),
        ),
        Match(
            (*(_ratio("a", NF_DFS, which) for which in ("mean", "smallest", "largest")), _ratio("b", NF_DFS, "mean")),
            assumptions=(
                Assumption("the dense batch follows the memory time of every step", {"scan": BIASED}),
                Assumption(
                    "kernels disturb each other as NanoFlow measured", {"memory_slope": 0.6, "compute_slope": 0.5}
                ),
            ),
        ),
        Match(
            (_LITERAL,),
            incomparable=dict.fromkeys(
                TRACES, "the prototype did not know the length of a video beforehand; here it does, as in the paper"
            ),
        ),
        Match(
            ("prototype: dual scan over NanoFlow-DFS with perfect overlap",),
            incomparable={"Trace#1-4": "another overlap than this run's: slopes of 0 give it"},
        ),
        Match(
            ("prototype: dual scan over NanoFlow-DFS at 40,000 requests",),
            incomparable={"Trace#1-4": "another number of requests than this run's; its gain is a tail of lone videos"},
        ),
    ),
    orderings=ORDERINGS,
    agrees=(
        Agree(
            "throughput down the prefix tree: source after source by formula, step by step",
            "dfs", ("trace",), "tokens_per_s", {("compiled", "analytic"): (-0.05, 0.1)},
        ),
    ),
)  # fmt: skip
def fig7(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    requests: Requests = "400,000",
    scan: Scan = FEEDBACK,
    memory_slope: MemorySlope = 0.5,
    compute_slope: ComputeSlope = 1 / 3,
    compute_share: ComputeShare = REACHED.compute_share,
    memory_share: MemoryShare = REACHED.memory_share,
    large_batch: Annotated[
        str,
        Par(
            "Dense batch of the 70B model",
            choices=("1024", "2048"),
            status="published",
            source="tokens: NanoFlow's set-up for 70B on eight GPUs (repository efeslab/Nanoflow)",
        ),
    ] = "2048",
) -> dict[str, pl.DataFrame]:
    """Tokens per second of each system on each trace, panel a for the chosen model, panel b for 70B on eight.

    A trace is synthesised anew for each model. All systems know the same estimates; vLLM, which stands for SGLang too,
    serves down the tree with nothing overlapped. The optimum is what no order can beat on the overlapping engine.
    """
    rates = own_rates(context, accelerator, Rates(compute_share, memory_share, memory_slope, compute_slope))
    cite_sources(context, "burstgpt-like")
    rows, known = [], []
    for panel, name, tp, batch in (("a", model, 1, DENSE_BATCH), ("b", LARGE, LARGE_TP, int(large_batch))):
        costs = costs_for(context, name, accelerator, tp)
        found = []
        for trace, (density, sharing) in TRACES.items():
            context.tell(f"panel {panel}: {trace}")
            size = size_of(context, requests, QUICK)
            setup = Setup(costs, "burstgpt-like", density, sharing, size, context.seed)
            for row in _of_trace(context, panel, trace, setup, rates, scan, batch):
                found.append(row)
                context.so_far({"throughput": pl.DataFrame(rows + found)})
            if panel == "a" and context.backend == "compiled" and context.mode == "full":
                known += _by_other_scans(setup, rates, scan, trace)
        rows += found
        if context.backend == "compiled":
            known += _known(panel, pl.DataFrame(found), scan)
    table = pl.DataFrame(rows)
    dfs = table.filter((pl.col("system") == NF_DFS) & (pl.col("panel") == "a")).select("trace", "tokens_per_s")
    return {"throughput": table, "dfs": dfs, "headline": headline(known)}


def _of_trace(
    context: Context, panel: str, trace: str, setup: Setup, rates: Rates, scan: str, batch: int
) -> Iterator[dict[str, Any]]:
    pool = made(setup).mix.pool
    best = pool.tokens / limits(setup, rates).practical_s

    def row(system: str, tokens_per_s: float, sharing: float) -> dict[str, Any]:
        return {
            "panel": panel, "trace": trace, "system": system, "tokens_per_s": tokens_per_s,
            "share": tokens_per_s / best, "sharing": sharing,
        }  # fmt: skip

    if context.backend == "analytic":
        seconds = sum(phase.seconds for phase in phases(pool, made(setup).tree, rates.engine(setup.costs), batch))
        yield row(NF_DFS, pool.tokens / seconds, made(setup).sharing)
    else:
        for system in SYSTEMS:
            run = served(setup, NF_DFS if system == VLLM else system, USUAL, scan, batch)
            engine = rates.engine(setup.costs, system)
            yield row(system, run.throughput(pool, engine), run.sharing(pool))
    yield row(OPTIMAL, best, made(setup).sharing)


def _by_other_scans(setup: Setup, rates: Rates, scan: str, trace: str) -> list[tuple[str, object, float, str]]:
    """Share of the optimum that the other rules of the dual scan reach on one trace."""
    pool, engine = made(setup).mix.pool, rates.engine(setup.costs, BLEND)
    best = pool.tokens / limits(setup, rates).practical_s
    shares = {
        rule: served(setup, BLEND, USUAL, rule, DENSE_BATCH).throughput(pool, engine) / best
        for rule in PROTOTYPES
        if rule != scan
    }
    return [(PROTOTYPE + PROTOTYPES[rule], trace, share, "1") for rule, share in shares.items()]


def _known(panel: str, table: pl.DataFrame, scan: str) -> list[tuple[str, object, float, str]]:
    """Headline rows of one panel: throughput, ratios over the traces, and what the prototype gave."""
    share = {
        system: dict(table.filter(pl.col("system") == system).select("trace", "share").iter_rows())
        for system in SYSTEMS
    }
    rate = table.select("system", "trace", "tokens_per_s").rows()
    known = [(f"panel {panel}: throughput, {system}", trace, value, "tokens/s") for system, trace, value in rate]
    if panel == "a":
        known += [(f"panel a: throughput of {BLEND}", t, v, "tokens/s") for s, t, v in rate if s == BLEND]

    def over(other: str) -> dict[str, float]:
        return {trace: share[BLEND][trace] / share[other][trace] for trace in TRACES}

    gain = list(over(NF_DFS).values())
    place = "8B, four traces" if panel == "a" else "70B, 8 A100"
    alone = "8B" if panel == "a" else place
    blend = list(share[BLEND].values())
    for which, value in (("mean", sum(gain) / len(gain)), ("smallest", min(gain)), ("largest", max(gain))):
        known.append((_ratio(panel, NF_DFS, which), place, value, "1"))
    overlap = [share[NF_DFS][trace] / share[VLLM][trace] for trace in TRACES]
    known.append((f"panel {panel}: {OVERLAP}", "", sum(overlap) / len(overlap), "1"))
    known.append((_ratio(panel, VLLM, "largest"), alone, max(over(VLLM).values()), "1"))
    known.append((_ratio(panel, "the practical optimum", "mean"), alone, sum(blend) / len(blend), "1"))
    if panel == "a":
        known.append(("panel a: gap to the practical optimum, best", alone, 1 - max(blend), "1"))
        for system in (VLLM, NF_DFS, NF_BALANCE):
            known += [(PROTOTYPE + system, trace, value, "1") for trace, value in share[system].items()]
            if scan == FEEDBACK:
                series = f"prototype: dual scan with density feedback over {system}"
                known += [(series, trace, value, "1") for trace, value in over(system).items()]
        known += [(PROTOTYPE + PROTOTYPES[scan], trace, value, "1") for trace, value in share[BLEND].items()]
    return known
