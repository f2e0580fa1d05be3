"""Aegaeon's synthetic market: models by number, each asked at the same rate, with lengths as in its traces."""

import math

from workbench.errors import UnknownName
from workbench.pooling.model.facts import facts
from workbench.pooling.model.served import PoolModel, pool_model
from workbench.profiles import Accelerator
from workbench.records import whole
from workbench.workloads import Hump, Lognormals, Pair, Poisson, Trace, market
from workbench.workloads.generators.streams import Seed

GENERATORS = {"artifact": True, "poisson": False}
"""Name -> whether a model's requests end with int(rate x duration), as in the artifact; see
`workbench.workloads.Poisson`."""


def market_models(
    count: int,
    accelerator: str | Accelerator = "h800-80gb-sxm",
    variant: str = "paper",
    steps: str = "aegaeon",
) -> dict[str, PoolModel]:
    """Models of the artifact's mix, by name.

    Parameters:
        count: how many, one or more.
        accelerator, steps: see `pool_model`.
        variant: "paper", "artifact" or "simulator": whose sizes and step times.

    Raises:
        UnknownName: no such variant, accelerator or steps.

    >>> [model.name for model in market_models(10).values()][5:8]
    ['qwen2.5-7b', 'yi-1.5-9b', 'yi-1.5-9b']
    """
    known = facts()
    if variant not in known.variants:
        raise UnknownName("variant", variant, known.variants)
    mix, count = known.mix.models, whole(count, "count", 1)
    kinds = {name: pool_model(name, accelerator, 1, steps, known.variants[variant]) for name in dict.fromkeys(mix)}
    return {name: kinds[mix[number % len(mix)]] for number, name in enumerate(names(count))}


def names(count: int) -> list[str]:
    """Of so many models, as `workbench.workloads.zipf_rates` names them."""
    digits = max(3, len(str(count)))
    return [f"model-{place:0{digits}d}" for place in range(1, count + 1)]


def market_lengths(prompt_factor: float = 1.0, output_factor: float = 1.0) -> Pair:
    """Lengths as in the artifact's traces, one side times a factor (2 is the paper's ix2, or ox2)."""
    known = facts().lengths

    def side(mean: float, median: float, least: float, most: float, factor: float) -> Lognormals:
        hump = Hump(ln_mean=math.log(median * factor), ln_std=math.sqrt(2 * math.log(mean / median)))
        return Lognormals(humps=(hump,), least=round(least), most=round(most * factor))

    values = {name: float(value) for name, value in known}
    return Pair(
        prompt=side(values["prompt_mean"], values["prompt_median"], 1, values["prompt_most"], prompt_factor),
        output=side(
            values["output_mean"], values["output_median"], values["output_least"], values["output_most"], output_factor
        ),
    )


def market_trace(
    count: int,
    rate_per_s: float,
    duration_s: float,
    *,
    generator: str = "artifact",
    prompt_factor: float = 1.0,
    output_factor: float = 1.0,
    seed: Seed = 0,
) -> Trace:
    """Requests to so many models, each a Poisson process of its own.

    Parameters:
        count, rate_per_s, duration_s: models, requests of each a second, and for how long.
        generator: "artifact" or "poisson"; by the artifact's the realised rate is below the nominal one.
        prompt_factor, output_factor: on lengths.
        seed: of everything that is drawn.

    Raises:
        UnknownName: no such generator. InputError: a number that cannot be.
    """
    if generator not in GENERATORS:
        raise UnknownName("generator", generator, GENERATORS)
    process = Poisson(rate_per_s=rate_per_s, at_most_nominal=GENERATORS[generator])
    lengths = market_lengths(prompt_factor, output_factor)
    return market(dict.fromkeys(names(count), process), lengths, duration_s=duration_s, seed=seed)
