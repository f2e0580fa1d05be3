"""Small offline jobs token by token, for a model that really serves them, and the orders in which it does."""

from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.layout import Order
from workbench.blending.model.costs import Costs
from workbench.blending.model.density import Density
from workbench.blending.model.estimating import Estimates, estimate
from workbench.blending.model.fitting import PartCosts
from workbench.blending.model.ordering import BALANCE, DFS, GROUPS, blended, order_of, plain
from workbench.blending.model.prompts import Pool, pool_of_tokens
from workbench.blending.model.transforming import transform
from workbench.blending.model.tree import Tree, tree_of

BLEND = "blend"
ORDERS = (DFS, BALANCE, GROUPS, BLEND)


class Mixture(NamedTuple):
    """A mix of short answers with shared prefixes and of long answers without.

    Attributes:
        groups, members: groups that share a prefix, and requests of each. shared, own: their prompt tokens.
        answer: output tokens of each of them.
        writers: requests that write long answers. prompt: their prompt tokens. least, most: their output tokens.
    """

    groups: int
    members: int
    writers: int
    shared: int = 128
    own: int = 256
    answer: int = 10
    prompt: int = 64
    least: int = 200
    most: int = 300


class SmallJob(NamedTuple):
    """Requests and all that is known of them.

    Attributes:
        prompts, answers: their tokens. An answer is drawn in advance: whatever the model would say, every order then
            works on the same text, and no text repeats itself.
        pool, tree, estimates: the same as a pool, its prefix tree, and output lengths, all of them known.
    """

    prompts: tuple[tuple[int, ...], ...]
    answers: tuple[tuple[int, ...], ...]
    pool: Pool
    tree: Tree
    estimates: Estimates


def small_job(mixture: Mixture, vocabulary: int, rng: np.random.Generator) -> SmallJob:
    """Draw the tokens of a mix, one kind of request behind the other; how long each answer becomes is known.

    Parameters:
        vocabulary: tokens are drawn from 0 to this, less one.
        rng: draws tokens and lengths.
    """

    def text(tokens: int) -> tuple[int, ...]:
        return tuple(rng.integers(vocabulary, size=tokens).tolist())

    made = [
        (prefix + text(mixture.own), mixture.answer)
        for prefix in [text(mixture.shared) for _ in range(mixture.groups)]
        for _ in range(mixture.members)
    ]
    lengths = rng.integers(mixture.least, mixture.most + 1, mixture.writers).tolist()
    made += [(text(mixture.prompt), length) for length in lengths]
    prompts, output = zip(*made, strict=True)
    answers = tuple(map(text, output))
    pool = pool_of_tokens(prompts, output)
    tree = tree_of(pool)
    return SmallJob(prompts, answers, pool, tree, estimate(pool, tree, "oracle"))


def costs_from(parts: PartCosts, job: SmallJob, pool_tokens: int) -> Costs:
    """Costs of a token and of a KV token as densities count them.

    Attention is spread over prompt tokens, each computed once; what a decode takes is spread over what it reads.
    """
    prompt, output, tree = job.pool.prompt.astype(float), job.pool.output.astype(float), job.tree
    reads = float((prompt * output + output**2 / 2).sum())
    kv_token_s = parts.read_s + parts.decode_s * float(output.sum()) / reads
    pairs = float((tree.depth**2 - (tree.depth - tree.tokens) ** 2).sum())
    token_s = parts.token_s + parts.pair_s * pairs / tree.edge_tokens
    return Costs(
        flops_per_token=1.0, pair_flops=0.0, kv_bytes_per_token=1.0, weight_bytes=0.0, flops_per_s=1 / token_s,
        memory_bytes_per_s=1 / kv_token_s, pool_bytes=float(pool_tokens),
    )  # fmt: skip


def ordered(job: SmallJob, name: str, costs: Costs, rng: np.random.Generator) -> tuple[Order, str]:
    """A job's requests in an order, and how it is scanned: what `serve` and `steps_of` take.

    Parameters:
        name: one of `ORDERS`; "blend" scans the transformed tree from both ends with density feedback.
        rng: draws the random order.
    """
    pool, tree, known = job.pool, job.tree, job.estimates
    if name == BLEND:
        about = Density(length_biased=True)
        moved = transform(pool, tree, known, costs, about=about)
        return blended(moved, pool, tree, known, costs, about), "feedback"
    return plain(order_of(pool, tree, known, name, rng)), "single"
