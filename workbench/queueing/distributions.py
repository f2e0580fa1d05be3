"""How long gaps and services are: distributions by mean and squared coefficient of variation, with their moments."""

import math
from abc import abstractmethod
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from workbench.errors import InputError, UserError
from workbench.queueing.checking import not_negative, positive, vector
from workbench.workloads.asked import Asked


def _field(check):
    return BeforeValidator(lambda value, info: check(value, info.field_name))


def _above_one(value: float, name: str) -> float:
    if (number := positive(value, name)) < 1:
        raise InputError(f"is {number:g}", "give 1 or more, or take Gamma, which also varies less", field=name)
    return number


def _values(values, name: str) -> np.ndarray:
    array = vector(values, name).copy()
    if not array.any():
        raise InputError("holds zeros only", "give at least one value above 0", field=name)
    array.flags.writeable = False
    return array


Positive = Annotated[float, _field(positive)]
NotNegative = Annotated[float, _field(not_negative)]


class Distribution(Asked):
    """A distribution of times above 0, in seconds.

    Every kind tells its `mean_s`, its `scv` (squared coefficient of variation, variance over mean squared), `moment(k)`
    (E[X^k] in s^k) and draws samples.
    """

    @property
    def label(self) -> str:
        """What it is called in the notation of queues."""
        return type(self).__name__.lower()

    @abstractmethod
    def moment(self, order: int) -> float:
        """E[X^order] for order 1, 2 or 3."""

    @abstractmethod
    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """`count` independent samples in seconds."""


class Deterministic(Distribution):
    """Always the same; the D of M/D/1."""

    kind: Literal["deterministic"] = "deterministic"
    mean_s: Positive

    @property
    def scv(self) -> float:
        """0."""
        return 0.0

    def moment(self, order: int) -> float:
        return self.mean_s**order

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.full(count, self.mean_s)


class Exponential(Distribution):
    """Memoryless; the M of M/M/1. As a gap between arrivals it makes them Poisson."""

    kind: Literal["exponential"] = "exponential"
    mean_s: Positive

    @property
    def scv(self) -> float:
        """1."""
        return 1.0

    def moment(self, order: int) -> float:
        return math.factorial(order) * self.mean_s**order

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_exponential(count) * self.mean_s


class Gamma(Distribution):
    """Gamma with shape 1/SCV: below 1 smoother than exponential (Erlang-k has an SCV of 1/k), above 1 burstier."""

    kind: Literal["gamma"] = "gamma"
    mean_s: Positive
    scv: Positive

    def moment(self, order: int) -> float:
        return self.mean_s**order * math.prod(1 + k * self.scv for k in range(order))

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_gamma(1 / self.scv, count) * (self.mean_s * self.scv)


class Uniform(Distribution):
    """Every value between two bounds alike."""

    kind: Literal["uniform"] = "uniform"
    low_s: NotNegative
    high_s: Positive

    @model_validator(mode="after")
    def _ordered(self):
        if self.low_s > self.high_s:
            raise InputError(f"is {self.high_s:g}, below low_s", "swap the bounds", field="high_s")
        return self

    @property
    def mean_s(self) -> float:
        """Middle of the bounds."""
        return self.moment(1)

    @property
    def scv(self) -> float:
        """At most 1/3."""
        return self.moment(2) / self.moment(1) ** 2 - 1

    def moment(self, order: int) -> float:
        n = order + 1
        return sum(self.low_s**k * self.high_s ** (order - k) for k in range(n)) / n

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(self.low_s, self.high_s, count)


class Lognormal(Distribution):
    """A long right tail, as output lengths of language models have it."""

    kind: Literal["lognormal"] = "lognormal"
    mean_s: Positive
    scv: Positive

    def moment(self, order: int) -> float:
        return self.mean_s**order * (1 + self.scv) ** (order * (order - 1) / 2)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        variance = math.log1p(self.scv)
        return self.mean_s * np.exp(rng.standard_normal(count) * math.sqrt(variance) - variance / 2)


class Hyperexponential(Distribution):
    """One of two exponentials, many short and few long, each contributing half of the mean (balanced means)."""

    kind: Literal["hyperexponential"] = "hyperexponential"
    mean_s: Positive
    scv: Annotated[float, _field(_above_one)]

    @property
    def short_share(self) -> float:
        """Probability of the shorter exponential."""
        return (1 + math.sqrt((self.scv - 1) / (self.scv + 1))) / 2

    def moment(self, order: int) -> float:
        p = self.short_share
        both = p ** (1 - order) + (1 - p) ** (1 - order)
        return math.factorial(order) * (self.mean_s / 2) ** order * both

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        p = self.short_share
        means = np.where(rng.random(count) < p, self.mean_s / (2 * p), self.mean_s / (2 * (1 - p)))
        return rng.standard_exponential(count) * means


class Measured(Distribution):
    """What was measured, drawn again at random: moments and samples come from the values themselves."""

    kind: Literal["measured"] = "measured"
    values_s: Annotated[np.ndarray, _field(_values)]

    @property
    def mean_s(self) -> float:
        """Mean of the values."""
        return float(self.values_s.mean())

    @property
    def scv(self) -> float:
        """Variance over mean squared of the values."""
        return float(self.values_s.var()) / self.mean_s**2

    def moment(self, order: int) -> float:
        return float((self.values_s**order).mean())

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        return self.values_s[rng.integers(self.values_s.size, size=count)]


class TwoMoments(Distribution):
    """A mean and an SCV of which nothing else is known: enough for mean waits, not for their variance or samples."""

    kind: Literal["two moments"] = "two moments"
    mean_s: Positive
    scv: NotNegative

    @property
    def label(self) -> str:
        """The G of Kendall's notation in words."""
        return "general"

    def moment(self, order: int) -> float:
        if order > 2:
            raise UserError("Only mean and SCV are known of this distribution; name one, such as Gamma(mean_s, scv).")
        return self.mean_s if order == 1 else self.mean_s**2 * (1 + self.scv)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        raise UserError("A mean and an SCV alone cannot be drawn from; name a distribution, such as Lognormal.")


def distribution(value, name: str) -> Distribution:
    """The value itself if it is a distribution, else an `InputError` that says how to make one."""
    if not isinstance(value, Distribution):
        remedy = f"give a distribution, such as workbench.queueing.Exponential(mean_s={value!r:.20})"
        if not isinstance(value, int | float) or isinstance(value, bool):
            remedy = "give a distribution, such as workbench.queueing.Exponential(mean_s=1.0)"
        raise InputError(f"is a {type(value).__name__}", remedy, field=name)
    return value


AnyDistribution = Annotated[
    Deterministic | Exponential | Gamma | Uniform | Lognormal | Hyperexponential | Measured | TwoMoments,
    Field(discriminator="kind"),
]
"""Any of them, told apart by `kind`."""
