"""How far the arrivals of one sample lie from given statistics."""

import numpy as np

from workbench.workloads.statistics.arrivals import arrival_statistics

_DIFFERENCES = ("acf", "empty")
_LEAST_WINDOWS = 20


def arrival_measures(times_s: np.ndarray) -> dict[str, float]:
    """Statistics of sorted arrival times under the names that stand-ins are calibrated by.

    `requests`, `gap_cv`, and for 1, 10 and 60 s `cv_1s, idc_1s, peak_over_mean_1s, acf1_1s, empty_share_1s` and so on,
    where the span holds at least 20 such windows.
    """
    found = arrival_statistics(times_s)
    if found is None:
        return {}
    measures = {"requests": float(found.n), "gap_cv": found.gap_cv}
    for window in (entry for entry in found.windows if entry.windows >= _LEAST_WINDOWS):
        for name in ("cv", "idc", "peak_over_mean", "acf1", "empty_share"):
            measures[f"{name}_{window.window_s:g}s"] = getattr(window, name)
    return measures


def deviations(measures: dict[str, float], targets: dict[str, float]) -> dict[str, float]:
    """How far each target is missed: relative to it; autocorrelations and shares of empty windows as differences."""
    return {
        name: (measures.get(name, np.nan) - target) / (1.0 if name.startswith(_DIFFERENCES) else target)
        for name, target in targets.items()
    }


def distance(measures: dict[str, float], targets: dict[str, float]) -> float:
    """Root mean square of the deviations; infinite where a statistic does not exist."""
    missed = np.array(list(deviations(measures, targets).values()))
    return float("inf") if np.isnan(missed).any() else float(np.sqrt(np.mean(missed**2)))
