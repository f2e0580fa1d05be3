"""Where the requests of a mix come from: length models calibrated on published numbers, and real traces by name."""

import functools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from workbench.errors import UnknownName
from workbench.paths import facts_folder
from workbench.profiles.checking import build
from workbench.profiles.toml_reading import read_toml
from workbench.records import AtLeastOne, Positive, Record, Source, Status
from workbench.workloads import Hump, Lognormals, Pair, trace


class Drawn(NamedTuple):
    """Lengths of requests, int64[n]: prompt tokens, those shared with others left out; output tokens; which group."""

    own: np.ndarray
    output: np.ndarray
    group: np.ndarray


class Fact(Record):
    """One value with how it is known and by whom."""

    value: Any
    status: Status
    source: str = Field(min_length=9)


class Lognormal(Record):
    """Lengths with a normal logarithm, redrawn outside the bounds."""

    ln_mean: float
    ln_std: Positive
    least: AtLeastOne
    most: AtLeastOne
    status: Status
    source: str = Field(min_length=9)

    @property
    def side(self) -> Lognormals:
        """The same as one side of generated requests."""
        return Lognormals(humps=(Hump(ln_mean=self.ln_mean, ln_std=self.ln_std),), least=self.least, most=self.most)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Independent lengths."""
        return self.side.draw(count, rng)

    @property
    def mean(self) -> float:
        """Mean length, by summing over all lengths."""
        from scipy.special import ndtr

        places = np.arange(self.least, self.most + 1)
        edges = ndtr((np.log(np.append(places, self.most + 1) - 0.5) - self.ln_mean) / self.ln_std)
        return float((places * np.diff(edges)).sum() / (edges[-1] - edges[0]))

    def spread(self, times: float) -> "Lognormal":
        """Lengths of the same mean whose coefficient of variation, bounds left out, is so many times as large."""
        from scipy.optimize import brentq

        cv = times * np.sqrt(np.expm1(self.ln_std**2))
        std = float(np.sqrt(np.log1p(cv**2)))

        def off(ln_mean: float) -> float:
            return self._with(ln_mean, std).mean - self.mean

        return self._with(brentq(off, np.log(self.least) - 8 * std, np.log(self.most)), std)

    def _with(self, ln_mean: float, ln_std: float) -> "Lognormal":
        source = f"{self.source}; spread set for this run"
        return self.model_copy(update={"ln_mean": ln_mean, "ln_std": ln_std, "status": "user", "source": source})


class Exponential(Record):
    """Exponential lengths, cut at so many times their mean and scaled back to it."""

    mean: Positive
    cut: Positive
    status: Status
    source: str = Field(min_length=9)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Independent lengths, at least 1."""
        inside = -np.expm1(-self.cut)
        units = -np.log1p(-rng.random(count) * inside)
        scale = self.mean / (1 - self.cut * np.exp(-self.cut) / inside)
        return np.maximum(np.rint(units * scale), 1).astype(np.int64)


class Same(Record):
    """Always the same length."""

    tokens: AtLeastOne
    status: Status
    source: str = Field(min_length=9)

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """The length, `count` times."""
        return np.full(count, self.tokens, np.int64)


class LengthModel(Record):
    """A source of requests.

    Attributes:
        name: ends in -like, because it is not the data set.
        label, kind: what people call it, and what it holds.
        shared_tokens: prompt tokens that all requests of a group share.
        groups: how many groups there are; requests take turns.
        prompt, output: lengths; the prompt's without the shared tokens.
        rank_correlation: Spearman's, between the two.
        outputs_known: whether output lengths are set beforehand.
    """

    name: str
    label: str
    kind: str
    shared_tokens: Fact
    groups: Fact = Fact(value=1, status="chosen", source="one prefix for all its requests")
    prompt: Lognormal
    output: Lognormal | Exponential | Same
    rank_correlation: Fact | None = None
    outputs_known: Fact | None = None

    @property
    def known(self) -> bool:
        """Whether output lengths are set beforehand."""
        return self.outputs_known is not None and bool(self.outputs_known.value)

    @property
    def shared(self) -> int:
        """Prompt tokens that all requests of a group share."""
        return int(self.shared_tokens.value)

    @property
    def traces(self) -> tuple[str, ...]:
        """Names of real traces that lengths are taken from: none."""
        return ()

    def sharing(self, tokens: int) -> "LengthModel":
        """The same with another prefix that all requests of a group share; their own tokens stay as they are."""
        return self.model_copy(update={"shared_tokens": Fact(value=tokens, status="user", source="set for this run")})

    def grouped(self, groups: int) -> "LengthModel":
        """The same in another number of groups, each with a prefix of its own."""
        return self.model_copy(update={"groups": Fact(value=groups, status="user", source="set for this run")})

    def lasting(self, tokens: float) -> "LengthModel":
        """The same with exponential outputs of another mean."""
        output = self.output.model_copy(update={"mean": tokens, "status": "user", "source": "mean set for this run"})
        return self.model_copy(update={"output": output})

    def spread(self, times: float) -> "LengthModel":
        """The same with outputs that vary so many times as much around the same mean."""
        return self.model_copy(update={"output": self.output.spread(times)})

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Lengths of `count` requests."""
        if self.rank_correlation is None:
            own, output = self.prompt.draw(count, rng), self.output.draw(count, rng)
        else:
            both = Pair(prompt=self.prompt.side, output=self.output.side, rank_correlation=self.rank_correlation.value)
            drawn = both.draw(count, rng)
            own, output = drawn.prompt_tokens, drawn.output_tokens
        return Drawn(own, output, np.arange(count) % int(self.groups.value))

    def sources(self) -> list[Source]:
        """Its numbers with where they come from."""
        facts = {"shared tokens": self.shared_tokens, "groups": self.groups, "rank correlation": self.rank_correlation}
        found = [
            Source(quantity=f"{self.name}: {name}", value=str(fact.value), status=fact.status, source=fact.source)
            for name, fact in facts.items()
            if fact is not None
        ]
        for name, side in (("prompt", self.prompt), ("output", self.output)):
            numbers = side.model_dump(exclude={"status", "source"})
            text = ", ".join(f"{key} {value:g}" for key, value in numbers.items())
            quantity = f"{self.name}: {name} lengths"
            found.append(Source(quantity=quantity, value=text, unit="tokens", status=side.status, source=side.source))
        return found


class TraceLengths(Record):
    """Lengths drawn from a real trace, or a stand-in under its own name; only a prefix put in front is shared.

    Attributes:
        name: of the trace. prompt_tokens, output_tokens: int64[n], its lengths. origin: who publishes it.
        shared: tokens of the prefix that is put in front of all prompts.
    """

    name: str
    prompt_tokens: Any
    output_tokens: Any
    origin: str
    shared: int = 0

    @property
    def label(self) -> str:
        """What people call it."""
        return self.name

    @property
    def known(self) -> bool:
        """Whether output lengths are set beforehand: no."""
        return False

    @property
    def traces(self) -> tuple[str, ...]:
        """Names of traces that lengths are taken from."""
        return (self.name,)

    def sharing(self, tokens: int) -> "TraceLengths":
        """The same with a prefix of so many tokens in front of all prompts."""
        return self.model_copy(update={"shared": tokens})

    def draw(self, count: int, rng: np.random.Generator) -> Drawn:
        """Lengths of `count` of its requests, drawn with replacement."""
        which = rng.integers(self.prompt_tokens.size, size=count)
        return Drawn(self.prompt_tokens[which], self.output_tokens[which], np.zeros(count, np.int64))

    def sources(self) -> list[Source]:
        """Where the lengths come from."""
        text = f"{self.prompt_tokens.size:,} requests"
        return [Source(quantity=f"{self.name}: lengths", value=text, status="measured", source=self.origin)]


AnySource = LengthModel | TraceLengths


def length_models() -> dict[str, LengthModel]:
    """All calibrated length models, by name."""
    return dict(_read(facts_folder() / "blending" / "sources.toml"))


@functools.cache
def source_named(name: str) -> AnySource:
    """A length model by its name, or the lengths of a trace by its name or path.

    Raises:
        UnknownName: neither. UserError: a trace that is not on this machine; the message says how to fetch it.
    """
    models = length_models()
    if name in models:
        return models[name]
    try:
        found = trace(name)
    except UnknownName:
        raise UnknownName("source of requests", name, models, "A trace's name or path is good too.") from None
    requests = found.requests.filter(found.requests["output_tokens"] > 0)
    prompt, output = (requests[side].to_numpy().astype(np.int64) for side in ("prompt_tokens", "output_tokens"))
    return TraceLengths(name=found.origin.name, prompt_tokens=prompt, output_tokens=output, origin=found.origin.source)


@functools.cache
def _read(path: Path) -> dict[str, LengthModel]:
    tables = read_toml(path)
    return {name: build(LengthModel, {"name": name, **table}, file=path) for name, table in tables.items()}
