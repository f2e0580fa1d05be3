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


def quick_run(id: str, backends: tuple[str, ...] | str) -> Outcome:
    """A quick run with the default parameters.

    Parameters:
        id: of the experiment.
        backends: which answer; with real runs among them nothing is kept.
    """
    entry = spec.find(id)
    return running.run(entry if "torch" in backends else _remembered(entry), {}, backends=backends, quick=True)


@functools.cache
def whole_run(id: str) -> Outcome:
    """A quick run by all backends but the real one."""
    return quick_run(id, tuple(name for name in spec.find(id).backends if name != "torch"))


@functools.cache
def first_run(id: str) -> Outcome:
    """A quick run by the first backend alone."""
    return quick_run(id, spec.find(id).backends[0])
