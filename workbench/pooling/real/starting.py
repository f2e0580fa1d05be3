"""Starting an engine and reusing it, for real, and copies of weights in several ways: seconds of each part.

Pinned memory is the way of a GPU alone: without one there is nothing that a copy from page-locked memory could overlap
with, so only pageable copies are measured, whole and in chunks, into memory that is new and into one buffer.
"""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import polars as pl

from workbench.executor.driving import all_said
from workbench.executor.gathering import gather
from workbench.executor.processes import Pool
from workbench.executor.transformer import Shape, write_model
from workbench.executor.watching import StopWanted
from workbench.pooling.real.asked import BLOCK_TOKENS, Asked, ByChance, Kind, Prompt
from workbench.pooling.real.running import LIMIT_S, PATIENCE_S
from workbench.records import Record, whole

BLOCKS = 4
SEED = 11
PROMPT = tuple(range(3, 3 + 2 * BLOCK_TOKENS))
HOST_SLABS = 64


class StartRun(Record):
    """What a start took, and what a switch in the running engine.

    Attributes:
        parts: `way, part, seconds`: *first*: a new interpreter imports what it needs (executor), weights are read from
            files and copied (weights), memory for KV caches is made (caches), passes are timed (profiling), and what is
            left until the first token (other); *reused*: KV out, weights, KV in, and the step to the first token, the
            median of several switches.
        copies: `way, chunk_bytes, seconds, bytes_per_s`, medians; ways with "pinned" on a GPU only.
        weight_bytes: of the model.
        device: that it ran on.
    """

    parts: pl.DataFrame
    copies: pl.DataFrame
    weight_bytes: int
    device: str

    def total_s(self, way: str) -> float:
        """Seconds of a way until the first token."""
        return float(self.parts.filter(pl.col("way") == way)["seconds"].sum())

    @property
    def removed(self) -> float:
        """Share of the first start that a switch in the running engine does without."""
        return 1.0 - self.total_s("reused") / self.total_s("first")

    @property
    def removed_within(self) -> float:
        """The same without the interpreter and its imports: of what the engine itself did at its start."""
        executor = pl.col("part") == "executor"
        first_s = float(self.parts.filter((pl.col("way") == "first") & ~executor)["seconds"].sum())
        return 1.0 - self.total_s("reused") / first_s


def measure_starts(shape: Shape, repeats: int = 5, *, device: str = "cpu", stop: StopWanted = None) -> StartRun:
    """How long does an engine take to its first token, and how long does one that is there take to another model's?

    Parameters:
        shape: of two models of different weights.
        repeats: switches, and copies of each way, of which the median is taken.
        device: "cpu" or a CUDA device.
        stop: asked ten times a second whether to give up.

    Errors: `MissingExtra` without torch; `InputError` for no repeats, or more than the shape's longest request has
        tokens for; `RunFailed` when the process fails.
    """
    whole(repeats, "repeats", 1)
    prompts = tuple(Prompt(model, PROMPT, 2 * repeats + 4) for model in (0, 1))
    whole(shape.longest, "longest", len(PROMPT) + 2 * repeats + 4)
    kinds = tuple(Kind(shape, SEED + model) for model in (0, 1))
    slab_bytes = 4 * BLOCK_TOKENS * shape.kv_bytes_per_token
    asked = Asked(kinds, prompts, ByChance(1, 0), False, device, "wall", slab_bytes, HOST_SLABS)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="workbench-", ignore_cleanup_errors=True)))
        files = tuple(
            write_model(folder / str(model), shape, kind.seed, BLOCKS, f"model {model}")
            for model, kind in enumerate(kinds)
        )
        begun_s = time.monotonic()
        pool = stack.enter_context(Pool(1, fresh=True))
        workers = stack.enter_context(pool.lease(1))
        from workbench.pooling.real.engine_start import start_engine

        workers[0].give(start_engine, asked, files, repeats)
        entered_s, ended_s = all_said(workers, pool.beats, LIMIT_S, stop, PATIENCE_S)[0]
        (parts, switches, copies) = gather(workers, pool.beats, LIMIT_S, stop, PATIENCE_S)[0]
    parts = {"executor": entered_s - begun_s, **parts}
    parts["other"] = ended_s - begun_s - sum(parts.values())
    rows = [("first", part, seconds) for part, seconds in parts.items()]
    rows += [("reused", part, median(one[part] for one in switches)) for part in switches[0]]
    size = sum(file.bytes for file in files[:1])
    return StartRun(
        parts=pl.DataFrame(rows, schema=["way", "part", "seconds"], orient="row"),
        copies=pl.DataFrame(
            [(way, chunk, median(seconds), size / median(seconds)) for way, chunk, seconds in copies],
            schema=["way", "chunk_bytes", "seconds", "bytes_per_s"],
            orient="row",
        ),
        weight_bytes=size,
        device=device,
    )
