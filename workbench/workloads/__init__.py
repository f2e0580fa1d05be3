"""What arrives: traces of requests, real, generated and scaled."""

from workbench.workloads.downloads.fetching import Fetched, fetch
from workbench.workloads.exporting import convert
from workbench.workloads.fitting import fit
from workbench.workloads.generators.by_day import Calendar
from workbench.workloads.generators.counted import Counted
from workbench.workloads.generators.lengths import Empirical, Kind, Kinds, Pair, fixed_lengths, lengths_of
from workbench.workloads.generators.making import generate
from workbench.workloads.generators.many_models import market, zipf_rates
from workbench.workloads.generators.markov import MarkovModulated, on_off
from workbench.workloads.generators.modulated import Modulated, Pauses, Swing
from workbench.workloads.generators.piecewise import PiecewisePoisson
from workbench.workloads.generators.poisson import Poisson
from workbench.workloads.generators.prefixes import SharedPrefixes
from workbench.workloads.generators.renewal import GammaRenewal
from workbench.workloads.generators.sides import Fixed, Hump, Lognormals, Quantiles
from workbench.workloads.handle import Trace
from workbench.workloads.opening import trace, traces
from workbench.workloads.options import Limits
from workbench.workloads.ranking import windows
from workbench.workloads.scaling.compressing import compress
from workbench.workloads.scaling.cutting import cut
from workbench.workloads.scaling.merging import merge
from workbench.workloads.scaling.repeating import repeat
from workbench.workloads.scaling.superposing import superpose
from workbench.workloads.stand_ins import StandIn

__all__ = [
    "Calendar",
    "Counted",
    "Empirical",
    "Fetched",
    "Fixed",
    "GammaRenewal",
    "Hump",
    "Kind",
    "Kinds",
    "Limits",
    "Lognormals",
    "MarkovModulated",
    "Modulated",
    "Pair",
    "Pauses",
    "PiecewisePoisson",
    "Poisson",
    "Quantiles",
    "SharedPrefixes",
    "StandIn",
    "Swing",
    "Trace",
    "compress",
    "convert",
    "cut",
    "fetch",
    "fit",
    "fixed_lengths",
    "generate",
    "lengths_of",
    "market",
    "merge",
    "on_off",
    "repeat",
    "superpose",
    "trace",
    "traces",
    "windows",
    "zipf_rates",
]
