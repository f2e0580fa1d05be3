"""What comes first of all that happens at one instant of a serving run."""


class Instants:
    """SimPy priorities: recoveries, failures, arrivals, step ends, one hand-out, step starts.

    Where several instances do the same at one instant, the lower index comes first: add it to the priority. SimPy's own
    URGENT (0) and NORMAL (1) events, which carry the consequences of each, come in between.
    """

    def __init__(self, instances: int):
        self.recovers = 2
        self.fails = self.recovers + instances
        self.arrives = self.fails + instances
        self.ends = self.arrives + 1
        self.hands_out = self.ends + instances
        self.starts = self.hands_out + 1
