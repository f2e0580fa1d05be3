"""How well promises were kept and what it took: attainment by four definitions, and the metrics of a run."""

import numpy as np

from workbench.profiles.slo_record import SLO
from workbench.serving.kernels.attainment import fill_in_time, fill_time_kept
from workbench.serving.model.lowered import DONE, Lowered, Outcome


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

    Source: papers/aegaeon, section 2.2 (artifact: plots/plot_e2e.py, utils.py).
    """
    requests = lowered.requests
    ttft_s, tbt_s, n = float(slo.ttft_s), float(slo.tbt_s), requests.arrival_s.size
    counted = (requests.output > 0) & (requests.arrival_s <= lowered.until_s)
    if not counted.any():
        return dict.fromkeys(("request", "token", "qos-artifact", "qos-reset"), float("nan"))
    in_time = np.empty(n, np.int64)
    fill_in_time(tokens_s, at, requests.arrival_s, ttft_s, tbt_s, in_time)
    shares = {
        "request": float(kept_promises(lowered, outcome, slo)[counted].mean()),
        "token": float(in_time[counted].sum() / requests.output[counted].sum()),
    }
    for name, reset in (("qos-artifact", 0), ("qos-reset", 1)):
        kept = np.zeros(n)
        fill_time_kept(tokens_s, at, requests.arrival_s, ttft_s, tbt_s, reset, kept)
        shares[name] = float(np.where(outcome.status == DONE, kept, 0.0)[counted].mean())
    return shares


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
