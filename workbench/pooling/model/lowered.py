"""What both backends of a pool take and give: plain arrays in SI units, time 0 at the first arrival."""

from typing import NamedTuple

import numpy as np

INSIDE, DONE, REJECTED, FAILED = 0, 1, 2, 3
"""What `Outcome.status` holds; failed requests had no first token when they were given up."""

STATUS = {INSIDE: "inside", DONE: "done", REJECTED: "rejected", FAILED: "failed"}

COLD, PARTLY, HIDDEN = 0, 1, 2
"""How a switch found its model: not on the GPU, on its way there, there (`SWITCH_COLUMNS`, kind)."""

SWITCH_COLUMNS = ("start_s", "end_s", "instance", "model", "kind", "bytes")
TURN_COLUMNS = ("start_s", "ready_s", "end_s", "instance", "model", "quota_s", "requests", "tokens")
ROUND_COLUMNS = ("time_s", "instance", "batches", "pace", "switches_s", "quotas_s")
HOST_COLUMNS = ("time_s", "node", "request", "model", "blocks")


class Requests(NamedTuple):
    """What arrives, n requests sorted by (arrival, index).

    Attributes:
        arrival_s: float64[n], 0 or more.
        prompt: int64[n] tokens, at least 1.
        output: int64[n] tokens, 0 or more.
        model: int64[n], index of the model asked for.
        believed: int64[n], output tokens that admission control believes in.
        refused: int64[n], 1 where the request is turned away at the door, whatever admission control would say.
    """

    arrival_s: np.ndarray
    prompt: np.ndarray
    output: np.ndarray
    model: np.ndarray
    believed: np.ndarray
    refused: np.ndarray


class Models(NamedTuple):
    """What is served, M models.

    Attributes:
        weight_bytes: float64[M].
        load_bytes_per_s: float64[M], rate at which weights come from host memory to a GPU that has the way to itself.
        assumed_s: float64[M], time of a switch that the schedulers reckon with.
        home: int64[M], the node whose instances serve it.
        place: int64[M], the instance that holds it where models stay, -1 for none; not read by other systems.
        owner: int64[M], whose model it is.
        owner_most: int64[W], most requests of each of the W owners that may be inside.
        block_bytes: int64[M], of a KV block.
        capacity: int64[M], KV blocks of an instance that holds it.
        after: int64[M, M], 1 where the model of the column may be prefetched while that of the row is resident.
        prefill: float64[M, 4], seconds of a prompt: a constant, the larger of a part per token and a least time, and a
            part per squared token: (constant, per token, per squared token, least).
        decode: float64[M, 3], seconds of a decode step: constant, per token of context, per request.
    """

    weight_bytes: np.ndarray
    load_bytes_per_s: np.ndarray
    assumed_s: np.ndarray
    home: np.ndarray
    place: np.ndarray
    owner: np.ndarray
    owner_most: np.ndarray
    block_bytes: np.ndarray
    capacity: np.ndarray
    after: np.ndarray
    prefill: np.ndarray
    decode: np.ndarray


class Pool(NamedTuple):
    """The GPUs, N instances of K nodes, node after node.

    Attributes:
        node: int64[N], ascending from 0.
        decodes: int64[N], 1 for those that decode, 0 for those that process prompts; not read by systems that serve
            whole requests.
        link_bytes_per_s: between a GPU and its host, in each direction, for KV caches.
        host_bytes_per_s: of all transfers of a node together, or infinity.
        kv_bytes: of host memory of a node for KV caches, which admission control hands out, or infinity.
        cache_bytes: of host memory of a node for weights, or infinity.
        miss_bytes_per_s: rate at which weights come that are not in host memory.
    """

    node: np.ndarray
    decodes: np.ndarray
    link_bytes_per_s: float
    host_bytes_per_s: float
    kv_bytes: float
    cache_bytes: float
    miss_bytes_per_s: float


class Rules(NamedTuple):
    """How the pool is run; names stand in `workbench.pooling.policy.names`.

    Attributes:
        system: number of the way in which models share instances.
        group_rule, group_limit: when a prefill group, or a run of whole requests, is full.
        load_rule: what makes a prefill instance the least loaded.
        most_s: Q, the longest quota of a turn.
        floor: the least pace.
        tbt_s: time between tokens that the quotas aim at.
        blind: 1 where the scheduler takes -1 for the requests of a batch, as the artifact does.
        clock: when a turn's quota begins to run.
        prefetch: number of the prefetch rule.
        overlap: 1 where KV caches move while others load, leave or compute; 0 where each waits for the one before.
        least_switch_s: what a switch takes at least.
        give_up_s: a request without first token so long after its arrival fails; infinity for never.
        buffer_s: a batch whose requests are all so far ahead of their reader pauses; infinity for never.
        block_tokens: tokens of a KV block.
        promise_ttft_s, promise_tbt_s: what admission control promises.
        admission: number of the rule by which requests are admitted.
        margin: factor on believed output tokens there.
        owner_from: requests inside from which on `Models.owner_most` counts.
    """

    system: int
    group_rule: int
    group_limit: int
    load_rule: int
    most_s: float
    floor: float
    tbt_s: float
    blind: int
    clock: int
    prefetch: int
    overlap: int
    least_switch_s: float
    give_up_s: float
    buffer_s: float
    block_tokens: int
    promise_ttft_s: float
    promise_tbt_s: float
    admission: int
    margin: float
    owner_from: int


class Lowered(NamedTuple):
    """A whole run as arrays; it ends when every request is done, failed or rejected."""

    requests: Requests
    models: Models
    pool: Pool
    rules: Rules

    @property
    def until_s(self) -> float:
        """Where the clock stops: never."""
        return float("inf")


class Outcome(NamedTuple):
    """What happened.

    Attributes:
        status: int8[n], see above.
        first_token_s, finish_s: float64[n] instants, NaN where there was none.
        wait_s: float64[n] from arrival to the start of the prompt, NaN where there was none.
        made: int64[n] tokens emitted.
        prefill_instance, decode_instance: int64[n], -1 for none; the same for systems that serve whole requests.
        prefill_s, decode_s: float64[n], seconds in steps: of the prompt, of decoding.
        moved_s: float64[n], seconds in which its KV cache was on the way, between GPU and host.
        waited_s: float64[n], seconds of its turns, its model being there, in which its KV cache was not.
        token_s: float64, times of all tokens, request after request.
        token_at: int64[n + 1], where those of each request begin.
        busy_s, switching_s: float64[N], seconds in steps and in switches.
        switches, turns, rounds, host: float64 tables with the columns named above, in the order in which their rows
            ended or happened. Blocks of `host` are positive when they come to the host and negative when they are free.
    """

    status: np.ndarray
    first_token_s: np.ndarray
    finish_s: np.ndarray
    wait_s: np.ndarray
    made: np.ndarray
    prefill_instance: np.ndarray
    decode_instance: np.ndarray
    prefill_s: np.ndarray
    decode_s: np.ndarray
    moved_s: np.ndarray
    waited_s: np.ndarray
    token_s: np.ndarray
    token_at: np.ndarray
    busy_s: np.ndarray
    switching_s: np.ndarray
    switches: np.ndarray
    turns: np.ndarray
    rounds: np.ndarray
    host: np.ndarray
