"""The worked example of Algorithm 2, with the cap it implies and the cap that the text states."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.aegaeon.small import PROMPT, REQUESTS, small_shapes
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import ALL, Agree, Match, experiment
from workbench.errors import UserError
from workbench.pooling.model.rounds import Turns, round_of

_SECOND = "English blog post on the paper; this part of §4.3 was not readable"
INPUTS = ("input: time between tokens promised", "input: step time of a batch", "input: sum of the switch times")


ROUNDS = {"full": 30, "quick": 6}
"""Of the real run, beside those from which it measures steps and switches."""


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    said = []
    if "rounds" in tables:
        parts = [
            f"a cap of {row['cap_s']:g} s gives α = {row['pace']:.4g} and {row['quota_s']:.3g} s a turn"
            for row in tables["rounds"].unique("cap_s", maintain_order=True).to_dicts()
        ]
        said.append(f"Of {parameters['batches']} batches, {' and '.join(parts)}.")
    ran = tables["paces"].filter(pl.col("backend") != "analytic")
    if len(ran):
        most = float((ran["over_alpha"] - 1).abs().max())
        said.append(
            f"Small models that really take turns make a token in {ran['pace'].min():.3g} to {ran['pace'].max():.3g} "
            f"of the promised time, within {most:.1%} of the α that their measured steps and switches give."
        )
    return " ".join(said)


@experiment(
    "aegaeon/quota-example",
    title="How long is a turn?",
    question="Three batches share a GPU: how long does each decode before the next, and does that keep pace?",
    backends=("analytic", "torch"),
    seconds={"analytic": 0.02, "torch": 30},
    draw="pooling_formulas.quota",
    panels=("turns", "buffer", "pace"),
    say=_say,
    matches=(Match(INPUTS, fitted=ALL),),
    agrees=(
        Agree("pace over α of the same round", "paces", ("cap_s", "batch"), "over_alpha",
              {("analytic", "torch"): (-0.10, 0.10)}),
    ),
)  # fmt: skip
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
    """Pace, quotas, the length of a round and its tokens, by cap; and what a reader of the first batch has in hand.

    The real run lets as many small transformers share one process, unpaced. It measures its own steps and switches, and
    takes a promise and a cap that give the same sum of step time over promise, and the same share of switches; α of
    each round is that of the turns before it, the pace is the time that passed over the tokens that came; time is
    the process's own, so that other programs do not count.
    """
    if context.backend == "torch":
        return {"paces": _really(context, batches, step_s, switch_s, tbt_s, sorted(set(caps_s)), floor)}
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
    table = pl.DataFrame(rows)
    paces = table.select("cap_s", pl.lit(1.0).alias("over_alpha"), "batch", "pace", alpha="pace")
    return {"rounds": table, "lead": pl.DataFrame(lead), "paces": paces, "headline": headline(known)}


def _really(
    context: Context, batches: int, step_s: float, switch_s: float, tbt_s: float, caps_s: list[float], floor: float
) -> pl.DataFrame:
    from workbench.pooling.real import ByQuota, Kind, Prompt, run_turns

    shapes, random = small_shapes(), context.random("prompts")
    kinds = [Kind(shapes[batch % len(shapes)], context.seed + batch) for batch in range(batches)]
    prompts = [
        Prompt(batch, tuple(random.integers(0, kind.shape.vocabulary, PROMPT).tolist()), kind.shape.longest - PROMPT)
        for batch, kind in enumerate(kinds)
        for _ in range(REQUESTS)
    ]
    parts = []
    for cap_s in caps_s if context.mode == "full" else caps_s[:1]:
        context.tell(f"real run: {batches} models take turns, cap {cap_s:g} s")
        share = batches * switch_s * step_s / tbt_s / cap_s
        turns = ByQuota(batches * step_s / tbt_s, share, floor, ROUNDS[context.mode])
        run = run_turns(kinds, prompts, turns, prefetch=False, clock="processor", keep=False, stop=context.give_way)
        if not len(run.paces):
            raise UserError(
                f"Turns of these batches are longer than the {kinds[0].shape.longest} tokens that a small model takes; "
                "shorten the switch or the cap, or lengthen the step."
            )
        label = f"turns of {batches} small models, cap {cap_s:g} s"
        context.cite(f"overhead of {label}", run.overhead, "1", "measured", "share of time in no step and no switch")
        source = f"share of time in which the process used no processor, on {run.device}, unpaced"
        context.cite(f"time without a processor of {label}", run.waiting_share, "1", "measured", source)
        context.cite(f"promised time between tokens of {label}", run.tbt_s, "s", "measured", "from its first steps")
        context.cite(f"longest quota of {label}", run.quota_s, "s", "measured", "from its first switches")
        parts.append(
            run.paces.select(
                pl.lit(cap_s).alias("cap_s"), "over_alpha", batch="model", pace="measured", alpha="predicted"
            )
        )
    return pl.concat(parts)


def _lead(cap_s: float, begin_s: float, quota_s: float, length_s: float, tokens: float, tbt_s: float) -> list[dict]:
    """Tokens in hand of a reader of the first batch over three rounds: what came less what was read."""
    rows = []
    for place in range(3):
        start = place * length_s + begin_s
        for time_s, made in ((start, place * tokens), (start + quota_s, (place + 1) * tokens)):
            rows.append({"cap_s": cap_s, "time_s": time_s, "tokens": made - (time_s - begin_s) / tbt_s})
    return rows
