"""Figure 6: two GPUs that do prompts first, decoding first, or one of each."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.aegaeon.scripted import activity, judged, late_tokens, prompts_of, script
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.judging import Draft
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.pooling.simulated import simulate, simulate_colocated
from workbench.results import Verdict

PROMPTS, DECODING, APART = "prompts first", "decoding first", "apart"
WAYS = (PROMPTS, DECODING, APART)
MODELS = (0, 0, 1, 1, 2, 2)


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    parts = []
    for row in tables["misses"].to_dicts():
        parts.append(f"{row['way']}: {row['ttft']} first tokens late and {row['tbt']} requests late in between")
    return f"Of six requests on two GPUs, {'; '.join(parts)}."


def _judge(draft: Draft) -> list[Verdict]:
    misses = {row["way"]: row for row in draft.tables["misses"].to_dicts()}
    claims = {
        "prompts first misses times between tokens": misses[PROMPTS]["tbt"] > 0,
        "decoding first misses first tokens": misses[DECODING]["ttft"] > 0,
        "apart misses neither": misses[APART]["ttft"] + misses[APART]["tbt"] == 0,
    }
    texts = {way: f"{row['ttft']} first tokens, {row['tbt']} requests in between" for way, row in misses.items()}
    return [
        Verdict(
            claim=claim,
            published="Fig 6",
            ours="; ".join(f"{way}: {text}" for way, text in texts.items()),
            strength="ordering",
            verdict="not comparable" if not draft.comparable else "reproduced" if held else "differs",
            reason=draft.reason or "six scripted requests" + ("" if held else ". Assumed here: the scripted sizes"),
            mode=draft.mode,
            seeds=draft.seeds,
        )
        for claim, held in claims.items()
    ]


@experiment(
    "aegaeon/fig6",
    title="Should one GPU do prompts and decoding?",
    question="On two GPUs with three models, which promises break when prompts go first, when decoding does, and when "
    "each GPU does one of the two?",
    backends=("simpy",),
    seconds={"simpy": 0.1},
    draw="pooling_gantt.policies",
    panels=("prompts", "decoding", "apart"),
    say=_say,
    judges=(_judge,),
)
def fig6(
    context: Context,
    *,
    outputs: Annotated[int, Par("Output tokens of each", low=2, high=400, source="chosen: none are readable")] = 80,
    prompt_s: Annotated[float, Par("Prompt", "s", low=0.05, high=3, step=0.05, source="chosen")] = 0.2,
    step_s: Annotated[float, Par("Decode step", "s", low=0.002, high=0.09, step=0.002, source="chosen")] = 0.02,
    switch_s: Annotated[float, Par("Switch", "s", low=0.05, high=3, step=0.05, source="chosen")] = 0.5,
    apart_s: Annotated[float, Par("Between two arrivals", "s", low=0.1, high=10, step=0.1, source="chosen")] = 1.0,
    ttft_s: Annotated[float, Par("Promised first token", "s", low=0.5, high=30, step=0.5, source="chosen")] = 2.0,
    tbt_s: Annotated[
        float, Par("Promised between tokens", "s", low=0.02, high=1, log=True, source="§7.1: 0.1 s")
    ] = 0.1,
) -> dict[str, pl.DataFrame]:
    """What both GPUs do when, and whose tokens are late, for three ways to divide the work of six requests.

    Turns are of one second at most. Apart, the GPU that decodes prefetches the model of its next turn.
    """
    options = {"prompt_s": prompt_s, "outputs": outputs, "switch_s": switch_s, "step_s": step_s, "tbt_s": tbt_s}
    arrivals = [apart_s * place for place in range(len(MODELS))]
    lowered = script(arrivals, MODELS, prefill=1, decode=1, **options)
    spans, rows, misses, known = [], [], [], []
    for way in WAYS:
        if way == APART:
            out = simulate(lowered)
        else:
            out = simulate_colocated(lowered, "prompts" if way == PROMPTS else "decoding")
        found = judged(lowered, out, ttft_s, tbt_s)
        done = activity(out) + (prompts_of(lowered, out) if way == APART else [])
        spans += [{"way": way, **span} for span in done]
        rows += [{"way": way, **row} for row in found]
        ttft, tbt = late_tokens(found)
        misses.append({"way": way, "ttft": ttft, "tbt": tbt})
        known += [(f"first tokens late, {way}", "", ttft, "1"), (f"requests late in between, {way}", "", tbt, "1")]
        known.append((f"mean time to the first token, {way}", "", sum(r["ttft_s"] for r in found) / len(found), "s"))
    return {"spans": pl.DataFrame(spans), "requests": pl.DataFrame(rows), "misses": pl.DataFrame(misses),
            "headline": headline(known)}  # fmt: skip
