"""Exercises on BlitzScale: how fast a load must be, how long a chain takes, what a half-loaded instance is worth."""

from typing import Any

from workbench.profiles import model
from workbench.scaling.model.live_pair import throughput_gain
from workbench.teaching.task import FunctionTask, Rng, Slip, ValueTask, pick
from workbench.transfer.model import chain_of_blocks_s


def _draw_rate(rng: Rng) -> dict[str, Any]:
    name, gpus = pick(rng, ("llama-3-8b", 1), ("llama-3-8b", 2), ("qwen2.5-72b", 4), ("qwen2.5-72b", 8))
    return {"name": name, "gpus": gpus, "stop_ms": 50 * int(rng.integers(4, 31))}


def _rate_gbps(name: str, gpus: int, stop_ms: int) -> float:
    return model(name).weight_bytes * 8e-9 / gpus / (stop_ms / 1e3)


def _draw_chain(rng: Rng) -> dict[str, Any]:
    return {
        "gigabytes": int(rng.integers(10, 90)), "targets": int(rng.integers(3, 12)), "gbps": pick(rng, 50, 100, 200),
        "units": int(rng.integers(8, 40)),
    }  # fmt: skip


def _chain_s(gigabytes: int, targets: int, gbps: int, units: int) -> float:
    unit_s = gigabytes * 8 / gbps / units
    return float(chain_of_blocks_s([unit_s] * targets, units)[-1])


def _pairs(rng: Rng) -> list[tuple[int, int]]:
    depths = [7, *rng.integers(2, 81, 7).tolist()]
    found = [(depth, int(rng.integers(0, depth + 1))) for depth in depths]
    return [*found, (depths[1], 0), (depths[2], depths[2]), (9, 4), (9, 8)]


EXERCISES = (
    ValueTask(
        "blitzscale/stop-rate",
        "How fast must loading be?",
        "An instance of {name} runs on {gpus} GPU(s), its bfloat16 weights cut evenly over them. It may stop for "
        "{stop_ms} ms. How many gigabits per second must each GPU receive?",
        "Gbps",
        _draw_rate,
        _rate_gbps,
        (
            "How many bytes are the weights? wb.model(...).weight_bytes knows.",
            "Links are sold in bits, memory in bytes; and every GPU receives its own part only.",
            "Bytes of the weights, times 8, by the number of GPUs and the seconds of the stop.",
        ),
        (
            Slip("those are gigabytes per second; links are counted in bits.", lambda **n: _rate_gbps(**n) / 8),
            Slip(
                "that is what all GPUs receive together; each gets its own part.",
                lambda name, gpus, stop_ms: _rate_gbps(name, 1, stop_ms),
            ),
        ),
    ),
    ValueTask(
        "blitzscale/chain-time",
        "How long does a chain take?",
        "{gigabytes} GB (of 10⁹ bytes) travel from a host along a chain of {targets} targets over links of {gbps} "
        "Gbps, in {units} equal units; a target forwards a unit when it has all of it. After how many seconds does the "
        "last target hold everything?",
        "s",
        _draw_chain,
        _chain_s,
        (
            "Draw the units as rows and the hops as columns. When does the last unit leave the source?",
            "The last unit leaves when all units have been sent, and has targets - 1 hops left after its first.",
            "(units + targets - 1) times the seconds of one unit over one link.",
        ),
        (
            Slip(
                "that is a chain without overlap, where every target waits for the whole.",
                lambda gigabytes, targets, gbps, units: targets * gigabytes * 8 / gbps,
            ),
            Slip(
                "that is when the first target holds everything.",
                lambda gigabytes, targets, gbps, units: gigabytes * 8 / gbps,
            ),
            Slip(
                "one hop too many: the first target's hop is among the units already.",
                lambda gigabytes, targets, gbps, units: (units + targets) * gigabytes * 8 / gbps / units,
            ),
        ),
        tolerance=0.005,
    ),
    FunctionTask(
        "blitzscale/live-gain",
        "What is a half-loaded instance worth?",
        "A model has so many layers, and a new instance holds the first `loaded` of them. It runs up to half of the "
        "layers of every batch for the old one (rounded down), or, with all of them, serves alone beside it. How many "
        "times the throughput of the old instance alone do both have?",
        "gain",
        ("layers", "loaded"),
        _pairs,
        lambda layers, loaded: float(throughput_gain(layers, [loaded])[0]),
        (
            "Whoever runs more layers of a batch sets the pace. Which of the two is that?",
            "The old one is left with layers - k, where k is what the new one runs: at most half.",
            "layers / (layers - min(loaded, layers // 2)), and 2 when all layers are there.",
        ),
    ),
)
"""In the order of the notebook."""
