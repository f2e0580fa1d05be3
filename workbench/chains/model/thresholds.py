"""Does a free slow chain help? The best dispatch of a few slots, and how much join-the-fastest-free-chain loses."""

import math

import numpy as np
import polars as pl

from workbench.chains.kernels.thresholds import best_starts
from workbench.chains.model.ordering import ordered
from workbench.errors import InputError, UserError
from workbench.queueing import Answer
from workbench.queueing.checking import arrival_rate, positive, stable
from workbench.records import whole

MOST_STATES = 5_000
MOST_SWEEPS = 200_000


class BestDispatch(Answer):
    """The dispatch with the shortest mean response.

    Attributes:
        mean_inside, mean_response_s: what it reaches, to within `tolerance` jobs.
        tolerance: of the mean number inside.
        starts: one row for every combination of busy slots with a free one: `busy` (as text, in order of falling rate),
            `chain` (place in that order) and `from_waiting`, the shortest line, head included, whose head starts there.
    """

    mean_inside: float
    mean_response_s: float
    tolerance: float
    starts: pl.DataFrame


def best_dispatch(
    rates_per_s, slots, arrival_rate_per_s: float, *, longest: int = 200, tolerance: float = 1e-6
) -> BestDispatch:
    """What is the shortest mean response that any dispatch reaches, and when does it use a slow chain?

    Value iteration over busy slots and the length of the line. With two single slots the answer is a threshold (Lin and
    Kumar 1984): the slow one is used from some length of the line on.

    Parameters:
        rates_per_s, slots, arrival_rate_per_s: as in `workbench.chains.bounds`; few slots.
        longest: where the line is cut off; it must hardly ever be that long.
        tolerance: of the mean number inside.

    Raises:
        UserError: too many states, or a line that is too often as long as `longest`.

    >>> best = best_dispatch([1.0, 0.1], [1, 1], 0.3)
    >>> round(best.mean_response_s, 3)
    1.428
    """
    rates, counts, _ = ordered(rates_per_s, slots)
    arrivals = arrival_rate(arrival_rate_per_s)
    load = stable(f"{rates.size} chains with {counts.sum()} slots", arrivals, float(rates @ counts), "add slots")
    whole(longest, "longest", 1, 100_000)
    if (states := math.prod(int(count) + 1 for count in counts)) * (longest + 1) > MOST_STATES * 201:
        raise UserError(f"{states:,} combinations of busy slots are too many; take fewer slots, or a shorter line.")
    if load**longest > 1e-6:
        raise InputError(
            f"is {longest}, and at load {load:.3g} the line is longer too often", "raise it", field="longest"
        )
    value, start = np.empty((states, longest + 1)), np.empty((states, longest + 1), dtype=np.int64)
    mean, met = best_starts(
        arrivals, rates, counts, longest, positive(tolerance, "tolerance"), MOST_SWEEPS, value, start
    )
    if not met:
        raise UserError(f"The mean is not known to within {tolerance:g} jobs; allow a larger tolerance.")
    if mean <= tolerance:
        raise InputError(
            f"is {tolerance:g}, and the mean number inside is no more", "give a smaller one", field="tolerance"
        )
    return BestDispatch(
        queue=f"{rates.size} chains with {counts.sum()} slots",
        kind="exact",
        arrivals="Poisson",
        service="exponential",
        source="relative value iteration over busy slots and the line (Lin and Kumar 1984 for two slots)",
        mean_inside=mean,
        mean_response_s=mean / arrivals,
        tolerance=tolerance,
        starts=_starts(counts, start),
    )


def _starts(counts: np.ndarray, start: np.ndarray) -> pl.DataFrame:
    rows = []
    for index, busy in enumerate(np.ndindex(*(counts + 1))):
        for chain in np.unique(start[index][start[index] >= 0]).tolist():
            rows.append((" ".join(map(str, busy)), chain, int(np.argmax(start[index] == chain))))
    return pl.DataFrame(rows, schema={"busy": pl.String, "chain": pl.Int64, "from_waiting": pl.Int64}, orient="row")


def threshold_response(
    arrival_rate_per_s: float, slow_rate_per_s: float, threshold: int, fast_rate_per_s: float = 1.0
) -> float:
    """How long does a job stay when a slow slot takes the head of the line only once the line is so long?

    Exact. One fast and one slow slot; the fast one never idles while somebody waits. With a threshold of 1 this is
    join-the-fastest-free-chain.

    Parameters:
        arrival_rate_per_s, slow_rate_per_s, fast_rate_per_s: λ and the two rates.
        threshold: shortest line, head included, whose head starts on the slow slot.

    >>> round(threshold_response(0.3, 0.1, 1), 3), round(threshold_response(0.3, 0.1, 7), 3)
    (2.367, 1.428)
    """
    arrivals, n = arrival_rate(arrival_rate_per_s), whole(threshold, "threshold", 1, 1000)
    fast, slow = positive(fast_rate_per_s, "fast_rate_per_s"), positive(slow_rate_per_s, "slow_rate_per_s")
    load = stable("two slots", arrivals, fast + slow, "take faster slots")
    # states 0 to n: that many inside, the slow slot idle; n + 1 + k: k inside or waiting for the fast one, slow busy
    flow = np.zeros((2 * n + 2, 2 * n + 2))

    def move(source: int, target: int, rate: float) -> None:
        flow[target, source] += rate
        flow[source, source] -= rate

    for k in range(n + 1):
        idle, busy = k, n + 1 + k
        move(idle, idle + 1 if k < n else 2 * n + 1, arrivals)
        if k < n:
            move(busy, busy + 1, arrivals)  # at n what comes balances what comes back from the geometric tail
        if k:
            move(idle, idle - 1, fast)
            move(busy, busy - 1, fast)
        move(busy, idle, slow)
    flow[0] = 1.0
    flow[0, -1] = 1 / (1 - load)
    weight = np.linalg.solve(flow, np.eye(2 * n + 2)[0])
    inside = np.concatenate([np.arange(n + 1.0), np.arange(1.0, n + 2)])
    beyond = weight[-1] * ((n + 1) * load / (1 - load) + load / (1 - load) ** 2)
    return float((weight @ inside + beyond) / arrivals)


def break_even_rate(arrival_rate_per_s: float, fast_rate_per_s: float = 1.0) -> float:
    """From which rate on does using a slow slot beside a fast one shorten the mean response?

    Below it, join-the-fastest-free-chain does worse than the fast slot alone (M/M/1). One slot each.

    Parameters:
        arrival_rate_per_s: λ, below the fast rate.
        fast_rate_per_s: of the fast slot.

    >>> round(break_even_rate(0.3), 4), round(break_even_rate(0.8), 4)
    (0.345, 0.0514)
    """
    from scipy.optimize import brentq

    # E[N] of two single slots in closed form (notes on server chains, §2.9) less that of M/M/1, without
    # denominators and with what cancels taken out, in units of the fast rate: falls through 0 at the break-even rate x
    arrivals, fast = arrival_rate(arrival_rate_per_s), positive(fast_rate_per_s, "fast_rate_per_s")
    stable("the fast slot", arrivals, fast, "take a faster slot")
    load, spare = arrivals / fast, (fast - arrivals) / fast

    def worse(x: float) -> float:
        alone = (1 + x) ** 2 * (load + x) * (spare**2 + (spare - load) * x)
        return alone - x * (spare + x) ** 2 * (1 + 2 * load + x)

    return fast * float(brentq(worse, 0.0, 1.0, xtol=1e-300, rtol=1e-14, maxiter=1000))
