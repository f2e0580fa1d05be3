"""Systems whose clients route each request by themselves: PETALS, and BPRR before the chain paper."""

import math
from typing import Literal, NamedTuple

import numpy as np

from workbench.chains.kernels.layout import STUCK
from workbench.chains.kernels.routing import Servers, routed
from workbench.chains.model.composing import Placement
from workbench.chains.model.fleet import Fleet, of_one_kind
from workbench.chains.model.jobs import JobList
from workbench.chains.policy.bprr import cg_bp
from workbench.chains.policy.petals import SORTED, SUMMED, petals_blocks, petals_join
from workbench.chains.policy.routing import LEAST_WAIT, SHORTEST
from workbench.errors import InputError, UnknownName, UserError
from workbench.queueing import Path
from workbench.queueing.checking import not_negative, positive, vector
from workbench.records import takes_records, whole

Window = Literal["sorted", "summed"]
WINDOWS: dict[Window, int] = {"sorted": SORTED, "summed": SUMMED}
PENALTY_S = 10.0
"""What PETALS adds to a server whose cache cannot hold another session (client/routing/sequence_manager.py)."""


class Routed(NamedTuple):
    """A placement with a routing policy.

    Attributes:
        policy: number of the routing policy, see `policy.routing`.
        servers: what kernels know of the servers.
        layers: L.
        penalty_s: what a router adds to a server that it thinks full.
    """

    policy: int
    servers: Servers
    layers: int
    penalty_s: float

    @property
    def covered(self) -> bool:
        """Whether some server hosts each block."""
        held = np.zeros(self.layers, dtype=bool)
        for first, count in zip(self.servers.first.tolist(), self.servers.blocks.tolist(), strict=True):
            if first >= 0:
                held[first : first + count] = True
        return bool(held.all())


class PetalsRules(NamedTuple):
    """What PETALS goes by.

    Attributes:
        kept_bytes: memory of a server that is never given to blocks (2 GiB for a hidden size of 14,336).
        pool_bytes: cache of one block, for all sessions (4,096 tokens).
        most_blocks: int[J], most blocks of each server, None for no limit. The chain paper's simulator has 4 on slow
            servers.
        throughput_per_s: float[J], what a server adds to each of its blocks.
        window: whether the weakest window has the first of sorted throughputs (PETALS) or the smallest sum (that
            simulator).
        message_s: (de)serialisation of a message.
        output_tokens: tokens of a job, over which its seconds are spread.
    """

    kept_bytes: int
    pool_bytes: int
    most_blocks: np.ndarray | None
    throughput_per_s: np.ndarray
    window: Window = "sorted"
    message_s: float = 18e-3
    output_tokens: float = 20.0


@takes_records
def petals(fleet: Fleet, round_trip_s, rules: PetalsRules, order) -> Routed:
    """How does PETALS place blocks as servers join one by one, and how does it route?

    Each server takes what fits, where blocks are weakest. A client takes the quickest way for one token: half a round
    trip to a server, a message, its blocks, and half a round trip from the last one; 10 s more on a server whose pool
    is thought full. Placed once: PETALS looks for a better balance every two minutes, which is left out here.

    Parameters:
        fleet: the servers.
        round_trip_s: float[J], between client and server.
        rules: what it goes by.
        order: servers as they join, from 0.

    Raises:
        InputError: not one round trip and one throughput a server, or an order that does not name each once.
    """
    if rules.window not in WINDOWS:
        raise UnknownName("rule for the weakest window", rules.window, WINDOWS)
    trips = _one_each(round_trip_s, "round_trip_s", fleet)
    throughput = _one_each(rules.throughput_per_s, "throughput_per_s", fleet)
    named = vector(order, "order")
    if sorted(named.tolist()) != list(range(fleet.servers)):
        raise InputError(
            "does not name each server once", f"give a permutation of 0 to {fleet.servers - 1}", field="order"
        )
    joining = named.astype(np.int64)
    kept, pool = whole(rules.kept_bytes, "kept_bytes"), whole(rules.pool_bytes, "pool_bytes")
    most = np.full(fleet.servers, fleet.layers)
    if rules.most_blocks is not None:
        most = _one_each(rules.most_blocks, "most_blocks", fleet)
    blocks, first = np.zeros(fleet.servers, dtype=np.int64), np.empty(fleet.servers, dtype=np.int64)
    petals_blocks(
        of_one_kind(fleet.memory_bytes), fleet.layers, kept, fleet.block_bytes, pool, most.astype(np.int64), blocks
    )  # fmt: skip
    petals_join(joining, blocks, of_one_kind(throughput), fleet.layers, WINDOWS[rules.window], first)
    tokens = _tokens_out(rules.output_tokens)
    servers = Servers(
        first,
        blocks,
        blocks * pool // fleet.cache_bytes,
        np.full(fleet.servers, pool // fleet.cache_bytes),
        trips / 2 + not_negative(rules.message_s, "message_s"),
        fleet.compute_s / tokens,
        trips / 2,
        fleet.communication_s[:, None].copy(),
        fleet.compute_s[:, None].copy(),
        np.ones(1),
    )
    return Routed(SHORTEST, servers, fleet.layers, PENALTY_S)


def _tokens_out(value: float) -> float:
    """Tokens of a job on average: at least one."""
    if (tokens := positive(value, "output_tokens")) < 1:
        raise InputError(f"is {tokens:g}", "give at least 1", field="output_tokens")
    return tokens


@takes_records
def bprr(fleet: Fleet, arrival_rate_per_s: float, output_tokens: float = 20.0) -> Routed:
    """How does BPRR place blocks (CG-BP) and route (WS-RR; arXiv 2512.21884)?

    Blocks are placed so that each can hold R sessions: the mean number at once plus one standard deviation, or what
    memory allows. The mean number is λ times the seconds of one job on the quickest way when R is 1: which seconds the
    authors take was not readable.

    Parameters:
        fleet: the servers.
        arrival_rate_per_s: λ.
        output_tokens: tokens of a job, over which its seconds are spread.

    Raises:
        UserError: CG-BP leaves some block without a server.
    """
    rate, tokens = positive(arrival_rate_per_s, "arrival_rate_per_s"), _tokens_out(output_tokens)
    servers, layers = fleet.servers, fleet.layers
    spare = int(fleet.memory_bytes.sum()) - fleet.block_bytes * (layers + servers)
    most = max(1, spare // (fleet.cache_bytes * (layers + servers)))
    single_s = _quickest(fleet, _cg_bp(fleet, 1, tokens))
    mean = rate * single_s
    wanted = mean + math.sqrt(mean)
    sessions = most if wanted >= most else max(1, round(wanted))
    placement = _cg_bp(fleet, sessions, tokens)
    left = fleet.memory_bytes - fleet.block_bytes * placement.blocks
    made = Servers(
        placement.first,
        placement.blocks,
        np.where(placement.blocks > 0, left // fleet.cache_bytes, 0),
        np.zeros(servers, dtype=np.int64),
        fleet.communication_s,
        fleet.compute_s,
        np.zeros(servers),
        fleet.communication_s[:, None].copy(),
        fleet.compute_s[:, None].copy(),
        np.ones(1),
    )
    return Routed(LEAST_WAIT, made, layers, 0.0)


def _cg_bp(fleet: Fleet, sessions: int, tokens: float) -> Placement:
    """CG-BP for a number of sessions at once."""
    fitting = fleet.memory_bytes // (fleet.block_bytes + fleet.cache_bytes * sessions)
    blocks = np.minimum(fitting, fleet.layers)
    held = np.maximum(blocks, 1)
    token_s = (fleet.communication_s + fleet.compute_s * blocks) / tokens / held
    able = (fleet.memory_bytes - fleet.block_bytes * blocks) // (fleet.cache_bytes * held)
    first = np.empty(fleet.servers, dtype=np.int64)
    cg_bp(blocks, token_s, able, fleet.layers, sessions, first)
    return Placement(first, np.where(first < 0, 0, blocks), np.full(fleet.servers, -1), 0, 0.0, False)


def _quickest(fleet: Fleet, placement: Placement) -> float:
    from workbench.chains.model.composing import allocate

    chains = allocate(fleet, placement).chains
    if not chains:
        raise UserError(
            f"CG-BP leaves some of the {fleet.layers} blocks without a server or a slot; add memory or servers."
        )
    return chains[0].service_s


def _one_each(values, name: str, fleet: Fleet) -> np.ndarray:
    array = vector(values, name)
    if array.size != fleet.servers:
        raise InputError(f"holds {array.size} numbers for {fleet.servers} servers", "give one for each", field=name)
    return array


@takes_records
def with_work(system: Routed, communication_s: np.ndarray, compute_s: np.ndarray, usual) -> Routed:
    """The same system for jobs of tokens: seconds for each unit of work, and the work of the mean job."""
    servers = system.servers._replace(
        communication_s=communication_s, compute_s=compute_s, usual=vector(usual, "usual")
    )
    return system._replace(servers=servers)


@takes_records
def routed_path(jobs: JobList, system: Routed, *, contention: bool = False) -> Path:
    """What happens to each job when clients route by themselves?

    A client thinks that every job so far takes its mean seconds; it admits a job to a route and starts it once the
    expected wait is over and the servers have slots enough beside all jobs admitted before. Start and finish count the
    wait at the slowest server of the route.

    Parameters:
        jobs: arrivals and work.
        system: placement and routing.
        contention: whether jobs slow each other down on a server, as in `dispatch_path`.

    Raises:
        UserError: some block is on no server.
    """
    arrival, work = checked_jobs(jobs, system)
    servers = Servers(*map(of_one_kind, system.servers))
    made, _, ended = routed(arrival, work, servers, system.layers, system.policy, system.penalty_s, contention)
    if ended == STUCK:
        raise UserError("No route of these servers has a slot on each of its servers; give more cache.")
    return Path(made.arrival_s, made.start_s, made.finish_s)


def checked_jobs(jobs: JobList, system: Routed) -> tuple[np.ndarray, np.ndarray]:
    """Arrivals and work for a routed run, refused where they do not fit."""
    if not system.covered:
        raise UserError("Some block is on no server; let servers take more blocks, or add servers.")
    if jobs.work.shape[1] != system.servers.usual.size:
        raise InputError(
            f"has {jobs.work.shape[1]} kinds of work, the servers state {system.servers.usual.size}",
            "take jobs of sizes, or give the servers token times (with_work)",
            field="jobs",
        )
    return np.ascontiguousarray(jobs.arrival_s, dtype=float), np.ascontiguousarray(jobs.work, dtype=float)
