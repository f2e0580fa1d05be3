"""A switch of models in stages, before any optimisation (T0) and after each: reuse, explicit memory, KV overlap."""

import polars as pl

from workbench.pooling.model.facts import facts
from workbench.records import Asked, NotNegative, Positive

STEPS = ("T0", "T1", "T2", "T3")


class SwitchStages(Asked):
    """What a switch consists of.

    Attributes:
        weight_bytes: of a GPU.
        kv_bytes: that leave, and as many that come.
        plain_bytes_per_s: of copies without care. bytes_per_s: of pinned copies in chunks.
        collect_s: garbage collection.
        executor_s, profiling_s, pinning_s, other_s: of an engine's start, beside weights.
        hidden_s: seconds of loading that a prefetch hides.
    """

    weight_bytes: Positive
    kv_bytes: NotNegative
    plain_bytes_per_s: Positive
    bytes_per_s: Positive
    collect_s: NotNegative
    executor_s: NotNegative
    profiling_s: NotNegative
    pinning_s: NotNegative
    other_s: NotNegative
    hidden_s: NotNegative = 0.0

    @property
    def start_s(self) -> float:
        """Of an engine that reuses nothing, weights included."""
        reused = self.executor_s + self.profiling_s + self.pinning_s + self.other_s
        return reused + self.weight_bytes / self.plain_bytes_per_s

    def table(self) -> pl.DataFrame:
        """Seconds by optimisation and stage: `optimisation, stage, seconds`.

        T1 reuses the engine's parts: executor, profiling, pinned memory. T2 collects nothing and loads at the rate of
        pinned copies, less what a prefetch hides. T3 moves KV caches beside the load: those that come share its way,
        those that leave have one of their own.

        Source: Aegaeon (SOSP'25) §5, Figures 7, 8 and 10; the sums are our model of them.
        """
        plain_kv_s = self.kv_bytes / self.plain_bytes_per_s
        kv_s, load_s = self.kv_bytes / self.bytes_per_s, self.weight_bytes / self.bytes_per_s
        load_s = max(0.0, load_s - self.hidden_s)
        engine = {
            "executor": self.executor_s, "profiling": self.profiling_s, "pinning": self.pinning_s, "other": self.other_s
        }  # fmt: skip
        plain = {"KV out": plain_kv_s, "collection": self.collect_s}
        weights = {"weights": self.weight_bytes / self.plain_bytes_per_s, "KV in": plain_kv_s}
        by = {
            "T0": plain | engine | weights,
            "T1": plain | weights,
            "T2": {"KV out": kv_s, "weights": load_s, "KV in": kv_s},
            "T3": {"weights": load_s, "KV in": kv_s},
        }
        rows = [(step, stage, seconds) for step, stages in by.items() for stage, seconds in stages.items()]
        return pl.DataFrame(rows, schema=["optimisation", "stage", "seconds"], orient="row")

    def totals(self) -> dict[str, float]:
        """Seconds of T0 to T3."""
        table = self.table().group_by("optimisation").agg(pl.col("seconds").sum())
        return dict(sorted(table.iter_rows()))


def known_stages(weight_bytes: float, kv_bytes: float, bytes_per_s: float, **changes) -> SwitchStages:
    """The stages as far as the paper tells, the rest inferred, each with its source in the facts."""
    known = {name: float(value) for name, value in facts().stages if name != "weights_s"}
    return SwitchStages(weight_bytes=weight_bytes, kv_bytes=kv_bytes, bytes_per_s=bytes_per_s, **(known | changes))
