"""Passes through the layers of one node: computed for real, then held until they would have ended at full size."""

import time
from collections.abc import Callable
from typing import Any

from workbench.executor.clock import sleep_until
from workbench.executor.transformer import KvCache, Stage
from workbench.executor.transformer_serving.orders import Begin, Item, Left, NodePlan, Spoke, Work
from workbench.executor.transformer_serving.wires import Wires


class Passes:
    """The serving side of one node.

    Parameters:
        node: its number.
        plan: what it is to do.
        stage: the layers it has so far.
        wires: to other nodes.
        again: takes a pass that goes on at this node.
        say: tells the parent.
        check: raises when the run is broken off.

    Attributes:
        late_s, holds_s: see `workbench.executor.transformer_serving.node.NodeReport`.
    """

    def __init__(
        self,
        node: int,
        plan: NodePlan,
        stage: Stage,
        wires: Wires,
        again: Callable[[Work], None],
        say: Callable[[Any], None],
        check: Callable[[], None],
    ):
        self._node, self._plan, self._stage, self._wires = node, plan, stage, wires
        self._again, self._say, self._check = again, say, check
        self._caches: dict[int, KvCache] = {}
        self._dissolving: set[int] = set()
        self.late_s: list[float] = []
        self.holds_s: list[float] = []

    def begin(self, begin: Begin) -> None:
        """Take a batch in at the first segment of a route: all that is known of each request is its prompt."""
        self.run(Work(begin.route, begin.batch, 0, begin.items, tuple(len(item.tokens) for item in begin.items), None))

    def dissolve(self, route: int) -> None:
        """Give batches back at the next pass."""
        self._dissolving.add(route)

    def forget(self, requests: tuple[int, ...]) -> None:
        """Drop the caches of requests."""
        for request in requests:
            self._caches.pop(request, None)

    def run(self, work: Work) -> None:
        """Run the layers of one segment and pass the batch on."""
        import torch

        if work.segment == 0 and work.route in self._dissolving:
            self._say(Left(work.route, work.batch, time.monotonic(), work.items))
            return
        plan, route = self._plan, self._plan.routes[work.route]
        segment, begun_s = route[work.segment], time.monotonic()
        share = segment.count / len(plan.model.blocks)
        hold_s = plan.theta * (plan.pace.pass_s(sum(work.sizes)) * share + plan.pace.dispatch_s)
        with torch.inference_mode():
            hidden = self._computed(work, segment.first, segment.count)
            last = work.segment + 1 == len(route)
            logits = self._stage.logits(hidden).cpu() if last else None
            rows = None if last else torch.cat(hidden).cpu()
        late_s = sleep_until(begun_s + hold_s, self._check) - begun_s - hold_s
        self.late_s.append(late_s)
        self.holds_s.append(hold_s)
        if logits is None:
            self._pass_on(work._replace(segment=work.segment + 1, hidden=rows))
            return
        tokens = logits.argmax(-1).tolist()
        requests = tuple(item.request for item in work.items)
        self._say(Spoke(work.route, work.batch, time.monotonic(), requests, tuple(tokens), logits.numpy()))
        items = tuple(
            Item(item.request, (token,), item.left - 1)
            for item, token in zip(work.items, tokens, strict=True)
            if item.left > 1
        )
        if items:
            self._pass_on(Work(work.route, work.batch, 0, items, (1,) * len(items), None))

    def _computed(self, work: Work, first_block: int, blocks: int) -> list[Any]:
        """Activations of each request behind these blocks."""
        model = self._plan.model
        first = model.blocks[first_block].first
        count = sum(block.count for block in model.blocks[first_block : first_block + blocks])
        caches = [self._cache(item.request) for item in work.items]
        if work.hidden is None:
            hidden = self._stage.embed([item.tokens for item in work.items])
        else:
            hidden = list(work.hidden.to(self._plan.device).split(work.sizes))
        return self._stage.run(first, count, hidden, caches)

    def _cache(self, request: int) -> KvCache:
        if request not in self._caches:
            self._caches[request] = KvCache(self._plan.model.shape, self._plan.capacity, self._plan.device)
        return self._caches[request]

    def _pass_on(self, work: Work) -> None:
        node = self._plan.routes[work.route][work.segment].node
        if node == self._node:
            self._again(work)
        else:
            self._wires.send(node, work)
