"""Seconds that a job spends on coming to a server and back, by tokens out and in."""

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
import polars as pl

from workbench import profiles
from workbench.catalogue.chains import common
from workbench.catalogue.chains.common import SUMMARY
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.spec import experiment
from workbench.chains import OVERHEADS, token_times, work_of

SLOPE = "fitted slope over output tokens against RTT plus overhead [acceptance]"
OVERHEAD = "overhead for (de)serialisation added to each round trip"
AXES = ("tokens out", "tokens in")


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    each = parameters["round_trip_s"] + parameters["message_s"]
    return (
        f"Each of {parameters['tokens_out']} tokens costs {parameters['round_trip_s'] * 1e3:.3g} ms for the round trip "
        f"and {parameters['message_s'] * 1e3:.3g} ms for (de)serialisation: {parameters['tokens_out'] * each:.3g} s a "
        "server on the way, whatever its GPU and however long the prompt is."
    )


@experiment(
    "chains/communication-profile",
    title="How long is a job under way?",
    question="What does each server on the way of a job add in communication, and what does that depend on?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="chains_profiles.communication",
    panels=AXES,
    say=_say,
)
def communication_profile(
    context: Context,
    *,
    cluster: common.Cluster = "server-chains-simulation",
    round_trip_s: Annotated[
        float,
        Par(
            "Round trip",
            "s",
            low=0.001,
            high=0.5,
            log=True,
            free=True,
            source="RIPE Atlas statistics of the artifact: 10 to 42 ms from the best connected site, median 18.9",
        ),
    ] = 0.019,
    message_s: Annotated[
        float,
        Par(
            "(De)serialisation of a token's message", "s", low=0.0, high=0.1, step=0.001, status="published",
            source=f"{SUMMARY} §2.1.2: 18 ms",
        ),
    ] = 0.018,
    first_message_s: Annotated[
        float,
        Par(
            "More for the first token", "s", low=0.0, high=0.2, step=0.01, free=True,
            source="0 inferred; the MATLAB tests have 50 ms here and no overhead per token",
        ),
    ] = 0.0,
    tokens_in: common.TokensIn = 2000,
    tokens_out: common.TokensOut = 20,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """(RTT + o + o_in) + (n_out - 1)(RTT + o); the paper's own expression was not readable, this one is inferred."""
    given = common.setting(
        context, cluster, "bloom-176b", 10, 0.2,
        overheads=OVERHEADS._replace(message_s=message_s, first_message_s=first_message_s),
    )  # fmt: skip
    rows = []
    for kind in dict.fromkeys(given.kinds):
        times = token_times([kind], [round_trip_s], given.block, given.overheads).communication_s[0]
        for axis, most in (("tokens out", 2 * tokens_out), ("tokens in", 2 * tokens_in)):
            for value in sorted({max(1, round(share * most)) for share in np.linspace(0, 1, 21)}):
                tokens = (tokens_in, value) if axis == "tokens out" else (value, tokens_out)
                rows.append((kind.name, axis, value, float(work_of([tokens[0]], [tokens[1]])[0] @ times)))
    table = pl.DataFrame(rows, schema=["server", "axis", "value", "seconds"], orient="row")
    out = table.filter((pl.col("axis") == "tokens out") & (pl.col("server") == table["server"][0]))
    slope = float(np.polyfit(out["value"], out["seconds"], 1)[0]) if len(out) > 1 else round_trip_s + message_s
    stated = float(profiles.cluster(common.SITES).alternate("orchestrator", "serialisation_s"))
    known = [(SLOPE, "", slope / (round_trip_s + message_s), "1"), (OVERHEAD, "", stated, "s")]
    return {"curves": table, "headline": headline(known)}
