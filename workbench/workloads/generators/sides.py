"""How long one side of a request is: fixed, a mixture of lognormals, or a table of quantiles."""

from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from workbench.errors import UserError
from workbench.records import Asked, NotNegative
from workbench.workloads.cells import MAX_TOKENS

_TRIES = 200
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Weight = Annotated[float, Field(ge=1e-9, le=1e9)]


class Side(Asked):
    """A distribution of token counts, at least one."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` independent lengths (int64)."""


class Fixed(Side):
    """Always the same length."""

    kind: Literal["fixed"] = "fixed"
    tokens: Tokens

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.full(count, self.tokens, dtype=np.int64)


class Hump(Asked):
    """One lognormal of a mixture: its weight, and mean and standard deviation of the natural logarithm."""

    weight: Weight = 1.0
    ln_mean: Annotated[float, Field(ge=-100, le=100)]
    ln_std: Annotated[float, Field(ge=0, le=100)]


class Lognormals(Side):
    """A mixture of lognormals, redrawn where a length falls outside the bounds.

    Attributes:
        humps: the components.
        least, most: bounds; engines truncate, so an unbounded tail fits no trace.
    """

    kind: Literal["lognormals"] = "lognormals"
    humps: Annotated[tuple[Hump, ...], Field(min_length=1)]
    least: Tokens = 1
    most: Tokens = 1_000_000

    @model_validator(mode="after")
    def _ordered(self):
        if self.least > self.most:
            raise ValueError("least must not exceed most; raise most")
        return self

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        weights = np.array([hump.weight for hump in self.humps])
        which = rng.choice(weights.size, size=count, p=weights / weights.sum())
        means = np.array([hump.ln_mean for hump in self.humps])[which]
        stds = np.array([hump.ln_std for hump in self.humps])[which]
        tokens, open_places = np.zeros(count, dtype=np.int64), np.arange(count)
        for _ in range(_TRIES):
            with np.errstate(over="ignore"):
                drawn = np.rint(np.exp(rng.normal(means[open_places], stds[open_places])))
            inside = (drawn >= self.least) & (drawn <= self.most)
            tokens[open_places[inside]] = drawn[inside].astype(np.int64)
            open_places = open_places[~inside]
            if not open_places.size:
                return tokens
        raise UserError(f"Hardly any length falls between {self.least} and {self.most}; widen the bounds.")


class Quantiles(Side):
    """A table of quantiles, interpolated linearly in the logarithm between them.

    Draws are stratified: of n draws one comes from each n-th part of the distribution, in random order, so that their
    quantiles are those of the table and hardly vary between draws.

    Attributes:
        shares: cumulative shares from 0 to 1, ascending.
        tokens: the length at each share, not descending.
    """

    kind: Literal["quantiles"] = "quantiles"
    shares: Annotated[tuple[NotNegative, ...], Field(min_length=2)]
    tokens: Annotated[tuple[Annotated[float, Field(gt=0, le=MAX_TOKENS)], ...], Field(min_length=2)]

    @model_validator(mode="after")
    def _table(self):
        if len(self.shares) != len(self.tokens) or self.shares[0] != 0.0 or self.shares[-1] != 1.0:
            raise ValueError("shares must run from 0 to 1 and be as many as tokens")
        if np.any(np.diff(self.shares) <= 0) or np.any(np.diff(self.tokens) < 0):
            raise ValueError("shares must ascend and tokens must not descend")
        return self

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        shares = (rng.permutation(count) + rng.random(count)) / max(count, 1)
        logs = np.interp(shares, self.shares, np.log(self.tokens))
        return np.maximum(np.rint(np.exp(logs)), 1).astype(np.int64)


AnySide = Annotated[Fixed | Lognormals | Quantiles, Field(discriminator="kind")]
