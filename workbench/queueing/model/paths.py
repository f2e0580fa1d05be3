"""Sample paths by compiled recursions: customers in, what happened to each of them out."""

import numpy as np

from workbench.errors import InputError
from workbench.queueing.checking import MOST_SERVERS, levels, not_negative, positive, server_count, vector, whole
from workbench.queueing.kernels.first_come import first_come
from workbench.queueing.kernels.lindley import lindley
from workbench.queueing.kernels.rotation import rotation
from workbench.queueing.kernels.sharing import shared_service
from workbench.queueing.kernels.unequal import fastest_free_starts
from workbench.queueing.path import Customers, Path, checked
from workbench.queueing.policy import DISCIPLINES, Discipline, check_discipline, fastest_first

NO_LIMIT = 2**62


def first_come_path(customers: Customers, servers: int = 1) -> Path:
    """What happens to each customer at c like servers, first come first served (Kiefer & Wolfowitz 1955)?

    Parameters:
        customers: arrivals in order, and service times.
        servers: c.

    >>> path = first_come_path(Customers([0.0, 1.0, 1.5], [2.0, 2.0, 2.0]), servers=2)
    >>> path.wait_s.tolist()
    [0.0, 0.0, 0.5]
    """
    arrival, service = checked(customers)
    start = np.empty(arrival.size)
    first_come(arrival, service, server_count(servers), start)
    return Path(arrival, start, start + service)


def lindley_waits(gap_s, service_s) -> np.ndarray:
    """How long does each customer wait for one server, from gaps alone (Lindley 1952)?

    Parameters:
        gap_s: float64[n], time since the arrival before; the first is not used.
        service_s: float64[n].

    Raises:
        InputError: unequal lengths, or times that are negative or not finite.

    >>> lindley_waits([0.0, 1.0, 1.0], [2.0, 2.0, 2.0]).tolist()
    [0.0, 1.0, 2.0]
    """
    gaps, services = vector(gap_s, "gap_s"), vector(service_s, "service_s")
    if gaps.size != services.size:
        raise InputError(f"holds {services.size} values for {gaps.size} gaps", "give one each", field="service_s")
    waits = np.empty(gaps.size)
    lindley(gaps, services, waits)
    return waits


def fastest_free_path(customers: Customers, service_rates_per_s, slots=None) -> Path:
    """What happens to each customer at unequal servers, each to the fastest free one, else into one queue?

    Parameters:
        customers: arrivals in order; a service takes service_s / rate.
        service_rates_per_s: rate of one slot of each class.
        slots: slots of each class, one each if left out.

    Returns:
        A path whose `place` is the class, as numbered in `service_rates_per_s`.

    >>> fastest_free_path(Customers([0.0, 0.5, 0.6], [1.0, 1.0, 1.0]), [0.5, 1.0]).place.tolist()
    [1, 0, 1]
    """
    arrival, work = checked(customers)
    rates, counts, order = ordered_classes(service_rates_per_s, slots)
    start, finish, place = np.empty(arrival.size), np.empty(arrival.size), np.empty(arrival.size, dtype=np.int64)
    fastest_free_starts(arrival, work, rates, counts, start, finish, place)
    return Path(arrival, start, finish, order[place])


def ordered_classes(service_rates_per_s, slots) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates and slots in the order of dispatch, and that order."""
    rates = vector(service_rates_per_s, "service_rates_per_s", above=True)
    counts = np.ones(rates.size) if slots is None else vector(slots, "slots", above=True)
    if counts.size != rates.size:
        raise InputError(f"holds {counts.size} numbers for {rates.size} rates", "give one per rate", field="slots")
    order = np.array(fastest_first(rates))
    given = np.array([whole(count, "slots") for count in counts[order]], dtype=float)
    levels(given.sum(), "slots", most=MOST_SERVERS)
    return rates[order], given.astype(np.int64), order


def processor_sharing_path(customers: Customers) -> Path:
    """What happens to each job when all inside share one server equally?

    >>> processor_sharing_path(Customers([0.0, 1.0], [2.0, 0.5])).finish_s.tolist()
    [2.5, 2.0]
    """
    arrival, work = checked(customers)
    return _shared(arrival, work, 1 / np.arange(1.0, arrival.size + 1), NO_LIMIT)


def batched_path(
    customers: Customers, step_fixed_s: float, step_per_job_s: float, max_batch: int, places: int | None = None
) -> Path:
    """What happens to each job when up to B run in steps of a + b n seconds?

    A job may join and leave at any instant, not only between steps, as in `batched_service`.

    Parameters:
        customers: arrivals in order; `service_s` holds the steps each job needs.
        step_fixed_s, step_per_job_s: a and b; a step of n jobs takes a + b n.
        max_batch: B; the others wait.
        places: K, most jobs inside; None for no limit.
    """
    arrival, steps = checked(customers)
    progress = batch_progress(step_fixed_s, step_per_job_s, max_batch)
    return _shared(
        arrival, steps, progress, NO_LIMIT if places is None else levels(places, "places", progress.size, NO_LIMIT)
    )


def batch_progress(step_fixed_s: float, step_per_job_s: float, max_batch: int) -> np.ndarray:
    """Steps per second when 1 to B jobs run together."""
    fixed, each = not_negative(step_fixed_s, "step_fixed_s"), not_negative(step_per_job_s, "step_per_job_s")
    positive(fixed + each, "step_fixed_s + step_per_job_s")
    return 1 / (fixed + each * np.arange(1.0, levels(max_batch, "max_batch") + 1))


def _shared(arrival: np.ndarray, work: np.ndarray, progress: np.ndarray, places: int) -> Path:
    start, finish = np.empty(arrival.size), np.empty(arrival.size)
    shared_service(arrival, work, progress, places, start, finish)
    return Path(arrival, start, finish)


def rotation_path(customers: Customers, queue, switch_s, discipline: Discipline = "exhaustive") -> Path:
    """What happens to each customer when one server visits several queues in turn?

    Parameters:
        customers: arrivals in order, and service times.
        queue: int[n], the queue each joins, counted from 0; the largest tells how many there are.
        switch_s: times of the walks from one queue to the next, used over and over in order.
        discipline: see `polling`.

    Returns:
        A path whose `place` is the queue.

    >>> rotation_path(Customers([0.0, 0.0], [1.0, 1.0]), [1, 0], [0.5]).start_s.tolist()
    [1.5, 0.0]
    """
    arrival, service = checked(customers)
    queues, walks = checked_rotation(queue, switch_s, arrival.size)
    check_discipline(discipline)
    start, finish = np.empty(arrival.size), np.empty(arrival.size)
    rotation(arrival, queues, int(queues.max()) + 1, service, walks, DISCIPLINES[discipline], start, finish)
    return Path(arrival, start, finish, queues)


def checked_rotation(queue, switch_s, customers: int) -> tuple[np.ndarray, np.ndarray]:
    """Queues as int64[n] and walks as float64[m], refused where they do not fit."""
    given = vector(queue, "queue")
    if given.size != customers or (given != np.round(given)).any():
        raise InputError(
            f"does not hold {customers} whole numbers", "give the queue of each customer, counted from 0", field="queue"
        )
    levels(given.max(), "queue", 0, MOST_SERVERS)
    return given.astype(np.int64), vector(switch_s, "switch_s")
