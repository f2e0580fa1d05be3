"""How long one message takes: Hockney's two numbers, and the four of LogGP."""

from workbench.errors import InputError
from workbench.records import Asked, NotNegative, Positive, not_negative, positive, whole


class Hockney(Asked):
    """A message of k bytes takes α + k/B and occupies both ends for as long (Hockney 1994).

    Attributes:
        alpha_s: overhead per message (per block, per step) in seconds.
        bytes_per_s: bandwidth B of the link in one direction.

    >>> Hockney(alpha_s=0.001, bytes_per_s=1e9).travel_s(1e6)
    0.002
    """

    alpha_s: NotNegative = 0.0
    bytes_per_s: Positive

    def travel_s(self, message_bytes: float) -> float:
        """Seconds from the start of a message until the target holds it."""
        return self.alpha_s + not_negative(message_bytes, "message_bytes") / self.bytes_per_s

    def busy_s(self, message_bytes: float) -> float:
        """Seconds after which the sender can start its next message and the target can receive one."""
        return self.travel_s(message_bytes)


class LogGP(Asked):
    """LogP with a gap per byte (Alexandrov, Ionescu, Schauser and Scheiman 1995).

    A message of k bytes takes 2o + L + (k-1)G, and the next one can start max(g, o + (k-1)G) after it: unlike in
    Hockney's model the latency L and the receiver's overhead overlap with the next message.

    Attributes:
        latency_s: L, the wire's latency.
        overhead_s: o, processor time per message at either end.
        gap_s: g, least time between two messages of a node.
        per_byte_s: G, gap per byte; 1/G is the bandwidth for long messages.
    """

    latency_s: NotNegative
    overhead_s: NotNegative
    gap_s: NotNegative
    per_byte_s: Positive

    def travel_s(self, message_bytes: float) -> float:
        """Seconds from the start of a message until the target holds it."""
        wire_s = (positive(message_bytes, "message_bytes") - 1) * self.per_byte_s
        return 2 * self.overhead_s + self.latency_s + wire_s

    def busy_s(self, message_bytes: float) -> float:
        """Seconds after which the sender can start its next message and the target can receive one."""
        return max(self.gap_s, self.overhead_s + (positive(message_bytes, "message_bytes") - 1) * self.per_byte_s)


Cost = Hockney | LogGP
"""Either cost model: something with `travel_s(bytes)` and `busy_s(bytes)`."""


def stream_s(cost: Cost, message_bytes: float, messages: int) -> float:
    """Seconds until the last of several equal messages, sent back to back from one node to another, has arrived."""
    return cost.travel_s(message_bytes) + (whole(messages, "messages", 1) - 1) * cost.busy_s(message_bytes)


def only_hockney(cost: Cost) -> Hockney:
    """The cost model itself if it is Hockney's, which some formulas are written in; else an `InputError`."""
    if not isinstance(cost, Hockney):
        raise InputError(
            f"is a {type(cost).__name__}", "give a Hockney, which this formula is written in", field="cost"
        )
    return cost
