"""Table 2: the four traces, synthesised for a density and a sharing ratio."""

from collections.abc import Mapping
from typing import Any

import polars as pl

from workbench.blending.model.density import total_density
from workbench.catalogue.blendserve.jobs import TRACES, Setup, cite_sources, costs_for, made, size_of
from workbench.catalogue.blendserve.parameters import Main, On, Requests, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.spec import Match, experiment

QUICK = 50_000
EXAMPLES = ("BurstGPT", "MMLU", "OpenVid")
_DRAWN = "the example comes from another draw of lengths: the counts follow the sums of the few videos that were drawn"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["mixes"].filter(pl.col("replication") == 0)
    density = (table["density"] / table["wanted_density"] - 1).abs().max()
    sharing = (table["sharing"] - table["wanted_sharing"]).abs().max()
    return (
        f"The four mixes of {table['requests'][0]:,} requests miss their densities by at most {density:.2%} and their "
        f"sharing ratios by at most {sharing * 100:.2f} points; {table['heavy_share'].min():.0%} to "
        f"{table['heavy_share'].max():.0%} of the memory time belongs to OpenVid."
    )


@experiment(
    "blendserve/tab2",
    title="The four synthetic traces",
    question="How many requests of each source make a trace of a wanted density and sharing ratio?",
    backends=("compiled",),
    seconds={"compiled": 4},
    draw="blending.mixes",
    say=_say,
    stochastic=True,
    matches=(
        Match(
            tuple(f"requests from {name} in an example mix" for name in EXAMPLES),
            incomparable=dict.fromkeys(TRACES, _DRAWN),
        ),
        Match(
            ("requests per workload",),
            incomparable=dict.fromkeys(("§6.2", "A.3"), "a parameter of this run, no result of it"),
        ),
    ),
)  # fmt: skip
def tab2(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    requests: Requests = "400,000",
    main: Main = "burstgpt-like",
) -> dict[str, pl.DataFrame]:
    """Counts by a joint solution on the sums of the drawn requests; density and sharing measured on the tree."""
    costs = costs_for(context, model, accelerator)
    cite_sources(context, main)
    rows, known = [], []
    for trace, (density, ratio) in TRACES.items():
        context.tell(trace)
        found = made(Setup(costs, main, density, ratio, size_of(context, requests, QUICK), context.seed))
        pool, counts = found.mix.pool, found.mix.counts
        reads = pool.prompt * pool.output + pool.output.astype(float) ** 2 / 2
        heavy = pool.source == len(pool.sources) - 1
        measured = total_density(pool.prompt, pool.output, costs, found.sharing)
        rows.append(
            {
                "trace": trace, "wanted_density": density, "density": measured, "wanted_sharing": ratio,
                "sharing": found.sharing, "requests": pool.size, "tokens": pool.tokens, "scale": found.mix.scale,
                "heavy_share": float(reads[heavy].sum() / reads.sum()), **counts,
            }
        )  # fmt: skip
        known += [("compute density", trace, measured, "1"), ("prefix sharing ratio", trace, found.sharing, "1")]
        known += [(f"requests from {name} in an example mix", trace, n, "1") for name, n in counts.items()]
    known += [("requests per workload", place, rows[0]["requests"], "1") for place in ("§6.2", "A.3")]
    return {"mixes": pl.DataFrame(rows), "headline": headline(known)}
