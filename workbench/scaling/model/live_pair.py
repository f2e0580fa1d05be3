"""How soon batches are done while an overloaded instance shares them with one that still receives its layers."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from pydantic import field_validator, model_validator

from workbench.errors import InputError, UnknownName
from workbench.records import Asked, AtLeastOne, NotNegative, Positive, whole
from workbench.scaling.kernels.live_pair import best_plan, live_pair
from workbench.scaling.policy.live_pair import SCHEDULES

MOST_PLANS = 3_000_000
"""Plans that the exact search goes through: some seconds."""
MOST_BATCHES, MOST_LAYERS = 10_000, 1_000


class LivePair(Asked):
    """Two instances, the batches that they share, and the rule by which they do.

    Attributes:
        layers: of the model.
        load_s: seconds in which one layer reaches the new instance; the first one is there at 0.
        arrival_s: when each batch comes, seconds, ascending.
        layer_s: seconds of one layer of each batch, or one number for all.
        hand_s: seconds for which the old instance waits for the activation of a batch, or one number for all.
        schedule: one of `workbench.scaling.policy.live_pair.SCHEDULES`.
        plan: layers of each batch on the new instance; of schedule *planned* only.
        untouched: whether the old instance may take a batch of which no layer is executed when no other is there;
            the paper is silent, the artifact does.

    >>> share_batches(LivePair(layers=7, load_s=6.0, arrival_s=[0.0] * 7)).finish_s.tolist()
    [7.0, 12.0, 17.0, 21.0, 24.0, 27.0, 29.0]
    """

    layers: AtLeastOne
    load_s: NotNegative
    arrival_s: tuple[NotNegative, ...]
    layer_s: Positive | tuple[Positive, ...] = 1.0
    hand_s: NotNegative | tuple[NotNegative, ...] = 0.0
    schedule: str = "zigzag"
    plan: tuple[int, ...] | None = None
    untouched: bool = False

    @field_validator("schedule")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in SCHEDULES:
            raise UnknownName("schedule", name, SCHEDULES)
        return name

    @model_validator(mode="after")
    def _fits(self):
        count = len(self.arrival_s)
        if self.layers > MOST_LAYERS:
            raise ValueError(f"layers is {self.layers}; give at most {MOST_LAYERS}")
        if count > MOST_BATCHES:
            raise ValueError(f"arrival_s has {count} batches; give at most {MOST_BATCHES}")
        if list(self.arrival_s) != sorted(self.arrival_s):
            raise ValueError("arrival_s is not ascending; sort it")
        for name in ("layer_s", "hand_s", "plan"):
            value = getattr(self, name)
            if isinstance(value, tuple) and len(value) != count:
                raise ValueError(f"{name} has {len(value)} entries for {count} batches; give one each")
        if (self.schedule == "planned") != (self.plan is not None):
            found = "no plan" if self.plan is None else f"a plan with schedule {self.schedule!r}"
            raise ValueError(f"schedule 'planned' and plan go together, got {found}; give both or neither")
        if self.plan is not None and not all(0 <= moved <= self.layers for moved in self.plan):
            raise ValueError(f"plan is {list(self.plan)}; give 0 to {self.layers} layers each")
        return self

    @property
    def number(self) -> int:
        """Of the schedule."""
        return SCHEDULES[self.schedule]

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """When layers are ready, when batches come, their layer and hand-over times, most layers on the new one."""
        count = len(self.arrival_s)
        if self.plan is not None:
            most = np.array(self.plan, np.int64)
        else:
            most = np.full(count, self.layers // 2 if self.schedule == "best-effort" else self.layers)
        return (
            np.arange(self.layers) * float(self.load_s),
            np.array(self.arrival_s, float),
            np.broadcast_to(np.array(self.layer_s, float), count).copy(),
            np.broadcast_to(np.array(self.hand_s, float), count).copy(),
            most,
        )


class Shared(NamedTuple):
    """What became of the batches.

    Attributes:
        finish_s: float64[N].
        moved: int64[N], layers of each that ran on the new instance.
        slots: `instance, batch, start_s, end_s`, every step of both in order of start.
    """

    finish_s: np.ndarray
    moved: np.ndarray
    slots: pl.DataFrame


def lay_out(finish_s: np.ndarray, moved: np.ndarray, slots: np.ndarray) -> Shared:
    """The result of either backend; `slots` float64[k, 4]: start, end, batch, instance."""
    table = pl.DataFrame(
        {
            "instance": pl.Series([("old", "new")[int(k)] for k in slots[:, 3]], dtype=pl.String),
            "batch": slots[:, 2].astype(np.int64),
            "start_s": slots[:, 0].copy(),
            "end_s": slots[:, 1].copy(),
        }
    )
    return Shared(finish_s, moved, table.sort("start_s", "instance"))


def share_batches(asked: LivePair) -> Shared:
    """When is every batch done, and where did its layers run?

    The old instance holds all layers, the new one receives them one after the other. A batch runs its first layers on
    the new one and the rest on the old one; steps of one layer are not interrupted.

    Source: BlitzScale (OSDI'25) §5.2, Fig 15 and 16, with the deterministic rules of notes on BlitzScale, §2.5.
    """
    ready_s, arrival_s, layer_s, hand_s, most = asked.arrays
    count = arrival_s.size
    finish_s, moved = np.empty(count), np.empty(count, np.int64)
    slots = np.empty((count * (asked.layers + 1), 4))
    used = live_pair(asked.number, asked.untouched, ready_s, arrival_s, layer_s, hand_s, most, finish_s, moved, slots)
    return lay_out(finish_s, moved, slots[:used])


def best_shares(asked: LivePair) -> tuple[tuple[int, ...], Shared]:
    """The plan by which batches finish earliest on average, found by trying all (layers + 1) ^ batches of them.

    Batches are taken first come, first served; the schedule that `asked` names plays no part.

    Raises:
        InputError: too many plans to try.
    """
    ready_s, arrival_s, layer_s, hand_s, _ = asked.arrays
    count = arrival_s.size
    if (asked.layers + 1) ** count > MOST_PLANS:
        raise InputError(
            f"and layers make {asked.layers + 1}^{count} plans, more than the {MOST_PLANS:,} that are tried",
            "take fewer of either",
            field="arrival_s",
        )
    plan, finish_s = np.zeros(count, np.int64), np.empty(count)
    best_plan(ready_s, layer_s, hand_s, arrival_s, plan, finish_s)
    found = tuple(plan.tolist())
    return found, share_batches(asked.model_copy(update={"schedule": "planned", "plan": found}))


def throughput_gain(layers: int, loaded: Sequence[int] | np.ndarray) -> np.ndarray:
    """Throughput of the pair over that of the old instance alone, with `loaded` layers on the new one.

    L / (L - min(k, L // 2)) while layers come, and 2 when all are there: two whole instances.

    Source: BlitzScale (OSDI'25) §4; the paper's "doubled after half of the layers" is exact for even L only.

    >>> throughput_gain(7, [0, 1, 3, 7]).round(4).tolist()
    [1.0, 1.1667, 1.75, 2.0]
    """
    whole(layers, "layers", 1)
    loaded = np.asarray(loaded)
    if loaded.size and not np.issubdtype(loaded.dtype, np.integer):
        raise InputError("holds what is no whole number", f"give layers, 0 to {layers}", field="loaded")
    if (loaded < 0).any() or (loaded > layers).any():
        raise InputError("goes beyond the layers of the model", f"give 0 to {layers}", field="loaded")
    return np.where(loaded == layers, 2.0, layers / (layers - np.minimum(loaded, layers // 2)))


def first_helped_s(finish_s: Sequence[float], alone_s: Sequence[float], slack_s: float = 0.0) -> float:
    """The first useful work: when the first batch was done sooner than without help; NaN where none was.

    Parameters:
        finish_s, alone_s: of each batch, shared and on the old instance alone.
        slack_s: how much sooner counts.
    """
    helped = [with_s for with_s, without_s in zip(finish_s, alone_s, strict=True) if with_s < without_s - slack_s]
    return min(helped, default=float("nan"))
