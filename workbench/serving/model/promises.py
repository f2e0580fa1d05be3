"""How well promises were kept and what it took: attainment by four definitions, and the metrics of a run."""

from typing import get_args

import numpy as np

from workbench.profiles.slo_record import SLO, Definition
from workbench.serving.kernels.attainment import fill_in_time, fill_time_kept
from workbench.serving.model.lowered import DONE, Lowered, Outcome

DEFINITIONS: tuple[Definition, ...] = get_args(Definition)


def attainment(lowered: Lowered, outcome: Outcome, tokens_s: np.ndarray, at: np.ndarray, slo: SLO) -> dict[str, float]:
    """Attainment of a promise by the four definitions of `workbench.profiles.slo_record.Definition`.

    *request*: share of requests that are done with TTFT and TPOT within the targets. *token*: share of the tokens asked
    for that came by arrival + TTFT + i x TBT; tokens never made are missed. *qos-artifact* and *qos-reset*: the mean
    over requests of the share of time that met moving targets, 0 for requests that are not done. Requests that ask for
    no tokens are left out, and those that had not arrived when the clock stopped.

    Parameters:
        lowered, outcome: the run.
        tokens_s, at: times of all tokens request after request, and where each request's begin.
        slo: the promise; its own definition plays no part.

    Source: notes on Aegaeon, §2.2 (artifact: plots/plot_e2e.py, utils.py).
    """
    shares = {}
    for name in DEFINITIONS:
        kept, weight = kept_shares(lowered, outcome, tokens_s, at, slo, name)
        total = float(weight.sum())
        shares[name] = float((kept * weight).sum() / total) if total > 0 else float("nan")
    return shares


def kept_shares(
    lowered: Lowered, outcome: Outcome, tokens_s: np.ndarray, at: np.ndarray, slo: SLO, definition: Definition
) -> tuple[np.ndarray, np.ndarray]:
    """How far the promise was kept for each request and how much the request counts, float64[n] each.

    Attainment is the mean of the first weighted by the second; parameters as in `attainment`.
    """
    requests = lowered.requests
    ttft_s, tbt_s, n = float(slo.ttft_s), float(slo.tbt_s), requests.arrival_s.size
    counted = ((requests.output > 0) & (requests.arrival_s <= lowered.until_s)).astype(float)
    if definition == "request":
        return kept_promises(lowered, outcome, slo).astype(float), counted
    if definition == "token":
        in_time = np.empty(n, np.int64)
        fill_in_time(tokens_s, at, requests.arrival_s, ttft_s, tbt_s, in_time)
        return in_time / np.maximum(requests.output, 1), counted * requests.output
    kept = np.zeros(n)
    fill_time_kept(tokens_s, at, requests.arrival_s, ttft_s, tbt_s, int(definition == "qos-reset"), kept)
    return np.where(outcome.status == DONE, kept, 0.0), counted


def time_to_first_token_s(lowered: Lowered, outcome: Outcome) -> np.ndarray:
    """From the client's arrival, float64[n], NaN where no token came."""
    return outcome.first_token_s - lowered.requests.arrival_s


def time_per_output_token_s(outcome: Outcome) -> np.ndarray:
    """(last - first) / max(1, n - 1) of the requests that are done, float64[n], NaN elsewhere."""
    return (outcome.finish_s - outcome.first_token_s) / np.maximum(1, outcome.made - 1)


def kept_promises(lowered: Lowered, outcome: Outcome, slo: SLO) -> np.ndarray:
    """Which requests are done with TTFT and TPOT within the targets, bool[n]."""
    ttft_s, tpot_s = time_to_first_token_s(lowered, outcome), time_per_output_token_s(outcome)
    return (outcome.status == DONE) & (ttft_s <= float(slo.ttft_s)) & (tpot_s <= float(slo.tbt_s))
