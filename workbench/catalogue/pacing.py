"""What a reader must know of a real run on paced links: how far it was scaled down, and what it is evidence for."""

from workbench.catalogue.context import Context
from workbench.catalogue.outcome import Outcome
from workbench.executor.scale import times_show
from workbench.transfer.real import RealMulticast

_MARKS = {"σ of ": "σ", "θ of ": "θ", "overhead of ": "overhead", "waiting of ": "waiting"}


def cite_pacing(context: Context, label: str, run: RealMulticast) -> None:
    """Enter σ, θ, overhead and the share of waiting of one real run into the ledger."""
    context.cite(f"σ of {label}", run.scale.sigma, "1", "chosen", "bytes shrink by σ so that this machine keeps up")
    context.cite(f"θ of {label}", run.scale.theta, "1", "chosen", "seconds stretch by θ; 1 is real time")
    context.cite(f"overhead of {label}", run.overhead, "1", "measured", "mean lateness over the shortest step")
    text = f"share of the time that the processes waited for a link's clock; the run is {run.label}"
    context.cite(f"waiting of {label}", run.waiting_share, "1", "measured", text)


def pacing_note(outcome: Outcome) -> str:
    """One sentence on the real run of an outcome, or "" where there is none."""
    found: dict[str, list[float]] = {}
    for source in outcome.sources:
        for start, name in _MARKS.items():
            if source.quantity.startswith(start):
                found.setdefault(name, []).append(float(source.value))
    if len(found) < len(_MARKS):
        return ""
    kind = "Recorded run" if "recorded" in outcome.backends else "Real run"
    shown = " or ".join(dict.fromkeys(times_show(share) for share in sorted(found["waiting"], reverse=True)))
    return (
        f"{kind}: bytes over σ = {_range(found['σ'], '{:.3g}')}, seconds times θ = {_range(found['θ'], '{:.3g}')}; "
        f"mean lateness {_range(found['overhead'], '{:.1%}')} of a step, processes waited "
        f"{_range(found['waiting'], '{:.0%}')} of the time ({shown}). Links are paced to the α and B that the formula "
        "uses: that both agree is evidence for the schedule and its executor, not for the rate."
    )


def _range(values: list[float], form: str) -> str:
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"
