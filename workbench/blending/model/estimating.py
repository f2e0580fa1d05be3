"""Output lengths as a scheduler knows them: sampled, set beforehand, or all known."""

from typing import NamedTuple

import numpy as np

from workbench.blending.kernels.estimates import subtree_estimates
from workbench.blending.model.prompts import Pool
from workbench.blending.model.tree import Tree
from workbench.errors import InputError, UnknownName

SUBTREE, TAG, ORACLE = "subtree", "tag", "oracle"
WAYS = (SUBTREE, TAG, ORACLE)


class Estimates(NamedTuple):
    """Estimated output tokens and their mean squares, float64[n]; whose length a warm-up has shown, bool[n]."""

    output: np.ndarray
    square: np.ndarray
    sampled: np.ndarray


def estimate(
    pool: Pool, tree: Tree, way: str = SUBTREE, share: float = 0.01, rng: np.random.Generator | None = None,
    *, known: bool = True,
) -> Estimates:  # fmt: skip
    """Output lengths as they are estimated (BlendServe §5.1).

    Parameters:
        pool, tree: the requests.
        way: "subtree" (mean of the sampled requests that share most of the prefix), "tag" (mean of those of the same
            source), "oracle" (the true lengths).
        share: of requests that a warm-up runs to their end; at least one is.
        rng: draws the sample.
        known: whether lengths that are set beforehand are known, as those of videos.

    A sampled request's length is known exactly; its run in the warm-up costs nothing more, its answer is final.

    Raises:
        InputError: a share outside (0, 1]. UnknownName: another way.
    """
    if way not in WAYS:
        raise UnknownName("way of estimating", way, WAYS)
    lengths = pool.output.astype(float)
    if way == ORACLE:
        return Estimates(lengths, lengths**2, np.zeros(pool.size, bool))
    if not 0 < share <= 1:
        raise InputError(f"is {share!r}", "give a share above 0 and up to 1", field="share")
    rng = rng or np.random.default_rng(0)
    sampled = rng.random(pool.size) < share
    told = pool.known if known else np.zeros(pool.size, bool)
    if not (sampled & ~told).any():
        unknown = np.flatnonzero(~told)
        sampled[unknown[rng.integers(unknown.size, size=min(unknown.size, 1))]] = True
    if way == TAG:
        return _by_tag(pool, sampled, told)
    output, square = np.empty(pool.size), np.empty(pool.size)
    subtree_estimates(tree.parent, tree.request, pool.output, sampled, told, output, square)
    return Estimates(output, square, sampled)


def _by_tag(pool: Pool, sampled: np.ndarray, told: np.ndarray) -> Estimates:
    """Means of each source's sampled requests; of all of them where a source has none."""
    lengths = pool.output.astype(float)
    output, square = lengths.copy(), lengths**2
    shown = sampled & ~told
    for source in range(len(pool.sources)):
        own = pool.source == source
        basis = shown & own if (shown & own).any() else shown
        hidden = own & ~sampled & ~told
        output[hidden], square[hidden] = lengths[basis].mean(), (lengths[basis] ** 2).mean()
    return Estimates(output, square, sampled)
