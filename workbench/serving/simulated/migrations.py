"""KV caches on their way from instances that computed prompts to instances that decode."""

import numpy as np

from workbench.serving.model.lowered import FLOW_COLUMNS
from workbench.serving.simulated.decoder import Decoder
from workbench.serving.simulated.instance import Instance
from workbench.serving.simulated.links import Flow, Links
from workbench.serving.simulated.prefiller import Prefiller
from workbench.serving.simulated.request import Request


class Migrations:
    """Who sends what to whom, and what a failure does to it."""

    def __init__(self, kv_bytes: list[float], instances: list[Instance], router, links: Links):
        """Nothing is on its way; a token of each model's KV has `kv_bytes`."""
        self.kv_bytes, self.instances, self.router, self.links = kv_bytes, instances, router, links
        self.coming: dict[Flow, Request] = {}
        self.flows: dict[Request, Flow] = {}  # those of requests whose transfer is on its way
        self.log: list[tuple[Flow, int, int, int]] = []  # with request, source and target

    def start(self, request: Request, target: Decoder) -> None:
        """Send what is stored of a request to an instance that expects it."""
        target.expect(request)
        size = request.stored * self.kv_bytes[request.model]
        source, ports = request.prefilled_on, self.links
        flow = ports.start((ports.out_of(source), ports.into(target.index)), size, self._lands)
        self.coming[flow], self.flows[request] = request, flow
        self.log.append((flow, request.index, source, target.index))

    def drop(self, request: Request) -> None:
        """Nobody will ever decode a request whose prompt is computed: its KV is gone."""
        self.instances[request.prefilled_on].let_go(request)
        request.forget()

    def stop(self, instance: Instance) -> None:
        """An instance is about to fail: nothing comes from it or to it any more."""
        if isinstance(instance, Prefiller):
            for request in instance.leaving:
                if request in self.flows:
                    self.instances[self._cancel(request)].give_up(request)
                elif request in self.router.decode_lines[request.model]:
                    self.router.decode_lines[request.model].remove(request)
        elif isinstance(instance, Decoder):
            for request in reversed(list(instance.coming)):
                self._cancel(request)
                instance.give_up(request)
                request.moves += 1
                self.instances[request.prefilled_on].turned_back(request)

    def table(self) -> np.ndarray:
        """All transfers, as `Outcome` has them."""
        rows = [(x.start_s, x.end_s, *whose, x.size) for x, *whose in self.log]
        return np.array(rows, dtype=np.float64).reshape(-1, len(FLOW_COLUMNS))

    def _cancel(self, request: Request) -> int:
        """The transfer of a request is given up; returns its target."""
        flow = self.flows.pop(request)
        del self.coming[flow]
        self.links.cancel(flow)
        return request.instance

    def _lands(self, flow: Flow) -> None:
        request = self.coming.pop(flow)
        del self.flows[request]
        self.instances[request.prefilled_on].let_go(request)
        self.instances[request.instance].land(request)
