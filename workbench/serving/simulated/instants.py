"""What comes first of all that happens at one instant of a serving run."""


class Instants:
    """SimPy priorities of all that happens at one instant, in the order in which it does.

    Where several instances (or places) do the same at one instant, the lower index comes first: add it to the priority.
    SimPy's own URGENT (0) and NORMAL (1) events, which carry the consequences of each, come in between. Only clusters
    with networks have links that fail and transfers that land; only those that change their size have weights that are
    read, rows that are ready, form pipelines, expire or have drained, new versions, and ticks.
    """

    def __init__(self, instances: int):
        self.recovers = 2
        self.fails = self.recovers + instances
        self.links_return = self.fails + instances
        self.links_fail = self.links_return + 1
        self.lands = self.links_fail + 1
        self.reads = self.lands + 1
        self.ready = self.reads + 1
        self.forms = self.ready + instances
        self.expires = self.forms + instances
        self.updates = self.expires + instances
        self.ticks = self.updates + 1
        self.arrives = self.ticks + 1
        self.ends = self.arrives + 1
        self.drained = self.ends + instances
        self.hands_out = self.drained + instances
        self.starts = self.hands_out + 1
