"""Explorers of the gallery for readers without Python: a page a paper, with one library that all of them share."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from workbench.catalogue.spec import find

FOLDER = "explorers"
"""Below the gallery's own."""

EXPLORERS: dict[str, dict[str, Any]] = {
    "blitzscale/fig9": {"layers": [7, 16, 32, 80], "load_layers": [0.0, 1.0, 3.0, 6.0, 10.0, 20.0, 40.0]},
    "aegaeon/fig4": {"models": [10, 50, 100, 200, 500], "active_s": [2.0, 5.0, 10.0, 16.79, 40.0, 100.0]},
    "lambdascale/block-count": {
        "nodes": [2, 3, 4, 8, 16, 32, 64, 128],
        "overhead_factor": [0.01, 0.1, 0.3, 1.0, 3.0, 10.0],
    },
    "chains/bound-gap": {"load": [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95], "spread": [1.0, 2.0, 3.0, 6.0, 16.0]},
    "blendserve/overlap": {
        "memory_slope": [0.0, 0.25, 0.5, 0.75, 0.95],
        "compute_slope": [0.0, 0.2, 1 / 3, 0.5, 0.75, 0.95],
    },
    "showdown/savings": {
        "correlation": [0.0, 0.05, 0.2, 0.5, 1.0],
        "spare_hosts": [0, 1, 4, 16],
        "rent": [0.8, 1.5, 3.0, 6.0, 12.0],
    },
}
"""Experiment -> its sliders and their positions: one of each paper whose formula answers at once, one across papers."""


def write_explorers(ids: Iterable[str], out: Path, progress: Callable[[str], object]) -> dict[str, str]:
    """Write the pages of those experiments that have one.

    Returns:
        experiment -> its page, relative to `out`.
    """
    from workbench.explore.exporting import export_page

    chosen = {id: sliders for id, sliders in EXPLORERS.items() if id in set(ids)}
    if chosen:
        (out / FOLDER).mkdir(exist_ok=True)
    found = {}
    for id, sliders in chosen.items():
        page = f"{FOLDER}/{id.replace('/', '-')}.html"
        export_page(find(id), out / page, sliders, {}, backend="analytic", progress=progress, share=True)
        found[id] = page
    return found
