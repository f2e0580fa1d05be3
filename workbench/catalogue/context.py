"""What an experiment function is handed: which backend answers, which random numbers, and a ledger of sources."""

import threading
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import polars as pl

from workbench import profiles
from workbench.errors import WorkbenchError
from workbench.records import Quantity, Source, Status


class Stopped(WorkbenchError):
    """The reader pressed Stop."""


class Context:
    """One call of an experiment function: one backend, one replication.

    Attributes:
        backend: "analytic", "compiled", "simpy" or "torch".
        mode: "quick" or "full".
        seed: the seed of this replication, as printed in the result.
        traces: names of the traces that were read, a stand-in under its own.
        incomparable: why this run's numbers are none of what was published; "" where nothing speaks against it.
    """

    def __init__(
        self,
        backend: str,
        mode: Literal["quick", "full"] = "full",
        seed: int = 0,
        stop: threading.Event | None = None,
        progress: Callable[[str], object] | None = None,
        show: Callable[[dict[str, pl.DataFrame], dict[str, Any]], object] | None = None,
    ):
        self.backend, self.mode, self.seed = backend, mode, seed
        self.traces: list[str] = []
        self.incomparable = ""
        self._stop, self._progress, self._show = stop, progress, show
        self._sources: dict[tuple[str, str], Source] = {}

    @property
    def sources(self) -> list[Source]:
        """What has been cited so far, in order, each thing once."""
        return list(self._sources.values())

    def random(self, stream: str) -> np.random.Generator:
        """The generator of a named stream: same seed and name, same numbers, whatever else is drawn."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=tuple(stream.encode())))

    def cite(self, quantity: str, value: Any, unit: str = "", status: Status = "chosen", source: str = "") -> Any:
        """Enter a number into the ledger and hand it back."""
        if isinstance(value, Quantity):
            self._enter(quantity, float(value), value.unit, value.status, value.source)
            return float(value)
        self._enter(quantity, value, unit, status, source)
        return value

    def _enter(self, quantity: str, value: Any, unit: str, status: Status, source: str) -> None:
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        self._sources[quantity, text] = Source(quantity=quantity, value=text, unit=unit, status=status, source=source)

    def cluster(self, name: Any) -> profiles.Cluster:
        """A cluster by name, path or record."""
        return profiles.cluster(name) if isinstance(name, str) else name

    def accelerator(self, name: Any) -> profiles.Accelerator:
        """An accelerator by name, path or record."""
        return profiles.accelerator(name) if isinstance(name, str) else name

    def model(self, name: Any) -> profiles.Model:
        """A model by name, path or record, its size entered into the ledger."""
        model = profiles.model(name) if isinstance(name, str) else name
        self.cite(f"{model.name} weights", model.weight_bytes, "bytes", "computed", "from the model's shape")
        return model

    def check(self) -> None:
        """Give way to a Stop button; call it between pieces of work."""
        if self._stop is not None and self._stop.is_set():
            raise Stopped("Stopped before it was finished.")

    def give_way(self) -> bool:
        """The same, as real runs ask it between pieces of theirs: whether to give up. It raises, or says no."""
        self.check()
        return False

    def tell(self, text: str) -> None:
        """Say how far the work is, and give way to a Stop button."""
        self.check()
        if self._progress is not None:
            self._progress(text)

    def so_far(self, tables: dict[str, pl.DataFrame], **holding: Any) -> None:
        """Hand out tables of which rows are still to come, for whoever draws them meanwhile.

        Parameters:
            tables: as the experiment is to return them; those that are not drawn may be left out.
            holding: parameters that are otherwise for these rows than for all.
        """
        if self._show is not None:
            self._show(tables, holding)
