"""What the world is made of: accelerators, links, clusters, models, deployments and service-level objectives.

Every number is a `Quantity`: a value with its SI unit, how it is known, and by whom. Nominal and achievable numbers
stand side by side; what one paper says differently is a named alternate or override, never the default.
"""

from workbench.profiles.accelerator_library import accelerator, accelerators
from workbench.profiles.accelerator_record import Accelerator, AchievableSpeeds, Speeds
from workbench.profiles.cluster_library import cluster, clusters
from workbench.profiles.cluster_places import Place
from workbench.profiles.cluster_record import Cluster, HostGroup, LeafSwitch
from workbench.profiles.deployment_record import Deployment, deployment
from workbench.profiles.fitting import Fit, check_fits
from workbench.profiles.link_library import link, links
from workbench.profiles.link_record import Link
from workbench.profiles.measure_machine import measure
from workbench.profiles.measure_peer import listen_for_peer
from workbench.profiles.model_library import model, models
from workbench.profiles.model_record import Experts, LatentAttention, Model
from workbench.profiles.quantities import Alternate
from workbench.profiles.slo_record import SLO, slo

__all__ = [
    "SLO",
    "Accelerator",
    "AchievableSpeeds",
    "Alternate",
    "Cluster",
    "Deployment",
    "Experts",
    "Fit",
    "HostGroup",
    "LatentAttention",
    "LeafSwitch",
    "Link",
    "Model",
    "Place",
    "Speeds",
    "accelerator",
    "accelerators",
    "check_fits",
    "cluster",
    "clusters",
    "deployment",
    "link",
    "links",
    "listen_for_peer",
    "measure",
    "model",
    "models",
    "slo",
]
