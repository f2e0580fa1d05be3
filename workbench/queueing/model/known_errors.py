"""How far the two-moment approximations miss where the exact answer is known."""

import numpy as np
import polars as pl

from workbench.queueing.checking import server_count, vector
from workbench.queueing.model.constant_service import mdc
from workbench.queueing.model.gamma_arrivals import gimc
from workbench.queueing.model.two_moments import Method, approximation, ggc

LOADS = (0.5, 0.7, 0.8, 0.9, 0.95)
SERVERS = (1, 2, 4, 8, 16, 32)
ARRIVAL_SCVS = (0.25, 1.0, 4.0)


def known_errors(
    method: Method,
    loads: tuple[float, ...] = LOADS,
    servers: tuple[int, ...] = SERVERS,
    arrival_scvs: tuple[float, ...] = ARRIVAL_SCVS,
) -> pl.DataFrame:
    """How far is a formula off wherever M/D/c or gamma arrivals at exponential servers give the exact mean wait?

    Waits at light loads on many servers are tiny, so relative errors there are large and of little weight.

    Parameters:
        method: as in `ggc`.
        loads, servers, arrival_scvs: the cases; those the formula is not made for are left out.

    Returns:
        A table, waits in mean service times: `queue, load, servers, arrival_scv, service_scv, exact_wait,
        approximate_wait, relative_error`.

    >>> known_errors("allen-cunneen", (0.9,), (32,), ())["relative_error"].round(3).to_list()
    [-0.061]
    """
    chosen = approximation(method)
    loads, servers, arrival_scvs = (
        tuple(vector(values, name).tolist()) if np.size(values) else ()
        for values, name in ((loads, "loads"), (servers, "servers"), (arrival_scvs, "arrival_scvs"))
    )
    rows = []
    for c in map(server_count, servers):
        if chosen.one_server and c > 1:
            continue
        for load in loads:
            cases = [(mdc(load * c, 1.0, c), 1.0, 0.0)]
            cases += [(gimc(load * c, scv, 1.0, c), scv, 1.0) for scv in arrival_scvs]
            for exact, arrival_scv, service_scv in cases:
                if not chosen.least_arrival_scv <= arrival_scv <= chosen.most_arrival_scv:
                    continue
                about = ggc(load * c, arrival_scv, 1.0, service_scv, c, method)
                rows.append(
                    {
                        "queue": exact.queue,
                        "load": load,
                        "servers": c,
                        "arrival_scv": arrival_scv,
                        "service_scv": service_scv,
                        "exact_wait": exact.mean_wait_s,
                        "approximate_wait": about.mean_wait_s,
                        "relative_error": about.mean_wait_s / exact.mean_wait_s - 1,
                    }
                )
    return pl.DataFrame(rows)
