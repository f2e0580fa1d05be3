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
from workbench.catalogue.spec import Agree, experiment
from workbench.chains import OVERHEADS, Fleet, JobList, TokenTimes, compose, token_times, work_of

SLOPE = "fitted slope over output tokens against RTT plus overhead [acceptance]"
OVERHEAD = "overhead for (de)serialisation added to each round trip"
AXES = ("tokens out", "tokens in")
REAL_SHARES = {"tokens out": (0.0, 0.25, 0.5, 1.0), "tokens in": (0.0, 0.25, 0.5)}
"""Places along each axis of the real run."""

REAL_BLOCK_S = 0.005
THETA = 8.0
"""How far the real run stretches time: one late moment is little beside a round trip then."""

READINGS = {"full": 3, "quick": 1}
"""Runs of each job, of which the quickest counts: what a busy machine adds is no way."""


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
    backends=("analytic", "torch"),
    seconds={"analytic": 0.02, "torch": 110},
    draw="chains_profiles.communication",
    panels=AXES,
    say=_say,
    agrees=(
        Agree("seconds under way", "under way", ("server", "axis", "tokens"), "seconds",
              {("analytic", "torch"): (-0.01, 0.05)}),
    ),
)  # fmt: skip
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
    """(RTT + o + o_in) + (n_out - 1)(RTT + o); the paper's own expression was not readable, this one is inferred.

    The real run sends every token of a small transformer to a process and back, and waits for round trips and messages;
    what is left of a job's seconds without those of computing is what it was under way.
    """
    given = common.setting(
        context, cluster, "bloom-176b", 10, 0.2,
        overheads=OVERHEADS._replace(message_s=message_s, first_message_s=first_message_s),
    )  # fmt: skip
    rows = []
    if context.backend == "torch":
        times = token_times([given.kinds[0]], [round_trip_s], given.block, given.overheads).communication_s[0]
        rows = _real(context, given.kinds[0].name, times, tokens_in, tokens_out)
    for kind in () if rows else dict.fromkeys(given.kinds):
        times = token_times([kind], [round_trip_s], given.block, given.overheads).communication_s[0]
        for axis, most in (("tokens out", 2 * tokens_out), ("tokens in", 2 * tokens_in)):
            for value in _places(most, np.linspace(0, 1, 21)):
                tokens = (tokens_in, value) if axis == "tokens out" else (value, tokens_out)
                rows.append((kind.name, axis, value, float(work_of([tokens[0]], [tokens[1]])[0] @ times)))
    table = pl.DataFrame(rows, schema=["server", "axis", "value", "seconds"], orient="row")
    out = table.filter((pl.col("axis") == "tokens out") & (pl.col("server") == table["server"][0]))
    slope = float(np.polyfit(out["value"], out["seconds"], 1)[0]) if len(out) > 1 else round_trip_s + message_s
    stated = float(profiles.cluster(common.SITES).alternate("orchestrator", "serialisation_s"))
    known = [(SLOPE, "", slope / (round_trip_s + message_s), "1"), (OVERHEAD, "", stated, "s")]
    return {"curves": table, "under way": table.rename({"value": "tokens"}), "headline": headline(known)}


def _places(most: int, shares) -> list[int]:
    return sorted({max(1, round(share * most)) for share in shares})


def _real(context: Context, server: str, each_s: np.ndarray, tokens_in: int, tokens_out: int) -> list[tuple]:
    """Seconds under way of jobs alone on one server with one block, at full size."""
    from workbench.chains.real import serve_chains
    from workbench.executor.processes import Pool
    from workbench.executor.transformer import Shape

    fleet = Fleet(memory_bytes=[3], communication_s=[1], compute_s=[1], layers=1, block_bytes=1, cache_bytes=1)
    times = TokenTimes(each_s[None], np.array([[REAL_BLOCK_S, 0.0, REAL_BLOCK_S]]))
    shape = Shape(
        layers=1, hidden=64, heads=4, kv_heads=2, ffn=128, vocabulary=64, longest=2 * (tokens_in + tokens_out) + 1
    )
    rows, late = [], []
    theta = THETA if context.mode == "full" else 1.0
    with Pool(1) as pool:
        for axis, most in (("tokens out", 2 * tokens_out), ("tokens in", 2 * tokens_in)):
            for value in _places(most, REAL_SHARES[axis]):
                context.tell(f"real run: {value} {axis}")
                tokens = (tokens_in, value) if axis == "tokens out" else (value, tokens_out)
                jobs = JobList(np.zeros(1), work_of([tokens[0]], [tokens[1]]), np.zeros((1, 2)))
                runs = [
                    serve_chains(compose(fleet, 1), times, jobs, shape=shape, theta=theta, seed=context.seed,
                                 pool=pool, stop=context.give_way)
                    for _ in range(READINGS[context.mode])
                ]  # fmt: skip
                under_way_s = min(
                    run.mean_service_s - run.servers["held_share"][0] * run.jobs["finish_s"][0] for run in runs
                )
                rows.append((server, axis, value, under_way_s))
                late.append(rows[-1][-1] / float(jobs.work[0] @ each_s) - 1)
    context.cite("θ of the real run", theta, "1", "chosen", "seconds stretch by θ; 1 is real time")
    text = "what passes and the relay were late, over round trips and messages, the worst of all jobs"
    context.cite("overhead of the real run", float(max(late)), "1", "measured", text)
    return rows
