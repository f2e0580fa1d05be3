"""What a simulation writes down: every transfer, the load of every link, and whether the bytes add up."""

from collections.abc import Sequence

import polars as pl

from workbench.errors import WorkbenchError

TRANSFERS = {
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "source": pl.Int64,
    "target": pl.Int64,
    "block": pl.Int64,
    "bytes": pl.Float64,
    "kind": pl.String,
    "model": pl.String,
    "version": pl.String,
    "path": pl.String,
}
LINKS = {
    "start_s": pl.Float64,
    "end_s": pl.Float64,
    "link": pl.String,
    "kind": pl.String,
    "bytes_per_s": pl.Float64,
}


class Ledger:
    """Collects rows while a simulation runs.

    Parameters:
        names: name of each resource, by index.
    """

    def __init__(self, names: Sequence[str]):
        self._names = names
        self._transfers: list[tuple] = []
        self._links: list[tuple] = []
        self._load: dict[tuple[int, str], tuple[float, float]] = {}  # (resource, kind) -> (bytes/s, since when)
        self._carried: dict[tuple[int, str], float] = {}
        self._moved: dict[tuple[int, str], float] = {}

    def transfer(self, row: tuple, path: tuple[int, ...], kind: str, moved_bytes: float) -> None:
        """Write down a transfer that is over; `row` has the columns of `TRANSFERS` but the last."""
        self._transfers.append((*row, " > ".join(self._names[resource] for resource in path)))
        for resource in path:
            self._moved[resource, kind] = self._moved.get((resource, kind), 0.0) + moved_bytes

    def load(self, now_s: float, rates: dict[tuple[int, str], float]) -> None:
        """From now on each (resource, kind) carries these bytes/s, and every other one nothing."""
        for key in list(self._load):
            rate, since = self._load[key]
            if rates.get(key, 0.0) != rate:
                if now_s > since:
                    resource, kind = key
                    self._links.append((since, now_s, self._names[resource], kind, rate))
                    self._carried[key] = self._carried.get(key, 0.0) + rate * (now_s - since)
                del self._load[key]
        for key, rate in rates.items():
            if rate > 0 and key not in self._load:
                self._load[key] = (rate, now_s)

    def check_bytes(self) -> None:
        """Raise unless every link carried exactly the bytes of the transfers that went over it, to rounding."""
        for key in sorted(self._moved.keys() | self._carried.keys()):
            carried, moved = self._carried.get(key, 0.0), self._moved.get(key, 0.0)
            if abs(carried - moved) > 1e-9 * max(carried, moved):
                resource, kind = key
                raise WorkbenchError(
                    f"Bytes were not conserved on {self._names[resource]}: it carried {carried:.9g} bytes of {kind} "
                    f"but transfers moved {moved:.9g}; this is a fault of the simulation, please report it."
                )

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The tables `transfers` and `links`, in order of start."""
        transfers = pl.DataFrame(self._transfers, schema=TRANSFERS, orient="row")
        links = pl.DataFrame(self._links, schema=LINKS, orient="row")
        return (
            transfers.sort("start_s", "source", "target", "block", maintain_order=True),
            links.sort("start_s", "link", "kind", maintain_order=True),
        )
