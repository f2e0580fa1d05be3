"""What gets in a multicast's way: other traffic, and nodes that die."""

from workbench.records import Asked, NotNegative, Positive, ZeroOrMore


class Background(Asked):
    """Other traffic on the same links, such as KV cache on its way from prefill to decode instances.

    Attributes:
        source, target: nodes of the network.
        bytes: how much is sent.
        start_s: when it starts.
        bytes_per_s: rate at which the sender offers it, None for all it can get.
        kind: what it is, for the tables.
    """

    source: ZeroOrMore
    target: ZeroOrMore
    bytes: Positive
    start_s: NotNegative = 0.0
    bytes_per_s: Positive | None = None
    kind: str = "kv"


class Death(Asked):
    """A node that dies at a time."""

    node: ZeroOrMore
    time_s: NotNegative
