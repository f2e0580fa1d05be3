"""The trace an experiment replays: the real one where it is here, else its stand-in, never silently."""

import functools
from pathlib import Path

import numpy as np

from workbench import workloads
from workbench.catalogue.context import Context
from workbench.errors import UserError
from workbench.workloads import Trace
from workbench.workloads.facts import all_facts
from workbench.workloads.finding import located

BURST = "lambdascale-burst"
"""The half hour of BurstGPT in λScale's artifact; nobody offers it by that name, so a file is known by its content."""


def replayed(
    context: Context, asked: str, *, longest_s: float = 0.0, published: tuple[str, ...] = (), least: int = 1
) -> Trace:
    """A trace by name or path, entered into the ledger and named in the verdicts.

    A named trace that is not on this machine is replaced by its generated stand-in; then, and where `published` names
    other traces than this one, nothing is judged.

    Parameters:
        asked: a name of `traces()`, of a stand-in, or a path.
        longest_s: seconds to take at most, 0 for all; of a longer trace its busiest window of that length.
        published: names of the traces that the published numbers are about; empty where any real one will do.
        least: requests that are needed; where these are two or more, they must not all arrive at once.

    Raises:
        UserError: an empty name, a trace that is neither here nor has a stand-in, or one of too few requests.
    """
    if not asked.strip():
        raise UserError("Parameter 'trace' is empty; give the name of a trace, of a stand-in, or the path of a file.")
    facts = all_facts().get(asked)
    missing = facts is not None and facts.stand_in is not None and located(facts) is None
    trace = _read(facts.stand_in.name if missing else asked, longest_s)
    name = name_of(trace)
    arrival = trace.requests["arrival_s"]
    span_s = float(arrival[-1] - arrival[0])
    if len(trace) < least or (least > 1 and not span_s):
        raise UserError(
            f"{name}: requests {len(trace)}, from the first to the last {span_s:g} s; give a trace of at least {least} "
            "requests that do not all arrive at once."
        )
    context.traces.append(name)
    context.cite(f"trace {name}", len(trace), "requests", *_origin(trace, asked if missing else ""))
    if trace.origin.stand_in:
        why = f"{name} is generated to resemble {name.removesuffix('-like')}"
        context.incomparable = why + (f", which is not on this machine{_way(asked)}" if missing else "")
    elif published and name not in published:
        context.incomparable = f"{name} is not the trace of the published number ({' or '.join(published)})"
    return trace


def name_of(trace: Trace) -> str:
    """What a trace is called in figures: its name; λScale's half hour is known by its 498 arrivals over 1,762.8 s."""
    arrival = trace.requests["arrival_s"]
    if len(trace) == 498 and abs(float(arrival[-1] - arrival[0]) - 1762.8) < 0.05 and not trace.origin.stand_in:
        return BURST
    return trace.origin.name


def _origin(trace: Trace, instead_of: str) -> tuple[str, str]:
    if trace.origin.stand_in:
        return "computed", f"generated: {trace.origin.source}" + (f"; in place of {instead_of}" if instead_of else "")
    return "measured", trace.origin.source or "own file"


def _way(name: str) -> str:
    command = all_facts()[name].fetch_command
    return f" (fetch it with `{command}`)" if command else " (nobody offers it for download; give its file's path)"


def _read(asked: str, longest_s: float) -> Trace:
    facts = all_facts().get(asked)
    path = located(facts) if facts is not None else Path(asked).expanduser()
    status = path.stat() if path is not None and path.is_file() else None
    return _kept(asked, longest_s, str(path), status and (status.st_mtime_ns, status.st_size))


@functools.lru_cache(maxsize=4)
def _kept(asked: str, longest_s: float, path: str, state: tuple[int, int] | None) -> Trace:
    """Traces read lately: an explorer asks for the same one at every move of a slider."""
    trace = workloads.trace(asked)
    return _busiest(trace, longest_s) if longest_s else trace


def _busiest(trace: Trace, longest_s: float) -> Trace:
    """The window with most arrivals, where the trace is longer than that."""
    arrival = trace.requests["arrival_s"].to_numpy()
    if arrival[-1] < longest_s:
        return trace
    inside = np.searchsorted(arrival, arrival + longest_s) - np.arange(arrival.size)
    start = float(arrival[int(inside.argmax())])
    return workloads.cut(trace, start, start + longest_s)
