"""Generated traces that resemble real ones, under names of their own."""

from typing import Annotated

import numpy as np
from pydantic import Field

from workbench.records import Asked, NotNegative, Positive, positive
from workbench.workloads.building.assembling import DEFAULT_MODEL
from workbench.workloads.generators.arrivals import Arrivals
from workbench.workloads.generators.lengths import Lengths
from workbench.workloads.generators.making import made
from workbench.workloads.generators.prefixes import SharedPrefixes
from workbench.workloads.generators.streams import Seed, stream
from workbench.workloads.handle import Trace
from workbench.workloads.origin import Origin
from workbench.workloads.statistics.likeness import arrival_measures, distance


class StandIn(Asked):
    """A recipe for traces that resemble a real one.

    An hour of a bursty process varies a lot from draw to draw, so several are drawn and the first whose distance to the
    targets is at most `close_enough` is given, else the nearest: the statistics named in `targets` are fitted, whatever
    is not named is not claimed.

    Attributes:
        name: ends in `-like`.
        like: the real trace.
        duration_s: span of the real trace.
        arrivals: process that arrivals are drawn from.
        lengths: of prompts and outputs.
        prefixes: prefix reuse, None without hashes.
        targets: statistics of the real arrivals, see `arrival_measures`.
        close_enough: root mean square deviation at which drawing stops.
        candidates: how many draws at most.
        model: what requests ask for.
        basis: where the numbers come from.
        notes: what the stand-in does not claim.
    """

    name: str
    like: str
    duration_s: Positive
    arrivals: Arrivals
    lengths: Lengths
    prefixes: SharedPrefixes | None = None
    targets: dict[str, float] = {}
    close_enough: NotNegative = 0.0
    candidates: Annotated[int, Field(ge=1, le=10_000)] = 1
    model: str = DEFAULT_MODEL
    basis: Annotated[str, Field(min_length=1)]
    notes: tuple[str, ...] = ()

    def trace(self, seed: Seed = 0, duration_s: float | None = None) -> Trace:
        """Draw a trace.

        Parameters:
            seed: a whole number or a SeedSequence; another seed gives another trace of the same likeness.
            duration_s: another span than that of the real trace; targets hold for the original span only, so the
                first draw is then taken as it is.
        """
        duration_s = None if duration_s is None else positive(duration_s, "duration_s")
        if duration_s is None or duration_s == self.duration_s:
            times_s = self._nearest(seed)
        else:
            times_s = self.arrivals.times(duration_s, stream(seed, "arrivals", 0))
        origin = Origin(
            name=self.name, format="generated", stand_in=True, source=self.basis, notes=self.notes, licence="Apache-2.0"
        )
        return made(times_s, self.lengths, seed, self.model, self.prefixes, origin)

    def _nearest(self, seed: Seed) -> np.ndarray:
        best, least = np.zeros(0), float("inf")
        for candidate in range(self.candidates):
            times_s = self.arrivals.times(self.duration_s, stream(seed, "arrivals", candidate))
            if self.candidates == 1:
                return times_s
            away = distance(arrival_measures(times_s), self.targets)
            if away < least or not best.size:
                best, least = times_s, away
            if least <= self.close_enough:
                break
        return best
