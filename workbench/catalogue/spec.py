"""What an experiment is: one decorated function with its question, backends, comparisons and drawing."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from workbench.catalogue import papers
from workbench.catalogue.parameters import Parameter, bind, parameters_of
from workbench.errors import UnknownName

BACKENDS = ("analytic", "compiled", "simpy", "torch")
ALL = ("*",)


class Assumption(NamedTuple):
    """The assumption to blame when a verdict differs, and a run that shows it moving the number.

    Attributes:
        text: the assumption, as a clause ("the link is idle before the multicast starts").
        change: parameter values of the run in which it is dropped.
    """

    text: str
    change: Mapping[str, Any]


class Match(NamedTuple):
    """How published points find our numbers: the same series and x, in one of the experiment's tables.

    An experiment names what it can be asked about in a table `headline` with the columns series, x, value, unit; a
    match says more about some of its series.

    Attributes:
        series: published series this is about; empty for all that no other match names.
        tolerance: relative tolerance for published values that come without a band.
        fitted: the x of values that a parameter was calibrated on (`ALL` for all); their verdicts read "fitted".
        incomparable: x -> why the value there is no measurement of what we compute, or why we compute none.
        note: what a reader should know about all these verdicts, added to their reasons.
        assumptions: what to blame when it differs.
    """

    series: tuple[str, ...] = ()
    tolerance: float = 0.1
    fitted: tuple[str, ...] = ()
    incomparable: Mapping[str, str] = {}
    note: str = ""
    assumptions: tuple[Assumption, ...] = ()


class Ordering(NamedTuple):
    """A published order: the headline series named in `order` from the smallest value to the largest, at one x."""

    claim: str
    order: tuple[str, ...]
    x: str = ""
    assumptions: tuple[Assumption, ...] = ()


class Agree(NamedTuple):
    """How two backends are compared: rows joined on `on`, relative difference of `value` within `allowed`.

    `pairs` maps (reference, other) to the allowed band of (other - reference) / reference.
    """

    quantity: str
    table: str
    on: tuple[str, ...]
    value: str
    pairs: Mapping[tuple[str, str], tuple[float, float]]


class Keep(NamedTuple):
    """What of a run is kept for readers who cannot make it: which backend's tables, and which of them not."""

    backend: str = "torch"
    leave_out: tuple[str, ...] = ()


REAL_RUN = Keep()


class Spec(NamedTuple):
    """One entry of the catalogue; see `experiment`."""

    id: str
    function: Callable
    title: str
    question: str
    backends: tuple[str, ...]
    seconds: Mapping[str, float]
    draw: str
    panels: tuple[str, ...]
    matches: tuple[Match, ...]
    orderings: tuple[Ordering, ...]
    judges: tuple[Callable, ...]
    agrees: tuple[Agree, ...]
    say: Callable[..., str]
    stochastic: bool
    keep: Keep
    live: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    replications: int = 1

    @property
    def paper(self) -> str:
        """The part before the slash: a paper's name, `theory`, `serving` or `showdown`."""
        return self.id.split("/")[0]

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Parameter values: the defaults overlaid with the given ones, checked."""
        return bind(self.id, self.parameters, given)


_SPECS: dict[str, Spec] = {}


def experiment(
    id: str,
    *,
    title: str,
    question: str,
    backends: Sequence[str],
    seconds: Mapping[str, float],
    draw: str,
    say: Callable[..., str],
    panels: Sequence[str] = (),
    matches: Sequence[Match] = (),
    orderings: Sequence[Ordering] = (),
    judges: Sequence[Callable] = (),
    agrees: Sequence[Agree] = (),
    stochastic: bool = False,
    keep: Keep = REAL_RUN,
    live: Sequence[str] = (),
    replications: int = 1,
) -> Callable[[Callable], Callable]:
    """Enter a function into the catalogue.

    The function takes a `Context` and keyword-only annotated parameters, and returns a dict of polars tables, among
    them `headline` (series, x, value, unit) with the numbers that published points are judged against. It is called
    once a backend and replication.

    Parameters:
        id: PAPER/figN, PAPER/tabN or PAPER/word.
        title, question: what it shows and what it asks, for readers.
        backends: those it can answer with, the default first.
        seconds: rough duration by backend on two cores.
        draw: `module.function` under `workbench.figures`, which makes a figure of an outcome, or of one panel of it.
        say: (tables, parameters) -> one sentence computed from the data.
        panels: names of single panels the figure can be asked for.
        matches, orderings, judges: what is judged, see `Match`, `Ordering`; a judge maps a `Draft` to verdicts.
        agrees: which backends are compared on what.
        stochastic: whether replications differ.
        keep: what of a run is recorded for readers without torch or without measured data.
        live: backends that answer at every move of an explorer's control, beside the first one.
        replications: of a full run, where nobody asks for another number; a quick one is made once.
    """

    def enter(function: Callable) -> Callable:
        parameters = parameters_of(function)
        _SPECS[id] = Spec(
            id,
            function,
            title,
            question,
            tuple(backends),
            dict(seconds),
            draw,
            tuple(panels),
            tuple(matches),
            tuple(orderings),
            tuple(judges),
            tuple(agrees),
            say,
            stochastic,
            keep,
            tuple(live),
            parameters,
            replications,
        )
        return function

    return enter


def find(id: str) -> Spec:
    """The entry of this id, or an `UnknownName` that lists near ones."""
    if isinstance(id, str):
        papers.load(id.split("/")[0])
        if id in _SPECS:
            return _SPECS[id]
    raise UnknownName("experiment", id, all_specs(), "`workbench list` shows all.")


def all_specs() -> dict[str, Spec]:
    """Every entry by id, in catalogue order."""
    papers.load(*papers.MODULES)
    return dict(sorted(_SPECS.items(), key=lambda item: (*papers.MODULES, item[1].paper).index(item[1].paper)))
