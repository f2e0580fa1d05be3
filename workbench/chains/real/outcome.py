"""What a real run of server chains leaves behind."""

from typing import Literal

import polars as pl

from workbench.executor.scale import Scale, times_show
from workbench.executor.transformer import Output
from workbench.records import Record


class ChainLoss(Record):
    """How a run went on without a server.

    Attributes:
        server, kind: which, and whether it died or hung.
        noticed_s: when that was noticed, real seconds after the start.
        detected_s: real seconds from a planted fault to its notice; None where nobody knows when the process went.
        jobs: those that were on its chains and began again elsewhere.
    """

    server: int
    kind: Literal["died", "hung"]
    noticed_s: float
    detected_s: float | None
    jobs: tuple[int, ...]


class ChainRun(Record):
    """One run. Times are seconds after the agreed start at full size: those of the run over θ.

    Attributes:
        jobs: `job, servers, arrival_s, start_s, finish_s, attempts`: the chain that finished each job as text, when its
            first service began, and how often it was begun.
        tokens: `job, place, time_s, token`: every token.
        servers: `server, blocks, slots, most_slots, sessions_left, passes, held_share`: what each hosts, its cache
            slots, the most that sessions took at once, sessions that were never closed, passes computed, and the share
            of the run that it spent on them; servers that were lost are not among them.
        outputs: for each job its tokens and the logits that they were chosen from.
        prompts: for each job the tokens that it began with.
        scale: σ is 1; seconds of the run are θ times those of full size.
        overhead: the machine's own part: mean lateness of a pass, relay included, over the mean time of computing one.
        waiting_share: share of the wall time in which the servers used no processor, mean over servers.
        losses: servers that were lost.
    """

    jobs: pl.DataFrame
    tokens: pl.DataFrame
    servers: pl.DataFrame
    outputs: tuple[Output, ...]
    prompts: tuple[tuple[int, ...], ...]
    scale: Scale
    overhead: float
    waiting_share: float
    losses: tuple[ChainLoss, ...] = ()

    @property
    def mean_service_s(self) -> float:
        """Mean seconds from the start of a job's service to its end, at full size."""
        return float((self.jobs["finish_s"] - self.jobs["start_s"]).mean())

    @property
    def mean_response_s(self) -> float:
        """Mean seconds from a job's arrival to its end, at full size."""
        return float((self.jobs["finish_s"] - self.jobs["arrival_s"]).mean())

    @property
    def label(self) -> str:
        """What the times show: "paced" the plan (servers mostly waited for a clock), "busy" the machine."""
        return times_show(self.waiting_share)
