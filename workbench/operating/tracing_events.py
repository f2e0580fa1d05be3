"""A run as the trace-event JSON that chrome://tracing and Perfetto read."""

import json

import numpy as np

from workbench.serving import Run

PHASES = (("wait", "arrival", "admission"), ("prompt", "admission", "first token"), ("decode", "first token", "finish"))


def chrome_events(run: Run, models: list[str]) -> str:
    """Each instance is a process; each request has nested spans for waiting, prompt and decoding, on its last instance.

    Times are microseconds from the first arrival, as the format asks.

    Parameters:
        run: what happened.
        models: of each instance.
    """
    out, requests = run.outcome, run.lowered.requests
    events = [
        {"ph": "M", "name": "process_name", "pid": j, "args": {"name": f"instance {j}: {model}"}}
        for j, model in enumerate(models)
    ]
    ids = run.asked["request_id"].to_list()
    times = {
        "arrival": requests.arrival_s,
        "admission": requests.arrival_s + out.wait_s,
        "first token": out.first_token_s,
        "finish": out.finish_s,
    }
    for name, start, end in PHASES:
        for r in np.flatnonzero(~np.isnan(times[start] + times[end]) & (out.instance >= 0)):
            common = {"cat": "request", "id": str(ids[r]), "pid": int(out.instance[r]), "tid": 0, "name": name}
            about = {"prompt_tokens": int(requests.prompt[r]), "output_tokens": int(requests.output[r])}
            events.append({"ph": "b", "ts": _us(times[start][r]), "args": about, **common})
            events.append({"ph": "e", "ts": _us(times[end][r]), **common})
    for time_s, j, back_s in zip(*run.lowered.failures, strict=True):
        if time_s <= run.lowered.until_s:
            events.append({"ph": "i", "s": "p", "name": "failure", "pid": int(j), "tid": 0, "ts": _us(time_s)})
        if back_s <= run.lowered.until_s and np.isfinite(back_s):
            events.append({"ph": "i", "s": "p", "name": "recovery", "pid": int(j), "tid": 0, "ts": _us(back_s)})
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, allow_nan=False)


def _us(seconds: float) -> float:
    return round(float(seconds) * 1e6, 3)
