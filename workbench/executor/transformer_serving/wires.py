"""Activations between the nodes of a pipeline, on the same group as the weights."""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from workbench.executor.transformer_serving.orders import HEADER, Work, carries, header_of, work_of

TAG = 1 << 24
"""Tags of transfers of weights lie below it: two for each transfer of a schedule."""


class Wires:
    """Sends and receives passes; one thread a peer receives.

    Parameters:
        group: the gloo group.
        ranks: node -> rank.
        hidden: width of an activation.
        deliver: called by a receiving thread with every pass that arrives.
        failed: called by a receiving thread with the reason when its link is gone.
    """

    def __init__(
        self,
        group: Any,
        ranks: Mapping[int, int],
        hidden: int,
        deliver: Callable[[Work], None],
        failed: Callable[[str], None],
    ):
        self._group, self._ranks, self._hidden = group, ranks, hidden
        self._deliver, self._failed = deliver, failed

    def listen(self, peers: Iterable[int]) -> None:
        """Receive from these nodes until the group is broken up."""
        for peer in peers:
            threading.Thread(target=self._receive, args=(self._ranks[peer],), daemon=True).start()

    def send(self, node: int, work: Work) -> None:
        """Send a pass on."""
        import torch

        rank, header = self._ranks[node], torch.from_numpy(header_of(work))
        self._group.send([header], rank, TAG).wait()
        if work.hidden is not None:
            self._group.send([work.hidden.contiguous()], rank, TAG + 1).wait()

    def _receive(self, rank: int) -> None:
        import torch

        try:
            while True:
                header = torch.from_numpy(np.empty(HEADER, dtype=np.int64))
                self._group.recv([header], rank, TAG).wait()
                work = work_of(header.numpy())
                if carries(header.numpy()):
                    hidden = torch.empty(sum(work.sizes), self._hidden)
                    self._group.recv([hidden], rank, TAG + 1).wait()
                    work = work._replace(hidden=hidden)
                self._deliver(work)
        except RuntimeError as error:
            self._failed(f"{type(error).__name__}: {error}")
