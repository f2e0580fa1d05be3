"""The analytic face of waiting lines: rates and distributions in, records out that say what they take for granted."""

from workbench.queueing.model.active import ActiveModels, active_models
from workbench.queueing.model.active_path import ActivePath, active_path
from workbench.queueing.model.answer import Answer, Kind, Waiting
from workbench.queueing.model.batched import Batched, batched_service
from workbench.queueing.model.constant_service import ConstantService, OneConstantServer, md1, mdc
from workbench.queueing.model.curves import curve
from workbench.queueing.model.exponential_servers import ExponentialServers, mm1, mmc
from workbench.queueing.model.gamma_arrivals import GammaArrivals, gimc
from workbench.queueing.model.general_service import GeneralService, mg1
from workbench.queueing.model.known_errors import known_errors
from workbench.queueing.model.limited_room import LimitedRoom, mmck
from workbench.queueing.model.moment_bounds import WaitBounds, gg1_bounds
from workbench.queueing.model.paths import (
    batched_path,
    fastest_free_path,
    first_come_path,
    lindley_waits,
    processor_sharing_path,
    rotation_path,
)
from workbench.queueing.model.rotation import Polling, polling
from workbench.queueing.model.sharing import ProcessorSharing, processor_sharing
from workbench.queueing.model.two_moments import APPROXIMATIONS, Method, TwoMomentWaiting, ggc
from workbench.queueing.model.unequal_servers import (
    UnequalBounds,
    UnequalServers,
    fastest_free,
    fastest_free_bounds,
)

__all__ = [
    "APPROXIMATIONS",
    "ActiveModels",
    "ActivePath",
    "Answer",
    "Batched",
    "ConstantService",
    "ExponentialServers",
    "GammaArrivals",
    "GeneralService",
    "Kind",
    "LimitedRoom",
    "Method",
    "OneConstantServer",
    "Polling",
    "ProcessorSharing",
    "TwoMomentWaiting",
    "UnequalBounds",
    "UnequalServers",
    "WaitBounds",
    "Waiting",
    "active_models",
    "active_path",
    "batched_path",
    "batched_service",
    "curve",
    "fastest_free",
    "fastest_free_bounds",
    "fastest_free_path",
    "first_come_path",
    "gg1_bounds",
    "ggc",
    "gimc",
    "known_errors",
    "lindley_waits",
    "md1",
    "mdc",
    "mg1",
    "mm1",
    "mmc",
    "mmck",
    "polling",
    "processor_sharing",
    "processor_sharing_path",
    "rotation_path",
]
