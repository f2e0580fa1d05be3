"""Prompt and output lengths of requests, and the model that is asked where a workload has several kinds."""

from abc import abstractmethod
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from workbench.records import Asked, Record
from workbench.workloads.cells import MAX_TOKENS
from workbench.workloads.generators.sides import AnySide, Weight

Length = Annotated[int, Field(ge=0, le=MAX_TOKENS)]


class Drawn(Record):
    """Lengths of n requests: `prompt_tokens`, `output_tokens` (int64), and the model of each where it was drawn too."""

    prompt_tokens: np.ndarray
    output_tokens: np.ndarray
    models: pl.Series | None = None


class LengthModel(Asked):
    """How long requests are."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Lengths of `count` requests."""


class Pair(LengthModel):
    """Two sides, independent or with a given rank correlation.

    Attributes:
        prompt, output: distributions of the two sides.
        rank_correlation: Spearman's correlation, made by a Gaussian copula.
    """

    kind: Literal["pair"] = "pair"
    prompt: AnySide
    output: AnySide
    rank_correlation: Annotated[float, Field(gt=-1, lt=1)] = 0.0

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        prompt, output = self.prompt.draw(count, rng), self.output.draw(count, rng)
        if self.rank_correlation:
            pearson = 2.0 * np.sin(np.pi / 6.0 * self.rank_correlation)
            first = rng.standard_normal(count)
            second = pearson * first + np.sqrt(1.0 - pearson**2) * rng.standard_normal(count)
            prompt, output = _by_rank(prompt, first), _by_rank(output, second)
        return Drawn(prompt_tokens=prompt, output_tokens=output)


class Kind(Asked):
    """One kind of request in a mixture.

    Attributes:
        weight: relative share. model: the model it asks.
        prompt, output: its lengths.
    """

    weight: Weight
    model: str
    prompt: AnySide
    output: AnySide


class Kinds(LengthModel):
    """A mixture of kinds of requests, each with lengths and a model of its own."""

    kind: Literal["kinds"] = "kinds"
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)]

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        weights = np.array([entry.weight for entry in self.kinds])
        which = rng.choice(weights.size, size=count, p=weights / weights.sum())
        prompt, output = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        for place, entry in enumerate(self.kinds):
            members = np.flatnonzero(which == place)
            prompt[members] = entry.prompt.draw(members.size, rng)
            output[members] = entry.output.draw(members.size, rng)
        models = pl.Series("model", [entry.model for entry in self.kinds])[which.tolist()]
        return Drawn(prompt_tokens=prompt, output_tokens=output, models=models)


class Empirical(LengthModel):
    """Lengths drawn with replacement from those of a trace.

    Attributes:
        prompt_tokens, output_tokens: lengths of the trace's requests.
        joint: draw both sides of the same request (keeps their correlation), or each side on its own.
    """

    kind: Literal["empirical"] = "empirical"
    prompt_tokens: Annotated[tuple[Length, ...], Field(min_length=1)]
    output_tokens: Annotated[tuple[Length, ...], Field(min_length=1)]
    joint: bool = True

    @model_validator(mode="after")
    def _of_the_same_requests(self):
        if self.joint and len(self.prompt_tokens) != len(self.output_tokens):
            raise ValueError(
                "prompt_tokens and output_tokens must be equally long; pass joint=False to draw them apart"
            )
        return self

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        places = rng.integers(len(self.prompt_tokens), size=count)
        others = places if self.joint else rng.integers(len(self.output_tokens), size=count)
        return Drawn(
            prompt_tokens=np.array(self.prompt_tokens, dtype=np.int64)[places],
            output_tokens=np.array(self.output_tokens, dtype=np.int64)[others],
        )


def lengths_of(trace: Any, joint: bool = True) -> Empirical:
    """The lengths of a trace's requests, to draw from.

    Parameters:
        trace: anything with a `requests` table.
        joint: see `Empirical`.
    """
    prompt, output = (tuple(trace.requests[name].to_list()) for name in ("prompt_tokens", "output_tokens"))
    return Empirical(prompt_tokens=prompt, output_tokens=output, joint=joint)


def fixed_lengths(prompt_tokens: int, output_tokens: int) -> Pair:
    """Every request alike."""
    return Pair(prompt={"kind": "fixed", "tokens": prompt_tokens}, output={"kind": "fixed", "tokens": output_tokens})


Lengths = Annotated[Pair | Kinds | Empirical, Field(discriminator="kind")]


def _by_rank(values: np.ndarray, key: np.ndarray) -> np.ndarray:
    """The values in the order of the key's ranks."""
    ranks = np.empty(key.size, dtype=np.int64)
    ranks[np.argsort(key, kind="stable")] = np.arange(key.size)
    return np.sort(values)[ranks]
