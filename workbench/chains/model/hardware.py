"""Seconds of a job on a server, from round trip, accelerator and model, by tokens in and out.

A job of n_in and n_out tokens spends RTT + o + o_in on the first token's way and RTT + o on that of every other one;
for each block t_o + n_in F/f + (n_out - 1) s_m/b (arXiv 2604.14993 §2.1.2: prefill is bound by compute, decode by
reading the block). The split of o over first and other tokens is inferred: the paper's own expression was not readable.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from workbench.chains.model.fleet import Fleet, whole_bytes
from workbench.errors import InputError
from workbench.profiles import Accelerator, Cluster, Model
from workbench.queueing.checking import not_negative, vector
from workbench.records import shown, takes_records

CACHED_TOKENS = 2048
"""Longest sequence for which a job's cache is sized."""

PRESETS = ("server-chains", "server-chains-scripts")
"""Whose figures of a model's blocks are taken where a profile has them."""


class Block(NamedTuple):
    """What one block of a model takes: bytes of weights, bytes of a job's cache, FLOP for each token."""

    bytes: int
    cache_bytes: int
    flops_per_token: float


class TokenTimes(NamedTuple):
    """Seconds of a job on each server for each unit of work: 1, tokens in, tokens out but the first.

    Attributes:
        communication_s, compute_s: float64[J, 3], on coming to the server and back, and per block there.
    """

    communication_s: np.ndarray
    compute_s: np.ndarray


class Overheads(NamedTuple):
    """Seconds that every job pays: for a token's message (o), more for the first one (o_in), for a block (t_o)."""

    message_s: float = 18e-3
    first_message_s: float = 0.0
    block_s: float = 1e-3


OVERHEADS = Overheads()


@takes_records
def block_of(model: Model) -> Block:
    """What one block takes: weights and FLOP as the paper or its authors' scripts give them, else from the shape.

    The cache is exact: the printed 0.11 GB of BLOOM-176B is rounded, and rounding it moves the best c from 7 to 3.
    """
    size, flops = float(model.layer_bytes), 2.0 * model.layer_parameters
    for preset in PRESETS:
        given = {row.quantity: float(row.value) for row in model.overrides if row.preset == preset}
        size, flops = given.get("layer_bytes", size), given.get("layer_flops_per_token", flops)
    return Block(round(size), round(model.kv_bytes_per_token_per_layer * CACHED_TOKENS), flops)


def work_of(prompt_tokens, output_tokens) -> np.ndarray:
    """Work of jobs by their tokens, in the units that `token_times` gives seconds for.

    Parameters:
        prompt_tokens, output_tokens: tokens in and out of each of n jobs; at least one out.

    Returns:
        float64[n, 3] of 1, tokens in, tokens out but the first.

    Raises:
        InputError: unequal lengths, or numbers that cannot be.
    """
    prompt, output = vector(prompt_tokens, "prompt_tokens"), vector(output_tokens, "output_tokens", least=1.0)
    if prompt.size != output.size:
        raise InputError(f"holds {output.size} values for {prompt.size} jobs", "give one each", field="output_tokens")
    return np.stack([np.ones(prompt.size), prompt, output - 1], axis=1)


def _known(accelerators) -> None:
    """An `InputError` where something else than accelerators was given."""
    if (
        isinstance(accelerators, str)
        or not isinstance(accelerators, Sequence)
        or not all(isinstance(one, Accelerator) for one in accelerators)
    ):
        raise InputError(
            f"is {shown(accelerators)}", "give a list, such as [workbench.accelerator(...)]", field="accelerators"
        )


@takes_records
def token_times(
    accelerators: Sequence[Accelerator], round_trip_s, block: Block, overheads: Overheads = OVERHEADS
) -> TokenTimes:
    """Seconds for each unit of work on each server.

    Parameters:
        accelerators: of each server; their nominal rates.
        round_trip_s: float[J], between orchestrator and server and back.
        block: of the model.
        overheads: of messages and blocks.

    Raises:
        InputError: no accelerators, not one round trip each, or seconds below 0.
    """
    trips = vector(round_trip_s, "round_trip_s")
    _known(accelerators)
    if trips.size != len(accelerators):
        raise InputError(
            f"holds {trips.size} numbers for {len(accelerators)} servers", "give one for each", field="round_trip_s"
        )
    for name, value in overheads._asdict().items():
        not_negative(value, name)
    flops = np.array([float(one.speed("flops_per_s", "nominal")) for one in accelerators])
    reading = np.array([float(one.speed("memory_bytes_per_s", "nominal")) for one in accelerators])
    nothing = np.zeros(trips.size)
    each = trips + overheads.message_s
    return TokenTimes(
        np.stack([each + overheads.first_message_s, nothing, each], axis=1),
        np.stack([nothing + overheads.block_s, block.flops_per_token / flops, block.bytes / reading], axis=1),
    )


@takes_records
def fleet_of(accelerators: Sequence[Accelerator], layers: int, block: Block, times: TokenTimes, usual) -> Fleet:
    """The servers as placement sees them: memory, and mean seconds of a job.

    Parameters:
        accelerators: of each of J servers.
        layers: blocks of the model.
        block, times: bytes of a block and of its cache for a job; seconds for each unit of work, of J servers.
        usual: float[3], the mean job's work: 1, tokens in, tokens out but the first.

    Raises:
        InputError: no accelerators, or times or work that do not go with them.
    """
    work = vector(usual, "usual")
    _known(accelerators)
    if work.size != times.compute_s.shape[1]:
        raise InputError(
            f"holds {work.size} numbers for {times.compute_s.shape[1]} kinds of work", "give one each", field="usual"
        )
    return Fleet(
        memory_bytes=whole_bytes([float(one.memory_bytes) for one in accelerators], "memory_bytes"),
        communication_s=times.communication_s @ work,
        compute_s=times.compute_s @ work,
        layers=layers,
        block_bytes=block.bytes,
        cache_bytes=block.cache_bytes,
    )


@takes_records
def servers_of(cluster: Cluster) -> tuple[list[Accelerator], np.ndarray | None]:
    """The accelerator of every server of a cluster, and their round trips in seconds, float64[J].

    Round trips are None where a group of hosts states none.
    """
    kinds, trips = [], []
    for group in cluster.groups:
        count = group.hosts * group.accelerators
        kinds += [group.accelerator] * count
        trips += [None if group.round_trip_s is None else float(group.round_trip_s)] * count
    return kinds, None if None in trips else np.array(trips)
