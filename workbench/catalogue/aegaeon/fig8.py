"""Figure 8: a switch before and after each optimisation."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.aegaeon import stages
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Assumption, Match, Ordering, experiment
from workbench.pooling.model.stages import STEPS

REUSE = "latency removed by component reuse, T0 to T1"
ALL_OF_IT = "latency removed in all, T0 to T3"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    total = dict(
        tables["stages"].group_by("optimisation", maintain_order=True).agg(pl.col("seconds").sum()).iter_rows()
    )
    texts = [f"{name} {seconds:.3g} s" for name, seconds in total.items()]
    return f"A switch takes {', '.join(texts)}: {1 - total['T3'] / total['T0']:.1%} less in all."


@experiment(
    "aegaeon/fig8",
    title="What does each optimisation of a switch buy?",
    question="How long does a switch of models take before any optimisation, and after each of them?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="pooling_formulas.waterfall",
    say=_say,
    matches=(
        Match((REUSE,), assumptions=(
            Assumption("collecting garbage takes 3 s, which reuse does not remove", {"collect_s": 0.0}),
        )),
        Match(("switch time after reuse over before, T1 over T0",),
              incomparable={"": "the same bound as that of the latency removed, which is judged"}),
    ),
    orderings=(
        Ordering("each optimisation helps: T3 below T2 below T1 below T0", tuple(f"total of {s}" for s in STEPS[::-1])),
    ),
)  # fmt: skip
def fig8(
    context: Context,
    *,
    model: stages.Served = "llama-2-13b",
    tp: stages.Tp = 2,
    nominal_bytes_per_s: stages.Nominal = 32e9,
    kv_tokens: stages.KvTokens = 8000,
    collect_s: stages.Collect = 3.0,
    hidden_s: Annotated[
        float,
        Par("Loading that a prefetch hides", "s", low=0, high=10, step=0.1, source="chosen: none, the worst case"),
    ] = 0.0,
) -> dict[str, pl.DataFrame]:
    """Seconds of each stage of a switch: T0, T1 reuse, T2 explicit memory, T3 KV beside the load."""
    found = stages.stages_of(context, model, tp, nominal_bytes_per_s, kv_tokens, collect_s)
    found = found.model_copy(update={"hidden_s": hidden_s})
    total = found.totals()
    known = [(f"total of {name}", "", seconds, "s") for name, seconds in total.items()]
    known += [(REUSE, "", 1 - total["T1"] / total["T0"], "1"), (ALL_OF_IT, "", 1 - total["T3"] / total["T0"], "1")]
    return {"stages": found.table(), "headline": headline(known)}
