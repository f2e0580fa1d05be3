"""What a real pool is asked to do: models of different shapes in one process, prompts, and how long turns last."""

from typing import Literal, NamedTuple

from workbench.executor.transformer import Shape

Fault = Literal["", "weights", "page", "rounded"]
"""What is planted: two blocks of a model's weights swapped after one switch, one block of one request's KV cache lost
on its way back from the host once, or one matrix of a model rounded to bfloat16 in the host's cache."""

Clock = Literal["wall", "processor"]
"""*wall*: seconds that pass; *processor*: seconds for which the process's threads computed or copied. On an idle
machine without a GPU, and with nothing fetched ahead, the two are the same; on a busy one the second leaves out what
other programs took, and says what the machine would do by itself."""

BLOCK_TOKENS = 16
"""Tokens of a KV block, as in Aegaeon's artifact."""


class Kind(NamedTuple):
    """One model: its shape, and the seed that its weights are made from."""

    shape: Shape
    seed: int


class Prompt(NamedTuple):
    """A request: its model by number, the tokens of its prompt, and how many tokens it is to be answered with."""

    model: int
    tokens: tuple[int, ...]
    output: int


class ByChance(NamedTuple):
    """Turns of a random number of steps, 1 to `most`, drawn from a seed."""

    most: int
    seed: int


class ByQuota(NamedTuple):
    """Turns by Algorithm 2, from step and switch times that were measured before and are measured on.

    The promise and the longest quota follow from them so that the run has the dimensionless numbers that are wanted.

    Attributes:
        steps_share: S, the sum of 1/n that the first measured steps have.
        switches_share: c / (min n Q) that the first measured switches have; with `steps_share` it makes α.
        floor: the least pace.
        rounds: that are run by quotas.
    """

    steps_share: float
    switches_share: float
    floor: float
    rounds: int


class Asked(NamedTuple):
    """A whole run.

    Attributes:
        kinds: the models.
        prompts: requests, those of a model decode as one batch.
        turns: how long turns are.
        prefetch: whether the next model is copied by a side thread while the present one decodes.
        device: "cpu" or a CUDA device.
        clock: by which steps, switches and turns are measured.
        slab_bytes, slabs: the host's memory for KV caches.
        fault: planted, "" for none.
        keep: whether logits are kept and compared, and so computed by arithmetic that keeps the bits; else matrices are
            handed to the library as they are, which is faster where a batch has few requests.
    """

    kinds: tuple[Kind, ...]
    prompts: tuple[Prompt, ...]
    turns: ByChance | ByQuota
    prefetch: bool
    device: str
    clock: Clock
    slab_bytes: int
    slabs: int
    fault: Fault = ""
    keep: bool = True


class Turn(NamedTuple):
    """One turn as it was, instants of the run's clock.

    Attributes:
        number, model: the round, -1 for the warm ones; and whose turn.
        left_s: when the last step before it ended (of another turn, or of a prompt).
        ready_s: when its first step began: weights and KV caches are there.
        end_s: when its last step ended.
        steps, requests: how many steps, of how many requests at first.
        fetched: whether the weights had been copied ahead by the side thread.
        load_s, moved_s: seconds of waiting for weights, and of moving KV caches in before it and out behind it.
        quota_s, pace: what the round gave it; NaN where turns go by chance.
    """

    number: int
    model: int
    left_s: float
    ready_s: float
    end_s: float
    steps: int
    requests: int
    fetched: bool
    load_s: float
    moved_s: float
    quota_s: float
    pace: float


class Turned(NamedTuple):
    """What the executor hands in.

    Attributes:
        turns: all of them, in order.
        tokens: of each request.
        logits: float32 arrays (tokens, vocabulary) of each request; empty where they were not kept.
        token_s: instants of each request's tokens.
        tbt_s, quota_s: that quotas aimed at; NaN by chance.
        slabs: bytes in use and bytes of slabs of each shape at the moment when most slabs were taken, by block bytes.
        left_bytes: of KV blocks that are not free at the end.
        same_bits: for each model whether this machine keeps the bits of invariant arithmetic, where logits are kept.
        busy_s, wall_s: processor time and time of the loop of turns.
    """

    turns: list[Turn]
    tokens: list[list[int]]
    logits: list
    token_s: list[list[float]]
    tbt_s: float
    quota_s: float
    slabs: dict[int, tuple[int, int]]
    left_bytes: int
    same_bits: list[bool]
    busy_s: float
    wall_s: float
