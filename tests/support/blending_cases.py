"""Small offline pools with shared prefixes, and plain counts over them."""

import numpy as np

from workbench.blending.model.costs import Costs
from workbench.blending.model.prompts import Pool, pool_of_tokens
from workbench.profiles import accelerator, model


def llama_costs(**options) -> Costs:
    """Llama-3-8B on an A100 with the 60 GB of BlendServe Fig 6."""
    costs = Costs(
        flops_per_token=2 * 8_030_261_248, pair_flops=4 * 4096 * 32, kv_bytes_per_token=131_072,
        weight_bytes=16_060_522_496, flops_per_s=312e12, memory_bytes_per_s=2.039e12, pool_bytes=60e9,
    )  # fmt: skip
    return costs.model_copy(update=options)


def looked_up() -> Costs:
    """The same from the profiles' own records, for those who build it themselves to compare with."""
    from workbench.blending.model.costs import costs_of

    return costs_of(model("llama-3-8b"), accelerator("a100-80gb-sxm"), pool_bytes=60e9)


def small_costs(pool_tokens: int) -> Costs:
    """A pool of so many KV tokens; a token computes as long as four are read."""
    return Costs(
        flops_per_token=4.0, pair_flops=0.01, kv_bytes_per_token=1.0, weight_bytes=300.0, flops_per_s=1e3,
        memory_bytes_per_s=1e3, pool_bytes=float(pool_tokens),
    )  # fmt: skip


def random_pool(rng: np.random.Generator, requests: int, alphabet: int = 3, longest: int = 8, output: int = 12) -> Pool:
    """Prompts over few letters, so that they share prefixes, equal each other and end inside each other."""
    prompts = [rng.integers(alphabet, size=rng.integers(1, longest + 1)).tolist() for _ in range(requests)]
    return pool_of_tokens(prompts, 1 + rng.geometric(2 / output, requests))


def trie_edges(prompts: list[list[int]]) -> int:
    """Tokens on the edges of a trie, by counting distinct prefixes."""
    return len({tuple(prompt[:end]) for prompt in prompts for end in range(1, len(prompt) + 1)})


def prompts_of(pool: Pool) -> list[list[int]]:
    """Every prompt of a pool as a list of symbols."""
    return [pool.symbols[a:b].tolist() for a, b in zip(pool.start[:-1], pool.start[1:], strict=True)]
