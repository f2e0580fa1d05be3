"""What a simulation's output says: replications, warm-up, batch means, intervals, and whether to trust them.

Nothing here knows queues; later rooms use it for any simulated number.
"""

from workbench.queueing.statistics.batches import BatchMeans, batch_means
from workbench.queueing.statistics.intervals import Interval, ends_over_runs, student_interval
from workbench.queueing.statistics.promises import Coverage, coverage
from workbench.queueing.statistics.replications import Replications, replicate, replication_seeds
from workbench.queueing.statistics.warm_up import WarmUp, drop_share, mser

__all__ = [
    "BatchMeans",
    "Coverage",
    "Interval",
    "Replications",
    "WarmUp",
    "batch_means",
    "coverage",
    "drop_share",
    "ends_over_runs",
    "mser",
    "replicate",
    "replication_seeds",
    "student_interval",
]
