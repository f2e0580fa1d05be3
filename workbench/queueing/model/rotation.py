"""Polling: one server walks round several queues, and walking takes time."""

from workbench.queueing.checking import MOST_SERVERS, Unstable, arrival_rate, levels, stable
from workbench.queueing.distributions import Distribution, distribution
from workbench.queueing.model.answer import Answer
from workbench.queueing.policy import Discipline, check_discipline


class Polling(Answer):
    """Like queues visited in turn, in their steady state.

    Attributes:
        discipline: when the server leaves a queue.
        queues: how many.
        arrival_rate_per_s: λ of each queue.
        utilisation: share of time spent serving (walking not counted).
        mean_cycle_s: mean time of one round.
        mean_wait_s: mean time before service starts.
        mean_response_s: mean time from arrival to the end of service.
        mean_waiting: mean number waiting in all queues together.
        mean_wait_without_walking_s: what it would be if walking took no time (M/G/1).
    """

    discipline: Discipline
    queues: int
    arrival_rate_per_s: float
    utilisation: float
    mean_cycle_s: float
    mean_wait_s: float
    mean_response_s: float
    mean_waiting: float
    mean_wait_without_walking_s: float


def polling(
    queues: int,
    arrival_rate_per_s: float,
    service: Distribution,
    switchover: Distribution,
    discipline: Discipline = "exhaustive",
) -> Polling:
    """How long do customers wait when one server serves several like queues in turn and switching takes time?

    The server walks on past empty queues too. Pseudo-conservation (Takagi 1988), exact for like queues:
    E[W] = Var(R) / (2 E[R]) + (N λ E[S^2] + E[R] (N ∓ ρ)) / (2 (1-ρ)), - exhaustive, + gated; 1-limited has
    N λ Var(R) added above and 1 - ρ - N λ E[R] below, R one switch-over.

    Parameters:
        queues: N.
        arrival_rate_per_s: λ of the Poisson arrivals at each queue.
        service: service times.
        switchover: times to walk from one queue to the next.
        discipline: "exhaustive" until the queue is empty, "gated" those found on arrival, "one-limited" one a visit.

    Raises:
        Unstable: more arrives than the server can do beside its walks.

    >>> from workbench.queueing import Deterministic, Exponential
    >>> round(polling(4, 0.15, Exponential(mean_s=1.0), Deterministic(mean_s=0.1), "gated").mean_wait_s, 6)
    2.075
    """
    n, rate = levels(queues, "queues", most=MOST_SERVERS), arrival_rate(arrival_rate_per_s)
    service, switchover = distribution(service, "service"), distribution(switchover, "switchover")
    check_discipline(discipline)
    total, walk = n * rate, switchover.mean_s
    load = stable(f"Polling of {n} queues", total, 1 / service.mean_s)
    spread = walk**2 * switchover.scv
    work = total * service.moment(2)
    if discipline == "one-limited":
        left = 1 - load - total * walk
        if left <= 0:
            raise Unstable(
                f"Polling of {n} queues, one service a visit,", total, 1 / (service.mean_s + walk), "serve more a visit"
            )
        wait = spread / (2 * walk) + (work + walk * (n + load) + total * spread) / (2 * left)
    else:
        sign = -1 if discipline == "exhaustive" else 1
        wait = spread / (2 * walk) + (work + walk * (n + sign * load)) / (2 * (1 - load))
    return Polling(
        queue=f"{n} x M/G/1, {discipline} polling",
        kind="exact",
        arrivals="Poisson",
        service=service.label,
        source="Takagi 1988",
        discipline=discipline,
        queues=n,
        arrival_rate_per_s=rate,
        utilisation=load,
        mean_cycle_s=n * walk / (1 - load),
        mean_wait_s=wait,
        mean_response_s=wait + service.mean_s,
        mean_waiting=total * wait,
        mean_wait_without_walking_s=work / (2 * (1 - load)),
    )
