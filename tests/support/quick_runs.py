"""Quick runs of experiments that several tests of a process look at: each is made once for the same parameters."""

import functools

import polars as pl

from workbench.catalogue import running, spec
from workbench.catalogue.context import Context
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.spec import Spec

_made: dict[tuple[str, str, str, int, str], tuple[dict[str, pl.DataFrame], Context]] = {}


def _remembered(entry: Spec) -> Spec:
    """The entry, with what its function answers and cites kept: runs by one and by all backends then share it."""

    def function(context: Context, **parameters) -> dict[str, pl.DataFrame]:
        key = (entry.id, context.backend, context.mode, context.seed, repr(sorted(parameters.items())))
        if key not in _made:
            _made[key] = entry.function(context, **parameters), context
        tables, told = _made[key]
        if told is not context:
            context.traces, context.incomparable, context._sources = told.traces, told.incomparable, told._sources
        return tables

    return entry._replace(function=function)


def tables_of(id: str, backend: str, **given) -> dict[str, pl.DataFrame]:
    """What an experiment answers in quick mode, made anew and not judged."""
    entry = spec.find(id)
    return entry.function(Context(backend, "quick"), **entry.bind(given))


def alone(id: str, backend: str) -> Outcome:
    """A quick run by one backend with the default parameters; its verdicts blame nothing, so nothing is run again."""
    unjudged = _remembered(spec.find(id))._replace(matches=(), orderings=(), judges=())
    return running.run(unjudged, {}, backends=backend, quick=True)


def with_real_run(id: str) -> Outcome:
    """A quick run by the first backend and by real processes, with its verdicts."""
    entry = spec.find(id)
    return running.run(_remembered(entry), {}, backends=(entry.backends[0], "torch"), quick=True)


@functools.cache
def whole_run(id: str) -> Outcome:
    """A quick run by all backends but the real one, with its verdicts."""
    entry = spec.find(id)
    backends = [name for name in entry.backends if name != "torch"]
    return running.run(_remembered(entry), {}, backends=backends, quick=True)
