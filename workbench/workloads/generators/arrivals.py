"""All arrival processes as one type, told apart by their `kind`."""

from typing import Annotated

from pydantic import Field

from workbench.workloads.generators.by_day import Calendar
from workbench.workloads.generators.counted import Counted
from workbench.workloads.generators.markov import MarkovModulated
from workbench.workloads.generators.modulated import Modulated
from workbench.workloads.generators.piecewise import PiecewisePoisson
from workbench.workloads.generators.poisson import Poisson
from workbench.workloads.generators.renewal import GammaRenewal

Arrivals = Annotated[
    Poisson | GammaRenewal | MarkovModulated | Modulated | PiecewisePoisson | Calendar | Counted,
    Field(discriminator="kind"),
]
