"""What shares a node's host: transfers in and out of its GPUs, and the weights that it holds."""

from collections.abc import Callable

import numpy as np

from workbench.pooling.model.lowered import Models, Pool
from workbench.pooling.policy import fill_shares
from workbench.queueing.simulated import Clock

LOAD, FETCH, OUT, IN = range(4)
FIRST = 2
"""SimPy's own priorities are 0 and 1."""


class Transfer:
    """Bytes on their way."""

    def __init__(self, gpu: int, kind: int, size: float, cap: float, now: float, then: Callable[[], None]):
        self.gpu, self.kind, self.cap, self.then = gpu, kind, cap, then
        self.left, self.rate, self.since_s = size, 0.0, now
        self.version = 0


class Host:
    """One node's host memory.

    Attributes:
        going: transfers in the order of GPU and kind.
        holds: models whose weights are here, with the instant when each was last read.
    """

    def __init__(self, clock: Clock, node: int, models: Models, pool: Pool):
        self._clock, self._models, self._pool = clock, models, pool
        self.going: list[Transfer] = []
        self.holds: dict[int, float] = {}
        self.reserved_bytes = 0.0
        filled = 0.0
        for model in np.flatnonzero(models.home == node).tolist():
            filled += float(models.weight_bytes[model])
            if filled <= pool.cache_bytes:
                self.holds[model] = 0.0

    def start(self, gpu: int, kind: int, size: float, cap: float, then: Callable[[], None]) -> Transfer:
        """Begin a transfer; `then` is called when it is done."""
        transfer = Transfer(gpu, kind, size, cap, self._clock.now, then)
        self.going.append(transfer)
        self.going.sort(key=lambda one: (one.gpu, one.kind))
        self._share()
        return transfer

    def stop(self, transfer: Transfer) -> None:
        """Give a transfer up."""
        transfer.version += 1
        self.going.remove(transfer)
        self._share()

    def rate_of(self, model: int) -> float:
        """Rate at which a model's weights come from here, which hold them from now on."""
        cap, size = float(self._models.load_bytes_per_s[model]), float(self._models.weight_bytes[model])
        if model not in self.holds:
            cap = min(cap, self._pool.miss_bytes_per_s)
            while self.holds and self._held_bytes() + size > self._pool.cache_bytes:
                del self.holds[min(self.holds, key=lambda other: (self.holds[other], other))]
            if self._held_bytes() + size > self._pool.cache_bytes:
                return cap
        self.holds[model] = self._clock.now
        return cap

    def _held_bytes(self) -> float:
        return sum(float(self._models.weight_bytes[model]) for model in self.holds)

    def _share(self) -> None:
        now = self._clock.now
        wanted = []
        for transfer in self.going:
            into = sum(other.gpu == transfer.gpu and other.kind != OUT for other in self.going)
            wanted.append(transfer.cap if transfer.kind == OUT else transfer.cap / into)
        rates = np.empty(len(wanted))
        fill_shares(np.array(wanted), len(wanted), self._pool.host_bytes_per_s, rates)
        for transfer, rate in zip(self.going, rates.tolist(), strict=True):
            if rate != transfer.rate:
                transfer.left = max(0.0, transfer.left - (now - transfer.since_s) * transfer.rate)
                transfer.since_s, transfer.rate = now, rate
                transfer.version += 1
                self._alarm(transfer, now + transfer.left / rate)

    def _alarm(self, transfer: Transfer, done_s: float) -> None:
        version = transfer.version

        def ring(_) -> None:
            if transfer.version == version:
                self.stop(transfer)
                transfer.then()

        self._clock.at(done_s, FIRST + 4 * transfer.gpu + transfer.kind).callbacks.append(ring)
