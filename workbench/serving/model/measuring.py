"""A run in numbers: latencies, throughput, goodput, instance time."""

import numpy as np

from workbench.profiles.slo_record import SLO
from workbench.serving.model.lowered import DONE, REJECTED
from workbench.serving.model.promises import kept_promises, time_per_output_token_s, time_to_first_token_s
from workbench.serving.model.run import Run
from workbench.serving.model.scaling_tables import held_row_s

SHARES = (0.5, 0.9, 0.95, 0.99)


def metrics(run: Run, slo: SLO | None = None, accelerators: int | None = None) -> dict[str, float]:
    """Counts, mean and quantiles of TTFT, TPOT and E2E, tokens and requests a second, GPU time, and goodput.

    TTFT counts from the client's arrival; TPOT is (last - first) / max(1, n - 1); E2E ends with the last token. A rate
    is over the span from the first arrival to the last finish, or to where the clock stopped. GPU time is given as
    allocated (instances that are there, or starting, draining, warm, over the span) and as active (running a request:
    all completed steps, since an instance steps whenever it has one).

    Parameters:
        run: what happened.
        slo: adds `goodput_per_s`, requests that keep both targets a second.
        accelerators: of each instance; those of the run's pool, or 1, when None.
    """
    accelerators = run.accelerators if accelerators is None else accelerators
    lowered, out = run.lowered, run.outcome
    done = out.status == DONE
    span_s = lowered.until_s if np.isfinite(lowered.until_s) else float(np.nanmax(out.finish_s, initial=0.0))
    found = {
        "arrived": float((lowered.requests.arrival_s <= lowered.until_s).sum()),
        "done": float(done.sum()),
        "rejected": float((out.status == REJECTED).sum()),
        "span_s": span_s,
        "requests_per_s": _rate(done.sum(), span_s),
        "output_tokens_per_s": _rate(out.made.sum(), span_s),
        "evictions": float(out.evictions.sum()),
        "gpu_allocated_s": accelerators * held_row_s(lowered, out, span_s),
        "gpu_active_s": accelerators * float(out.busy_s.sum()),
    }
    latencies = {
        "ttft": time_to_first_token_s(lowered, out),
        "tpot": np.where(out.made > 1, time_per_output_token_s(out), np.nan),
        "e2e": out.finish_s - lowered.requests.arrival_s,
    }
    for name, values in latencies.items():
        values = values[~np.isnan(values)]
        found[f"{name}_mean_s"] = float(values.mean()) if values.size else float("nan")
        for share in SHARES:
            found[f"{name}_p{100 * share:g}_s"] = float(np.quantile(values, share)) if values.size else float("nan")
    if slo is not None:
        found["goodput_per_s"] = _rate(kept_promises(lowered, out, slo).sum(), span_s)
    return found


def _rate(count: float, span_s: float) -> float:
    return float(count) / span_s if span_s > 0 else float("nan")
