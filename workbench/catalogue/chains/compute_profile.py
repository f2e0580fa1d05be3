"""Seconds of a block on two GPU slices, by blocks, tokens in and tokens out."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench import profiles
from workbench.catalogue.chains import common
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import Match, experiment
from workbench.chains import Block, token_times, work_of
from workbench.profiles import Accelerator

TIME = "time per block and job"
NAMES = {"a100-80gb-mig-3g.40gb": "3g.40gb", "a100-80gb-mig-2g.20gb": "2g.20gb"}
ARTIFACT = {"a100-80gb-mig-3g.40gb": "3g (156 TFLOPS)", "a100-80gb-mig-2g.20gb": "2g (78 TFLOPS)"}
AXES = ("blocks", "tokens in", "tokens out")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["parts"]
    first = table.row(0, named=True)
    share = first["prefill_s"] / (first["prefill_s"] + first["decode_s"] + first["overhead_s"])
    texts = [f"{row['seconds'] * 1e3:.1f} ms on {row['server']}" for row in table.to_dicts()]
    return (
        f"A job of {parameters['tokens_in']:,} tokens in and {parameters['tokens_out']} out takes "
        f"{' and '.join(texts)} for each block; {share:.0%} of the first is prefill."
    )


@experiment(
    "chains/compute-profile",
    title="How long does a block compute?",
    question="How do the seconds of a job on a server grow with its blocks, the tokens in and the tokens out?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="chains_profiles.compute",
    panels=AXES,
    say=_say,
    matches=(
        Match((TIME,), tolerance=0.005),
        Match((f"{TIME}, computed",), tolerance=0.0005),
        Match((f"{TIME}, constants of the MATLAB artifact",), tolerance=0.005),
    ),
)
def compute_profile(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    model: common.Served = "bloom-176b",
    blocks: Annotated[int, Par("Blocks of a server", low=1, high=70, step=1, free=True, source="chosen: any")] = 10,
    tokens_in: common.TokensIn = 2000,
    tokens_out: common.TokensOut = 20,
) -> dict[str, pl.DataFrame]:
    """t_o + n_in F/f + (n_out - 1) s_m/b for each block, on the fastest and the slowest kind of server."""
    given = common.setting(context, cluster, model, 10, 0.2, tokens_in=tokens_in, tokens_out=tokens_out)
    served = context.model(model)
    curves, parts, known = [], [], []
    for kind in dict.fromkeys(given.kinds):
        times = token_times([kind], [0.0], given.block, given.overheads).compute_s[0]
        each = times * np.array(given.usual)
        name = NAMES.get(kind.name, kind.name)
        parts.append((name, *each.tolist(), float(each.sum())))
        for axis, values in _axes(blocks, tokens_in, tokens_out).items():
            for value in values:
                seen = {"blocks": blocks, "tokens in": tokens_in, "tokens out": tokens_out} | {axis: value}
                seconds = seen["blocks"] * float(work_of([seen["tokens in"]], [seen["tokens out"]])[0] @ times)
                curves.append((name, axis, value, seconds))
        x = f"{'BLOOM-176B' if served.name == 'bloom-176b' else served.label}, {name}"
        known += [(series, x, float(each.sum()), "s") for series in (TIME, f"{TIME}, computed")]
        if kind.name in ARTIFACT:
            known.append(_artifact(kind, given.block, given.usual))
    columns = ["server", "overhead_s", "prefill_s", "decode_s", "seconds"]
    return {
        "curves": pl.DataFrame(curves, schema=["server", "axis", "value", "seconds"], orient="row"),
        "parts": pl.DataFrame(parts, schema=columns, orient="row"),
        "headline": headline(known),
    }


def _axes(blocks: int, tokens_in: int, tokens_out: int) -> dict[str, list[int]]:
    def upto(most: int) -> list[int]:
        return sorted({max(1, round(share * most)) for share in np.linspace(0, 1, 21)})

    return {"blocks": upto(2 * blocks), "tokens in": upto(2 * tokens_in), "tokens out": upto(2 * tokens_out)}


def _artifact(kind: Accelerator, block: Block, usual: tuple[float, ...]) -> tuple[str, str, float, str]:
    """The same seconds with the compute shares that the MATLAB artifact gives the slices."""
    other = profiles.accelerator(kind.name).under("server-chains-artifact")
    seconds = float(np.array(usual) @ token_times([other], [0.0], block).compute_s[0])
    return f"{TIME}, constants of the MATLAB artifact", f"BLOOM-176B, {ARTIFACT[kind.name]}", seconds, "s"
