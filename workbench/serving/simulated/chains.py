"""Weights that go from row to row over the links that KV is sent by too."""

from math import inf, isfinite, nan

from workbench.serving.model.lowered import PREFILL
from workbench.serving.model.scaled import DRAINING, UP, WARM, Scaling
from workbench.serving.policy.scalers import CHAIN_TIER, NEAR_TIER
from workbench.serving.simulated.links import Flow, Links
from workbench.serving.simulated.load import Load
from workbench.serving.simulated.operation import Operation
from workbench.serving.simulated.row import Row

Sender = Row | int
"""A row, or the number of a host."""


class Chain(Operation):
    """A chain of rows behind one sender; or a ring: hosts in a chain, through whose rows several send a part each."""

    def __init__(self, number: int, group: int, senders: list[Sender], nodes: list[list[Row]], ring: bool):
        super().__init__(number, group, [sender for sender in senders if isinstance(sender, Row)])
        self.senders, self.nodes, self.ring = senders, nodes, ring
        self.end_s = nan  # of the last flow
        self.paths: list[list[Row]] = []  # of all flows since the latest start

    @property
    def tails(self) -> list[Row]:
        """The last rows that flows pass, each once."""
        return list(dict.fromkeys(path[-1] for path in self.paths))

    def lose_source(self, row: Row) -> bool:
        """A row fails; True if that leaves loads that it has not sent whole."""
        needed = row in self.sources
        super().lose_source(row)
        return needed and bool(self.loads)

    def place(self, row: Row) -> int | None:
        """The position of a row, from 0; None if it is not in here."""
        return next((place for place, node in enumerate(self.nodes) if row in node), None)


class Chains:
    """Who sends what to whom, and what a failure does to it."""

    def __init__(self, given: Scaling, weights, links: Links):
        self.weights, self.fleet, self.links = weights, weights.fleet, links
        self.clock, self.log = weights.clock, weights.log
        self.size, self.control_s = given.bytes.tolist(), given.control_s.tolist()
        self.most, self.lag_s, self.near_s = given.chains.tolist(), given.lag_s.tolist(), given.near_s.tolist()
        self.decode_first, self.hosts_send = given.decode_first.tolist(), given.hosts_send.tolist()
        self.reroute = given.reroute.tolist()

    def start(self, group: int, rows: list[Row]) -> tuple[list[tuple[Load, float]], list[Row]]:
        """Send rows of a group their weights: those that load from near, when they are ready, and those left over."""
        near, rows = self._start_near(group, rows)
        senders = self._senders(group, rows)
        if not senders:
            return near, rows
        alone = self.most[group] == 0
        if isfinite(self.near_s[group]) and not alone:
            nodes = list({row.host: [other for other in rows if other.host == row.host] for row in rows}.values())
            most = min(self.most[group], len(senders), max(map(len, nodes)))
            self._send(group, senders[:most], nodes, ring=True)
        else:
            most = len(rows) if alone else min(self.most[group], len(senders), len(rows))
            for k in range(most):
                self._send(group, [senders[k % len(senders)]], [[row] for row in rows[k::most]], ring=False)
        return near, []

    def under_way(self, group: int) -> list[Chain]:
        """Operations of a group whose flows are on their way, by number."""
        running = self.weights.operations.values()
        return [one for one in running if isinstance(one, Chain) and one.group == group and one.flows]

    def sent_share(self, chain: Chain) -> float:
        """What share of all bytes has come, by the flow of which the least has."""
        part = self._part(chain)
        return min((part - self.links.left_now(flow)) / part for flow in chain.flows)

    def left_s(self, chain: Chain) -> float:
        """How long what is left takes at the rates that there are now."""
        return max(self.links.left_now(flow) / flow.rate if flow.rate else inf for flow in chain.flows)

    def whole_s(self, chain: Chain) -> float:
        """How long all of it takes at the rates that there are now."""
        part = self._part(chain)
        return max(part / flow.rate if flow.rate else inf for flow in chain.flows)

    def lose(self, chain: Chain, row: Row) -> None:
        """A row failed that may have sent, received or passed on the weights of a chain."""
        place = chain.place(row)
        if chain.lose_source(row):
            self.weights.begin_again(chain)
        elif place is not None:
            self._lose_link(chain, -1 if chain.ring else place)

    def lose_ports(self, ports: list[int]) -> None:
        """The ways out of some rows or hosts have failed."""
        for chain in list(self.weights.operations.values()):
            sends = isinstance(chain, Chain) and chain.flows and self.reroute[chain.group]
            if sends and any(self._out_of(sender) in ports for sender in chain.senders):
                self.weights.begin_again(chain)

    def _out_of(self, sender: Sender) -> int:
        """The port out of a sender."""
        return self.links.out_of(sender.index) if isinstance(sender, Row) else self.links.out_of_host(sender)

    def _start_near(self, group: int, rows: list[Row]) -> tuple[list[tuple[Load, float]], list[Row]]:
        """Loads of rows on whose hosts others have the weights, and the rows that are left."""
        if not isfinite(self.near_s[group]):
            return [], rows
        found, holders = [], self.fleet.readable(rows[0].model) if rows else []
        for host in sorted({row.host for row in rows} & {holder.host for holder in holders}):
            sources = [holder for holder in holders if holder.host == host]
            operation = self.weights.add(Operation(self.weights.begun, group, sources))
            ready_s = self.clock.now + self.control_s[group] + self.near_s[group]
            found += [
                (self.weights.load(row, NEAR_TIER, operation, len(sources)), ready_s)
                for row in rows
                if row.host == host
            ]
        hosts = {holder.host for holder in holders}
        return found, [row for row in rows if row.host not in hosts]

    def _senders(self, group: int, rows: list[Row]) -> list[Sender]:
        """Who may send to some rows, best first."""
        if not rows:
            return []
        model = rows[0].model
        senders = self.fleet.readable(model)
        if self.decode_first[group]:
            senders = [row for row in senders if row.instance.role != PREFILL] or senders
        senders.sort(key=lambda row: (row.uses, row.index))
        if not senders and self.hosts_send[group]:
            senders = [host for host, cache in enumerate(self.fleet.caches) if cache.has(model)]
        if self.reroute[group]:
            senders = [sender for sender in senders if self.links.capacity[self._out_of(sender)]] or senders
        return senders

    def _send(self, group: int, senders: list[Sender], nodes: list[list[Row]], ring: bool) -> None:
        chain = self.weights.add(Chain(self.weights.begun, group, senders, nodes, ring))
        for node in nodes:
            for row in node:
                self.weights.load(row, CHAIN_TIER, chain, len(senders))
        for k, sender in enumerate(senders):
            self._start_flow(chain, sender, [node[k % len(node)] for node in nodes], self._part(chain))

    def _part(self, chain: Chain) -> float:
        """Bytes that each sender of a chain sends."""
        return self.size[chain.nodes[0][0].model] / len(chain.senders)

    def _start_flow(self, chain: Chain, sender: Sender, rows: list[Row], size: float) -> None:
        """Send bytes from a sender through some rows, to the last of them."""
        links, ports = self.links, [self._out_of(sender)]
        ports += [links.into(row.index) for row in rows] + [links.out_of(row.index) for row in rows[:-1]]
        flow = links.start(tuple(ports), size, lambda flow: self._sent(chain, flow))
        chain.flows.append(flow)
        chain.paths.append(rows)
        source = sender.index if isinstance(sender, Row) else links.instances + sender
        self.log.chains.append((flow, chain.number, source, rows))

    def _sent(self, chain: Chain, flow: Flow) -> None:
        """A flow has ended: with the last one of a chain, its rows have the weights one after the other."""
        chain.flows.remove(flow)
        if chain.flows:
            return
        chain.end_s = self.clock.now
        for row in chain.release():
            self.fleet.released(row)
        for load in chain.loads:
            self.weights.expect(load, self._there_s(chain, load) + self.control_s[chain.group])

    def _there_s(self, chain: Chain, load: Load) -> float:
        """When all weights of a load are there; NaN if that is not known yet."""
        return chain.end_s + chain.place(load.row) * self.lag_s[chain.group]

    def _lose_link(self, chain: Chain, place: int) -> None:
        """A row failed at some place: those before it go on, and those behind it begin again."""
        lost = [load for load in chain.loads if chain.place(load.row) > place]
        lost = [load for load in lost if not self._there_s(chain, load) <= self.clock.now]
        if not (lost or chain.flows):
            return
        rows = [load.row for load in lost]
        sender = None if chain.ring else self._nearest(chain, place)
        chain.loads = [load for load in chain.loads if load not in lost]
        for flow in list(chain.flows):
            self.links.cancel(flow)
            chain.flows.remove(flow)
            chain.paths.clear()
            if chain.loads:
                self._start_flow(chain, chain.senders[0], [load.row for load in chain.loads], flow.left)
        if rows and sender is not None:
            self._send(chain.group, [sender], [[row] for row in rows], ring=False)
        if not chain.loads and chain.number in self.weights.operations:
            self.weights.end(chain)
        if rows and sender is None:
            self.weights.start_anew(rows)

    def _nearest(self, chain: Chain, place: int) -> Sender | None:
        """The nearest copy of the weights before a place of a chain; None if there is none."""
        for sender in [*(row for (row,) in reversed(chain.nodes[:place])), chain.senders[0]]:
            if not isinstance(sender, Row) or sender.state in (UP, DRAINING, WARM):
                return sender
        return None
