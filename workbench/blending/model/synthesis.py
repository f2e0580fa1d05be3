"""Mixes with a wanted density and sharing ratio: a compute source, MMLU for sharing, OpenVid for memory time.

The paper adds OpenVid until the density is met and MMLU until the sharing ratio is (§6.2, A.3); each changes the other,
so both are solved together, on the sums of the very requests that were drawn: a few hundred videos make nearly all of
the memory time, and no mean stands for them.
"""

from typing import NamedTuple

import numpy as np

from workbench.blending.model.costs import Costs
from workbench.blending.model.prompts import Pool
from workbench.blending.model.sources import AnySource, Drawn, source_named
from workbench.errors import UserError
from workbench.records import positive, share, whole

SHARER, HEAVY = "mmlu-like", "openvid-like"
FEWEST, MOST = 1_000, 2_000_000
ROOM = 1.6
"""Videos are drawn in this multiple of their expected number, so that sums and not means decide how many are taken."""


class NoSuchMix(UserError):
    """Sources of which no mix has the density and the sharing ratio that were asked for."""


class Mix(NamedTuple):
    """A pool with what it was asked to be and what it is.

    Attributes:
        pool: the requests, source after source.
        counts: requests of each source.
        density, sharing: of the pool, on the sums of its requests, at the rates of `costs`.
        scale: factor on the output lengths of the heavy source, which makes up for half a request too many or too few.
        costs: what the density was computed with.
    """

    pool: Pool
    counts: dict[str, int]
    density: float
    sharing: float
    scale: float
    costs: Costs


class _Side(NamedTuple):
    """One source's draws with running sums over its first n requests: float64[n + 1]."""

    source: AnySource
    drawn: Drawn
    compute: np.ndarray
    read: np.ndarray
    saved: np.ndarray


def mix(
    main: str | AnySource, density: float, sharing: float | None, requests: int, costs: Costs,
    rng: np.random.Generator, *, sharer: AnySource | None = None, heavy: AnySource | None = None,
    main_shared: int | None = None,
) -> Mix:  # fmt: skip
    """A pool of `requests` with a density and a sharing ratio.

    Parameters:
        main: the compute source: a length model or its name, or the name of a trace whose lengths are drawn.
        density: (1 - s) Σ Comp / Σ Mem of the whole pool, at the rates of `costs`.
        sharing: s, tokens that prefix hits can save over all prompt and output tokens; None for no request of the
            sharer, so that sharing is what comes out.
        requests: how many in all.
        costs: of model and accelerator; another model needs another mix.
        rng: draws the lengths.
        sharer, heavy: where sharing and memory time come from, by default MMLU and OpenVid.
        main_shared: tokens of the prefix that all requests of the compute source share, in place of its own number.

    Raises:
        NoSuchMix: the density and the sharing ratio do not lie between those of the sources.
    """
    density, requests = positive(density, "density"), whole(requests, "requests", FEWEST, MOST)
    if sharing is not None:
        sharing = share(sharing, "sharing")
    if main_shared is not None:
        whole(main_shared, "main_shared")
    named = source_named(main) if isinstance(main, str) else main
    sources = [named, sharer or source_named(SHARER), heavy or source_named(HEAVY)]
    if main_shared is not None:
        sources[0] = sources[0].sharing(main_shared)
    first, second = (_side(source, requests, rng) for source in sources[:2])
    third = _side(sources[2], _enough(first, second, sources[2], density, sharing, requests, costs, rng), rng)
    sides = (first, second, third)
    counts = _solve(sides, density, sharing, requests, costs)
    scale = _scale(sides, counts, density, costs)
    return _made(sides, counts, scale, costs)


def _side(source: AnySource, count: int, rng: np.random.Generator) -> _Side:
    drawn = source.draw(count, rng)
    prompt, output = drawn.own + float(source.shared), drawn.output.astype(float)
    seen = np.zeros(int(drawn.group.max(initial=0)) + 1, bool)
    again = np.ones(count)
    for group in range(min(seen.size, count)):
        again[np.argmax(drawn.group == group)] = 0.0
    parts = (prompt + output, prompt * output + output**2 / 2, again * source.shared)
    return _Side(source, drawn, *(np.concatenate([[0.0], np.cumsum(part)]) for part in parts))


def _enough(first, second, heavy, density, sharing, requests, costs, rng) -> int:
    """How many of the heavy source to draw: a multiple of what mean values ask for."""
    trial = _side(heavy, 2_000, rng)
    per = [(side.compute[-1] / n, side.read[-1] / n, side.saved[-1] / n)
           for side, n in ((first, requests), (second, requests), (trial, 2_000))]  # fmt: skip
    sharer = [0.0, 1.0, 0.0] if sharing is None else [saved - sharing * compute for compute, _, saved in per]
    balance = [(compute - saved) * costs.balance - density * read for compute, read, saved in per]
    rows = np.array([sharer, balance, [1.0, 1.0, 1.0]])
    wanted = np.linalg.solve(rows, [0.0, 0.0, float(requests)])
    if wanted.min() < 0:
        names = ", ".join(side.source.label for side in (first, second, trial))
        ratio = "" if sharing is None else f" and a sharing ratio of {sharing:g}"
        raise NoSuchMix(
            f"No mix of {names} has a density of {density:g}{ratio}; "
            "a mix lies between its sources: choose values between theirs."
        )
    return min(int(ROOM * wanted[2]) + 50, requests)


def _totals(sides, counts, costs: Costs) -> tuple[float, float]:
    """Density and sharing ratio of the first requests of each source."""
    compute = sum(side.compute[count] for side, count in zip(sides, counts, strict=True))
    read = sum(side.read[count] for side, count in zip(sides, counts, strict=True))
    saved = sum(side.saved[count] for side, count in zip(sides, counts, strict=True))
    return (compute - saved) * costs.balance / read, saved / compute


def _solve(sides, density: float, sharing: float | None, requests: int, costs: Costs) -> tuple[int, int, int]:
    """Counts whose sums come nearest: for each number of videos the sharer's by bisection, then the videos'."""

    def with_heavy(heavy: int) -> tuple[int, int, int]:
        low, high = 0, 0 if sharing is None else requests - heavy
        while low < high:
            middle = (low + high) // 2
            if _totals(sides, (requests - heavy - middle, middle, heavy), costs)[1] < sharing:
                low = middle + 1
            else:
                high = middle
        return requests - heavy - low, low, heavy

    low, high = 0, sides[2].compute.size - 1
    while low < high:
        middle = (low + high) // 2
        if _totals(sides, with_heavy(middle), costs)[0] > density:
            low = middle + 1
        else:
            high = middle
    near = (with_heavy(max(low - 1, 0)), with_heavy(low))
    return min(near, key=lambda counts: abs(np.log(_totals(sides, counts, costs)[0] / density)))


def _scale(sides, counts, density: float, costs: Costs) -> float:
    """The factor on the heavy source's outputs with which the density is exact."""
    own, output = (part[: counts[2]].astype(float) for part in sides[2].drawn[:2])
    prompt = own + sides[2].source.shared
    light, shared = (sides[0], sides[1]), sum(side.saved[n] for side, n in zip(sides, counts, strict=True))
    compute = sum(side.compute[n] for side, n in zip(light, counts[:2], strict=True)) + prompt.sum() - shared
    read = sum(side.read[n] for side, n in zip(light, counts[:2], strict=True))
    # (compute + k Σd) balance = density (read + k Σ p d + k^2 Σ d^2 / 2), the positive root
    a = density * (output**2).sum() / 2
    b = density * (prompt * output).sum() - costs.balance * output.sum()
    c = density * read - costs.balance * compute
    return float((-b + np.sqrt(b * b - 4 * a * c)) / (2 * a)) if counts[2] else 1.0


def _made(sides, counts, scale: float, costs: Costs) -> Mix:
    prompt, output, source, known, shared, group = [], [], [], [], [], []
    for place, (side, count) in enumerate(zip(sides, counts, strict=True)):
        drawn = side.drawn
        lengths = drawn.output[:count]
        if place == len(sides) - 1:
            lengths = np.maximum(np.rint(lengths * scale), 1).astype(np.int64)
        prompt.append(drawn.own[:count] + side.source.shared)
        output.append(lengths)
        source.append(np.full(count, place))
        known.append(np.full(count, side.source.known))
        shared.append(np.full(count, side.source.shared))
        group.append(drawn.group[:count])
    prompt, output, source, known, shared, group = map(np.concatenate, (prompt, output, source, known, shared, group))
    pool = shared_prefix_pool(
        prompt, output, shared, source * 1_000_000 + group, known, source, tuple(s.source.label for s in sides)
    )
    reads = float((prompt * output + output.astype(float) ** 2 / 2).sum())
    saved = sum(side.saved[count] for side, count in zip(sides, counts, strict=True))
    names = [side.source.label for side in sides]
    return Mix(
        pool, dict(zip(names, counts, strict=True)), (pool.tokens - saved) * costs.balance / reads,
        saved / pool.tokens, scale, costs,
    )  # fmt: skip


def shared_prefix_pool(prompt, output, shared, group, known, source, sources: tuple[str, ...]) -> Pool:
    """A pool in which the requests of a group begin with the same tokens, and the rest is their own.

    Parameters:
        prompt, output: tokens. shared: prompt tokens shared in the group, 0 for none. group: int64[n].
        known, source, sources: see `Pool`.
    """
    two = shared > 0
    start = np.concatenate([[0], np.cumsum(1 + two)]).astype(np.int64)
    symbols, tokens = np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
    own = start[1:] - 1
    symbols[own], tokens[own] = np.arange(prompt.size), prompt - shared
    symbols[start[:-1][two]], tokens[start[:-1][two]] = -1 - group[two], shared[two]
    return Pool(
        prompt.astype(np.int64),
        output.astype(np.int64),
        source.astype(np.int64),
        sources,
        known,
        symbols,
        start,
        tokens,
    )
