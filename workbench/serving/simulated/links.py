"""Links out of and into instances and out of hosts, shared max-min fairly by the transfers over them."""

from collections.abc import Callable
from math import inf, isfinite, nan

from workbench.queueing.simulated.clock import Clock
from workbench.serving.model.lowered import Network


class Flow:
    """Some bytes on their way over some ports, all at the same rate."""

    __slots__ = ("end_s", "ended", "left", "ports", "rate", "size", "start_s", "stop_s")

    def __init__(self, start_s: float, ports: tuple[int, ...], size: float, ended: Callable[["Flow"], None]):
        self.start_s, self.ports, self.size, self.ended = start_s, ports, size, ended
        self.left, self.rate, self.end_s, self.stop_s = size, 0.0, nan, nan


class Links:
    """Transfers in the order in which they started; whenever one starts or is over, all go on at other speeds."""

    def __init__(self, given: Network, clock: Clock, priority: int):
        """Nothing is sent yet.

        Parameters:
            given: rates and latency.
            clock: on which the ends are put.
            priority: of the ends among all that happens at one instant.
        """
        self.instances = len(given.egress)
        self.capacity = [*given.egress.tolist(), *given.ingress.tolist(), *given.host_egress.tolist()]
        self.nominal = list(self.capacity)
        self.latency_s, self.clock, self.priority = given.latency_s, clock, priority
        self.flows: list[Flow] = []
        self.since_s = 0.0  # the last time that a transfer started or was over
        self.plans = 0  # how often the next end was worked out; older plans are void

    def out_of(self, instance: int) -> int:
        """The port out of an instance."""
        return instance

    def into(self, instance: int) -> int:
        """The port into an instance."""
        return self.instances + instance

    def out_of_host(self, host: int) -> int:
        """The port out of the memory of a host."""
        return 2 * self.instances + host

    def start(self, ports: tuple[int, ...], size: float, ended: Callable[[Flow], None]) -> Flow:
        """Send `size` bytes over some ports; `ended` is told when they are all there."""
        flow = Flow(self.clock.now, ports, size, ended)
        self._settle()
        self.flows.append(flow)
        self._plan()
        return flow

    def cancel(self, flow: Flow) -> None:
        """A transfer is given up."""
        self._settle()
        self.flows.remove(flow)
        flow.stop_s = self.clock.now
        self._plan()

    def fail(self, ports: list[int]) -> None:
        """Some ports carry nothing from now on."""
        self._change(ports, [0.0] * len(ports))

    def come_back(self, ports: list[int]) -> None:
        """Some ports are as fast again as they were."""
        self._change(ports, [self.nominal[port] for port in ports])

    def _change(self, ports: list[int], rates: list[float]) -> None:
        self._settle()
        for port, rate in zip(ports, rates, strict=True):
            self.capacity[port] = rate
        self._plan()

    def left_now(self, flow: Flow) -> float:
        """Bytes of a transfer that are still to be sent."""
        passed_s = self.clock.now - self.since_s
        return max(0.0, flow.left - flow.rate * passed_s) if isfinite(flow.rate) else flow.left

    def _settle(self) -> None:
        """What was sent since the last change is sent."""
        for flow in self.flows:
            flow.left = self.left_now(flow)
        self.since_s = self.clock.now

    def _end_s(self, flow: Flow) -> float:
        earliest_s = max(flow.start_s + self.latency_s, self.since_s)
        if not flow.rate:
            return inf
        return max(self.since_s + flow.left / flow.rate, earliest_s) if isfinite(flow.rate) else earliest_s

    def _plan(self) -> None:
        """Share out the links, and put the next end on the clock."""
        share_out(self.flows, self.capacity)
        self.plans += 1
        if self.flows:
            plan, flow = self.plans, min(self.flows, key=self._end_s)
            if isfinite(end_s := self._end_s(flow)):
                self.clock.at(end_s, self.priority).callbacks.append(lambda _: self._end(flow, plan))

    def _end(self, flow: Flow, plan: int) -> None:
        if plan == self.plans:
            flow.end_s = self.clock.now
            self.cancel(flow)
            flow.ended(flow)


def share_out(flows: list[Flow], capacity: list[float]) -> None:
    """Set max-min fair rates by progressive filling: the link with the smallest share fixes that of its transfers.

    Of equal links the first one does. A transfer over links without
    bounds has an infinite rate.

    Parameters:
        flows: in the order in which they started.
        capacity: bytes/s of all ports: out of instances, into them, out of hosts.
    """
    left = list(capacity)
    bounded = [port for port, rate in enumerate(left) if isfinite(rate)]
    open_flows = list(flows)
    for flow in flows:
        flow.rate = inf
    while True:
        users = [sum(port in flow.ports for flow in open_flows) for port in range(len(left))]
        shares = [(left[port] / users[port], port) for port in bounded if users[port]]
        if not shares:
            return
        share, narrowest = min(shares)
        for flow in [flow for flow in open_flows if narrowest in flow.ports]:
            flow.rate = share
            open_flows.remove(flow)
            for port in flow.ports:
                left[port] = max(left[port] - share, 0.0)
