"""What weights and KV do to each other on one link: the same direction shares it, the opposite ones do not."""

from typing import NamedTuple

from pydantic import model_validator

from workbench.records import Asked, NotNegative, Positive


class SharedLink(Asked):
    """A full-duplex network card that sends weights once and KV of one batch after the other.

    Attributes:
        bytes_per_s: each way.
        weight_bytes: of one load.
        kv_bytes: of one batch's KV.
        batches_per_s: whose KV leaves, at random (Poisson).
        same_direction: whether weights and KV leave the same instance; else the weights come from one that receives KV.
    """

    bytes_per_s: Positive
    weight_bytes: Positive
    kv_bytes: NotNegative
    batches_per_s: NotNegative
    same_direction: bool = True

    @model_validator(mode="after")
    def _carries_its_kv(self):
        if self.kv_share >= 1:
            raise ValueError(f"KV alone takes {self.kv_share:.3g} times the link; lower batches_per_s")
        return self

    @property
    def kv_share(self) -> float:
        """Of the link that KV takes on average."""
        return self.batches_per_s * self.kv_bytes / self.bytes_per_s


class Interference(NamedTuple):
    """Seconds of a load of weights and of a batch's KV on average, with the other and alone."""

    load_s: float
    load_alone_s: float
    kv_s: float
    kv_alone_s: float


def interference(link: SharedLink) -> Interference:
    """How much longer do a load and a batch's KV take on a shared link?

    Flows share the link equally. While the load lasts, KV transfers are those of an M/G/1 processor-sharing queue with
    one more customer that never leaves: each takes twice as long as without it, and the load gets what KV leaves,
    1 - share. In opposite directions nothing changes. Mean values; for a load much longer than a transfer.

    Source: notes on BlitzScale, §7, Fig 8; processor sharing with a permanent customer (product form).

    >>> found = interference(SharedLink(bytes_per_s=3.0, weight_bytes=3.0, kv_bytes=0.1, batches_per_s=10.0))
    >>> round(found.load_s / found.load_alone_s, 3), round(found.kv_s / found.kv_alone_s, 3)
    (1.5, 2.0)
    """
    alone_s = link.weight_bytes / link.bytes_per_s
    kv_alone_s = link.kv_bytes / link.bytes_per_s / (1 - link.kv_share)
    if not link.same_direction:
        return Interference(alone_s, alone_s, kv_alone_s, kv_alone_s)
    return Interference(alone_s / (1 - link.kv_share), alone_s, 2 * kv_alone_s, kv_alone_s)
