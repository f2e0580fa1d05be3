"""Chains formed anew as the load changes: which c in which window, what that reloads, and what jobs notice."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.chains.kernels.layout import jobs_of, lines_of
from workbench.chains.kernels.switching import Epochs, run_switching
from workbench.chains.model.bounds import both_means
from workbench.chains.model.composing import Composition, Placement, compose
from workbench.chains.model.fleet import Fleet
from workbench.chains.model.jobs import JobList
from workbench.chains.model.paths import check_end
from workbench.chains.model.serving import Served, chains_of
from workbench.chains.model.tuning import to_try
from workbench.errors import InputError
from workbench.queueing import Path
from workbench.queueing.checking import not_negative, positive, vector
from workbench.records import of_type, shown, takes_records


class Plan(NamedTuple):
    """Compositions one after the other.

    Attributes:
        switch_s: float64[E], when each takes over; the first at -infinity.
        compositions: of each.
        load_s: float64[E, J], seconds that each server then loads.
        loaded_bytes: whole[E], bytes loaded by all servers together.
    """

    switch_s: np.ndarray
    compositions: tuple[Composition, ...]
    load_s: np.ndarray
    loaded_bytes: np.ndarray


@takes_records
def missing_blocks(before: Placement, after: Placement) -> np.ndarray:
    """How many blocks must each server load to get from one placement to another? int64[J]."""
    kept = np.minimum(before.first + before.blocks, after.first + after.blocks) - np.maximum(before.first, after.first)
    return after.blocks - np.clip(np.where((before.blocks > 0) & (after.blocks > 0), kept, 0), 0, None)


class Windows:
    """Compositions by c of one fleet, each made once, and what they promise at a rate."""

    def __init__(self, fleet: Fleet, reserved: Sequence[int]):
        made = {c: compose(fleet, c) for c in to_try(reserved)}
        self.made = {c: one for c, one in made.items() if one.chains}
        if not self.made:
            raise InputError("holds no c with which these servers host the model", "give other ones", field="reserved")
        self._parts = {c: (one.rates_per_s, one.capacities, one.rate_per_s) for c, one in self.made.items()}

    def promised_s(self, c: int, arrival_rate_per_s: float) -> float:
        """Lower bound of the mean response; infinity where the chains cannot keep up."""
        rates, slots, total = self._parts[c]
        if arrival_rate_per_s >= total:
            return math.inf
        if arrival_rate_per_s <= 0:
            return 1 / rates[0]
        return both_means(arrival_rate_per_s, rates, slots)[0] / arrival_rate_per_s

    def choose(self, arrival_rate_per_s: float, before: int | None, cost: float, bytes_per_s: float) -> int:
        """The c with the least promised response plus cost times the seconds of reloading (p_w of the paper).

        The switching cost is the bytes that all servers must load over the bandwidth of one. Where no c keeps up, the
        one of the largest rate.
        """

        def price(c: int) -> tuple[float, float]:  # equal prices: the smallest c, which stands first
            switching = 0.0
            if before is not None and cost > 0:
                blocks = missing_blocks(self.made[before].placement, self.made[c].placement).sum()
                switching = cost * float(blocks) * self.made[c].fleet.block_bytes / bytes_per_s
            promised = self.promised_s(c, arrival_rate_per_s)
            return promised + switching, -self._parts[c][2] if promised == math.inf else 0.0

        return min(self.made, key=price)


def plan_windows(
    windows: Windows, rates_per_s, window_s: float, *, cost: float = 0.0, bytes_per_s: float = 1e9
) -> Plan:
    """Which composition serves which window?

    Parameters:
        windows: compositions by c.
        rates_per_s: float[W], the rate by which each window chooses.
        window_s: their length.
        cost: weight of the switching cost (δ); 0 switches whenever another c promises less.
        bytes_per_s: bandwidth at which a server loads blocks.
    """
    length, weight, speed = (
        positive(window_s, "window_s"),
        not_negative(cost, "cost"),
        positive(bytes_per_s, "bytes_per_s"),
    )
    of_type(windows, Windows, "windows")
    chosen: list[tuple[float, int]] = []
    for number, rate in enumerate(vector(rates_per_s, "rates_per_s").tolist()):
        before = chosen[-1][1] if chosen else None
        c = windows.choose(rate, before, weight, speed)
        if c != before:
            chosen.append((number * length if chosen else -math.inf, c))
    made = tuple(windows.made[c] for _, c in chosen)
    return plan([start for start, _ in chosen], made, speed)


def plan(switch_s, compositions: Sequence[Composition], bytes_per_s: float) -> Plan:
    """Compositions that take over at given instants, and what each loads.

    Parameters:
        switch_s: instants that never fall, the first one -infinity.
        compositions: of the same fleet.
        bytes_per_s: bandwidth at which a server loads blocks.
    """
    speed = positive(bytes_per_s, "bytes_per_s")
    made = isinstance(compositions, Sequence) and all(isinstance(one, Composition) for one in compositions)
    if not made or len({one.fleet.servers for one in compositions}) != 1:
        raise InputError("are no compositions of one fleet", "give a list of what compose makes", field="compositions")
    if not _rising(switch_s, len(compositions)):
        raise InputError(
            f"is {shown(switch_s)}",
            "give -infinity and then seconds that never fall, an instant for each composition",
            field="switch_s",
        )
    servers = compositions[0].fleet.servers
    missing = np.zeros((len(compositions), servers))
    for number in range(1, len(compositions)):
        before, after = compositions[number - 1], compositions[number]
        missing[number] = missing_blocks(before.placement, after.placement) * after.fleet.block_bytes
    return Plan(
        np.asarray(switch_s, dtype=float),
        tuple(compositions),
        missing / speed,
        missing.sum(axis=1).astype(np.int64),
    )


def _rising(instants, count: int) -> bool:
    """Whether these are so many instants in order, equal ones included, the first -infinity and no other infinite."""
    try:
        begin = np.array(instants, dtype=float)
    except (TypeError, ValueError):
        return False
    return bool(
        begin.shape == (count,)
        and begin[0] == -math.inf
        and np.isfinite(begin[1:]).all()
        and (np.diff(begin[1:]) >= 0).all()
    )


def laid_out(planned: Plan) -> tuple[list[Served], Epochs]:
    """The chains of all sets one behind the other, as kernels take them."""
    every = [chains_of(made) for made in planned.compositions]
    begin = np.concatenate([[0], np.cumsum([one.slots.size for one in every])]).astype(np.int64)
    width = max(one.server.shape[1] for one in every)
    server = np.full((begin[-1], width), -1)
    for number, one in enumerate(every):
        server[begin[number] : begin[number + 1], : one.server.shape[1]] = one.server
    return every, Epochs(
        planned.switch_s,
        begin,
        planned.load_s,
        server,
        np.concatenate([one.hops for one in every]),
        np.full(begin[-1], np.inf),
        np.zeros(every[0].servers),
    )


@takes_records
def switching_path(jobs: JobList, planned: Plan) -> Path:
    """What happens to each job when chains are formed anew at each switch, and none is interrupted?

    A server stops taking old jobs at a switch, and takes new ones once its last old job has left and the blocks it
    lacks are loaded; a chain opens once all its servers have got so far. A server whose blocks stay also waits for its
    old jobs, which hold cache that the new chains count on. Jobs wait in the central line meanwhile.

    Parameters:
        jobs: of one size each.
        planned: compositions and when they take over.

    Returns:
        A path whose `place` is the number of the composition.

    Raises:
        InputError: jobs of more than one kind of work.
    """
    every, epochs = laid_out(planned)
    if jobs.work.shape[1] != 1:
        raise InputError(f"has {jobs.work.shape[1]} kinds of work", "draw jobs of sizes", field="jobs")
    made = jobs_of(*(np.ascontiguousarray(array, dtype=float) for array in jobs))
    lines = lines_of(
        np.concatenate([one.rates_per_s for one in every]),
        np.concatenate([one.slots for one in every]),
        np.concatenate([one.seconds for one in every]),
    )
    check_end(run_switching(made, lines, epochs))
    place = np.searchsorted(epochs.begin, made.chain, "right") - 1
    return Path(made.arrival_s, made.start_s, made.finish_s, place)
