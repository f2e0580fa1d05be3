"""Figure 2: three models on one GPU, by whole requests and token by token."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.aegaeon.scripted import activity, judged, late_tokens, script
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Ordering, experiment
from workbench.pooling.simulated import simulate, simulate_colocated
from workbench.results import Verdict

REQUESTS, TOKENS = "whole requests", "token by token"
NAMES = ("A", "B", "C")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table, parts = tables["requests"], []
    for way in (REQUESTS, TOKENS):
        part = table.filter(pl.col("way") == way)
        texts = [f"{name} {ttft:.1f} s" for name, ttft in part.select("name", "ttft_s").iter_rows()]
        late = int((part["ttft_late"] + part["tbt_late"] > 0).sum())
        parts.append(f"{way} the first tokens come after {', '.join(texts)}, and {late} of three requests are late")
    return f"By {'; '.join(parts)}."


def _judge(draft: Draft) -> list[Verdict]:
    table = draft.tables["requests"].filter(pl.col("way") == TOKENS)
    late = int((table["ttft_late"] + table["tbt_late"]).sum())
    return [
        Verdict(
            claim="token by token all deadlines are met",
            published="all met (Fig 2)",
            ours=float(late),
            tolerance=(0.0, 0.0),
            strength="exact",
            verdict="not comparable" if not draft.comparable else "reproduced" if late == 0 else "differs",
            reason=draft.reason or f"{late} tokens are late" + (". Assumed here: the scripted sizes" if late else ""),
            mode=draft.mode,
            seeds=draft.seeds,
        )
    ]


@experiment(
    "aegaeon/fig2",
    title="One GPU, three models: by requests or by tokens?",
    question="Three models are asked one after the other on one GPU: who waits for whom?",
    backends=("simpy",),
    seconds={"simpy": 0.1},
    draw="pooling_gantt.three",
    panels=("whole", "tokens"),
    say=_say,
    orderings=tuple(
        Ordering(f"the first token of {name} comes sooner token by token",
                 (f"first token of {name}, {TOKENS}", f"first token of {name}, {REQUESTS}"))
        for name in NAMES[1:]
    ),
    judges=(_judge,),
)  # fmt: skip
def fig2(
    context: Context,
    *,
    outputs: Annotated[int, Par("Output tokens of each", low=2, high=400, source="chosen: none are readable")] = 150,
    prompt_s: Annotated[float, Par("Prompt", "s", low=0.05, high=3, step=0.05, source="chosen")] = 0.3,
    step_s: Annotated[float, Par("Decode step", "s", low=0.002, high=0.09, step=0.002, source="chosen")] = 0.02,
    switch_s: Annotated[float, Par("Switch", "s", low=0.05, high=3, step=0.05, source="chosen")] = 0.5,
    apart_s: Annotated[float, Par("Between two arrivals", "s", low=0.1, high=10, step=0.1, source="chosen")] = 1.0,
    ttft_s: Annotated[float, Par("Promised first token", "s", low=0.5, high=30, step=0.5, source="chosen")] = 5.0,
    tbt_s: Annotated[
        float, Par("Promised between tokens", "s", low=0.02, high=1, log=True, source="§7.1: 0.1 s")
    ] = 0.1,
) -> dict[str, pl.DataFrame]:
    """What the GPU does when, and how late the tokens of three requests are, by whole requests and token by token.

    Turns are of one second at most; a prompt that comes is taken up at the next step.
    """
    options = {"prompt_s": prompt_s, "outputs": outputs, "switch_s": switch_s, "step_s": step_s, "tbt_s": tbt_s}
    arrivals = [apart_s * place for place in range(3)]
    spans, rows, known = [], [], []
    lowered = script(arrivals, range(3), prefill=0, decode=1, system="serverlessllm@aegaeon", **options)
    for way in (REQUESTS, TOKENS):
        out = simulate(lowered) if way == REQUESTS else simulate_colocated(lowered, "prompts")
        spans += [{"way": way, **span} for span in activity(out)]
        found = judged(lowered, out, ttft_s, tbt_s)
        rows += [{"way": way, "name": NAMES[row["request"]], **row} for row in found]
        known += [(f"first token of {NAMES[row['request']]}, {way}", "", row["ttft_s"], "s") for row in found]
        known.append((f"requests with a late token, {way}", "", sum(late_tokens(found)), "1"))
    return {"spans": pl.DataFrame(spans), "requests": pl.DataFrame(rows), "headline": headline(known)}
