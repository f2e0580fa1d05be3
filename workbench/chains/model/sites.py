"""Where servers are: round trips drawn so that they have the stated statistics of the paper's measurements.

The file of RIPE Atlas round trips is not available; its statistics are (`data/clusters/server-chains-simulation.toml`).
As in the paper's simulator a round trip is 0.3 (median of one site + median of the other) + 0.01 ms/km x distance.
Sites lie around the one of smallest median, and those farther away have longer medians: the smallest round trip to it
(10.3 ms = 0.3 x (17.2 + 17.2)) says that a site next to it is as well connected. A site's rank gives both its median
(beta distribution between the stated ends, with the stated median) and its distance (gamma distribution, so wide that
the median round trip to the centre is the stated one); its direction is random. The smallest and the largest round trip
and that of all pairs then come out within a twentieth.
"""

from typing import Literal, NamedTuple

import numpy as np

from workbench.errors import InputError, UnknownName
from workbench.profiles import Cluster
from workbench.records import of_type, takes_records, whole

Orchestrator = Literal["best-connected", "random"]
ORCHESTRATORS: tuple[Orchestrator, ...] = ("best-connected", "random")

_RISING = 2.0
"""Shape of the beta distribution towards the smallest median; the other one follows from the stated median."""

_SPREAD = 2.5
"""Shape of the gamma distribution of distances; it sets how far away the farthest site is."""


class Sites(NamedTuple):
    """Statistics of sites that round trips are drawn from: how many, seconds, and seconds per kilometre.

    Attributes:
        anchors: sites.
        smallest_s, median_s, largest_s: of the sites' own median round trips.
        centre_s: median round trip between the best connected site and the others.
        weight, s_per_km: of the sum of two medians, and of distance.
    """

    anchors: int
    smallest_s: float
    median_s: float
    largest_s: float
    centre_s: float
    weight: float
    s_per_km: float

    @property
    def median_km(self) -> float:
        """Median distance from the best connected site, whose median is the smallest."""
        return (self.centre_s - self.weight * (self.smallest_s + self.median_s)) / self.s_per_km


@takes_records
def sites_of(cluster: Cluster) -> Sites:
    """The statistics that a cluster's profile states under `ripe-atlas`."""

    def stated(name: str) -> float:
        return float(cluster.alternate("ripe-atlas", name))

    return Sites(
        int(stated("anchors")),
        *(stated(f"anchor_{name}_s") for name in ("smallest", "median", "largest")),
        stated("median_round_trip_s"),
        stated("anchor_weight"),
        stated("distance_s_per_km"),
    )


@takes_records
def round_trips(
    sites: Sites, servers: int, rng: np.random.Generator, orchestrator: Orchestrator = "best-connected"
) -> np.ndarray:
    """Round trips between an orchestrator and servers at random sites, in seconds, float64[J].

    Parameters:
        sites: the statistics.
        servers: J, at most one less than there are sites.
        rng: draws places and sites.
        orchestrator: at the site of smallest median, or at any.

    Raises:
        UnknownName: no such orchestrator. InputError: more servers than sites, or statistics that no sites have.
    """
    from scipy.special import betaincinv, gammaincinv

    count = whole(servers, "servers", 1, sites.anchors - 1)
    if not isinstance(orchestrator, str) or orchestrator not in ORCHESTRATORS:
        raise UnknownName("orchestrator", orchestrator, ORCHESTRATORS)
    of_type(rng, np.random.Generator, "rng")
    span_s = sites.largest_s - sites.smallest_s
    share = (sites.median_s - sites.smallest_s) / span_s
    if not 0 < share < 0.5 or sites.median_km <= 0:
        raise InputError("fit no such sites", "give a median nearer the smallest, and a larger median of round trips")
    rank, turned = rng.random(sites.anchors), rng.uniform(0.0, 2 * np.pi, sites.anchors)
    rank[0] = 0.0
    medians = sites.smallest_s + span_s * betaincinv(_RISING, _falling(share), rank)
    away_km = gammaincinv(_SPREAD, rank) * sites.median_km / gammaincinv(_SPREAD, 0.5)
    places = away_km[:, None] * np.stack([np.cos(turned), np.sin(turned)], axis=1)
    order = rng.permutation(sites.anchors)
    centre = 0 if orchestrator == "best-connected" else order[0]
    others = order[order != centre][:count]
    distance_km = np.hypot(*(places[others] - places[centre]).T)
    return sites.weight * (medians[others] + medians[centre]) + sites.s_per_km * distance_km


def _falling(share: float) -> float:
    """The second shape of a beta distribution with `_RISING` as the first and this median."""
    from scipy.optimize import brentq
    from scipy.special import betaincinv

    return float(brentq(lambda falling: betaincinv(_RISING, falling, 0.5) - share, 1.0, 200.0))
