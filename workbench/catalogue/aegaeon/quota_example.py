"""The worked example of Algorithm 2, with the cap it implies and the cap that the text states."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Match, experiment
from workbench.pooling.model.rounds import Turns, round_of

_SECOND = "English blog post on the paper; this part of §4.3 was not readable"
INPUTS = ("input: time between tokens promised", "input: step time of a batch", "input: sum of the switch times")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    parts = []
    for row in tables["rounds"].unique("cap_s", maintain_order=True).to_dicts():
        parts.append(f"a cap of {row['cap_s']:g} s gives α = {row['pace']:.4g} and {row['quota_s']:.3g} s a turn")
    return f"Of {parameters['batches']} batches, {' and '.join(parts)}."


@experiment(
    "aegaeon/quota-example",
    title="How long is a turn?",
    question="Three batches share a GPU: how long does each decode before the next, and does that keep pace?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="pooling_formulas.quota",
    panels=("turns", "buffer"),
    say=_say,
    matches=(Match(INPUTS, fitted=ALL),),
)
def quota_example(
    context: Context,
    *,
    batches: Annotated[int, Par("Batches", low=1, high=12, status="published", source=_SECOND)] = 3,
    step_s: Annotated[
        float, Par("Step time of each", "s", low=0.002, high=0.2, log=True, status="published", source=_SECOND)
    ] = 0.025,
    switch_s: Annotated[
        float,
        Par("Switch to each", "s", low=0.01, high=5, log=True, status="published", source=f"{_SECOND}: 3 s in all"),
    ] = 1.0,
    tbt_s: Annotated[
        float, Par("Time between tokens", "s", low=0.01, high=0.5, log=True, status="published", source="§7.1: 0.1 s")
    ] = 0.1,
    caps_s: Annotated[
        tuple[float, ...], Par("Longest quota", "s", free=True, source="3 s fit the example, 4 s stand in §4.3")
    ] = (3.0, 4.0),
    floor: Annotated[
        float, Par("Least pace", low=0.05, high=2, step=0.05, status="published", source="§4.3: 0.5")
    ] = 0.5,
) -> dict[str, pl.DataFrame]:
    """Pace, quotas, the length of a round and its tokens, by cap; and what a reader of the first batch has in hand."""
    rows, lead, known = [], [], []
    for cap_s in sorted(set(caps_s)):
        found = round_of([step_s] * batches, batches * switch_s, Turns(tbt_s=tbt_s, quota_s=cap_s, floor=floor))
        pace, quota_s = round(found.pace, 12), round(float(found.quota_s[0]), 12)
        length_s, tokens = round(found.length_s, 12), round(float(found.tokens[0]), 9)
        for batch in range(batches):
            begin_s = (batch + 1) * switch_s + batch * quota_s
            rows.append({"cap_s": cap_s, "batch": batch, "begin_s": begin_s, "quota_s": quota_s, "pace": pace,
                         "length_s": length_s, "tokens": tokens})  # fmt: skip
        lead += _lead(cap_s, switch_s, quota_s, length_s, tokens, tbt_s)
        x = f"cap {cap_s:g} s"
        known += [
            ("steps per token promised (n)", x, round(tbt_s / step_s, 12), "1"),
            ("alpha", x, pace, "1"),
            ("quota", x, quota_s, "s"),
            ("length of a round", x, length_s, "s"),
            ("tokens per batch and round", x, tokens, "tokens"),
            ("playback time of a batch's tokens", x, round(tokens * tbt_s, 12), "s"),
        ]
    for series, value in zip(INPUTS, (tbt_s, step_s, batches * switch_s), strict=True):
        known.append((series, "three batches", value, "s"))
    return {"rounds": pl.DataFrame(rows), "lead": pl.DataFrame(lead), "headline": headline(known)}


def _lead(cap_s: float, begin_s: float, quota_s: float, length_s: float, tokens: float, tbt_s: float) -> list[dict]:
    """Tokens in hand of a reader of the first batch over three rounds: what came less what was read."""
    rows = []
    for place in range(3):
        start = place * length_s + begin_s
        for time_s, made in ((start, place * tokens), (start + quota_s, (place + 1) * tokens)):
            rows.append({"cap_s": cap_s, "time_s": time_s, "tokens": made - (time_s - begin_s) / tbt_s})
    return rows
