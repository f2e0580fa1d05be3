"""Traces by name or path."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import polars as pl

from workbench.errors import InputError, UnknownName, UserError
from workbench.profiles.checking import build
from workbench.records import given_path
from workbench.workloads.facts import TraceFacts, all_facts, facts_by_sha256
from workbench.workloads.finding import find, located
from workbench.workloads.handle import Trace
from workbench.workloads.ledger import Defect
from workbench.workloads.options import Limits, ReadOptions, Target, Unit
from workbench.workloads.reading import read_file, read_table
from workbench.workloads.scaling.cutting import cut, of_rows
from workbench.workloads.sidecar import remembered

_FOR_STAND_INS = ("rows", "window", "seed", "model")


def trace(
    name_or_path: str | Path | pl.DataFrame,
    *,
    rows: int | tuple[int, int] | None = None,
    window: tuple[float, float] | None = None,
    spread: bool | float = True,
    seed: int = 0,
    zero_tokens: Literal["drop", "keep", "one", "refuse"] = "drop",
    bad_rows: Literal["refuse", "drop"] = "refuse",
    model: str | None = None,
    columns: dict[Target, str] | None = None,
    unit: Unit | None = None,
    format: str | None = None,
    log_type: str | None = None,
    block_tokens: int | None = None,
    count_tokens: Callable[[str], int] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - a frozen record
) -> Trace:
    """What arrives: a public trace by name, a generated stand-in by its own name, or any trace file by path.

    A real trace is looked for in the trace folders and checked against the publisher's sha256. When it is absent the
    error holds the command that fetches it; it is never replaced. Names that end in `-like` are generated stand-ins and
    marked as such. A file's format is recognised by its content.

    Parameters:
        name_or_path: a name from `traces()`, a path, or requests as a polars table.
        rows: the first n data rows, or (start, stop) with the first row 0.
        window: seconds (start, end) after the file's first arrival.
        spread: True spreads times that lie on a coarse grid (BurstGPT's seconds, Mooncake's 3 s) at random inside their
            cells; False leaves them; a number spreads any trace inside cells of that many seconds.
        seed: of the spreading, and of stand-ins.
        zero_tokens: requests with zero prompt or output tokens (failures): drop, keep, one (raise to one token) or
            refuse.
        bad_rows: cells that cannot be read, negative lengths, wrong hashes: refuse the file, or drop and count such
            rows.
        model: name of the model that all requests ask for; by default the file's own, else "default".
        columns: which column holds what, for example
            `{"arrival_s": "ts", "prompt_tokens": "in", "output_tokens": "out"}`; `priority` holds whole numbers, 0 goes
            first.
        unit: of the arrival times: s, ms, us, ns or datetime; by default from name, shape and size.
        format: a format's name, to insist on it.
        log_type: BurstGPT only: keep one `Log Type`.
        block_tokens: prompt tokens that one prefix hash covers.
        count_tokens: for conversations as text: a function from text to its number of tokens.
        limits: rows, line length and unpacked size to refuse beyond.

    Raises:
        UserError: for a trace that is absent. UnknownName: for a name that there is not.
        InputError: with file, row, field and remedy for what cannot be read.
    """
    given = locals()
    options = build(ReadOptions, {name: given[name] for name in ReadOptions.model_fields})
    if isinstance(name_or_path, pl.DataFrame):
        return read_table(name_or_path, options)
    path = given_path(name_or_path, "name_or_path").expanduser()
    known = all_facts()
    name = str(name_or_path)
    if isinstance(name_or_path, str):
        if name in known:
            return _named(known[name], options)
        if like := next((facts for facts in known.values() if facts.stand_in and facts.stand_in.name == name), None):
            return _stand_in(like, options)
    if path.is_file() or isinstance(name_or_path, Path) or "/" in name or path.suffix:
        return _of_file(path, options)
    recipes = [facts.stand_in.name for facts in known.values() if facts.stand_in]
    raise UnknownName("trace", name, [*known, *recipes], "A file is given by its path.")


def _named(facts: TraceFacts, options: ReadOptions) -> Trace:
    found = read_file(find(facts), options)
    if found.origin.format != facts.format:
        problem = f"this file bears the name of {facts.name} but has the format {found.origin.format}"
        raise InputError(problem, "move it away or load it by its path", file=found.origin.file)
    return _described(found, facts, options)


def _of_file(path: Path, options: ReadOptions) -> Trace:
    found = read_file(path, options)
    if facts := facts_by_sha256(found.origin.sha256):
        return _described(found, facts, options)
    return remembered(found)


def _described(found: Trace, facts: TraceFacts, options: ReadOptions) -> Trace:
    """A trace whose file is known, with what is known of it."""
    whole = options.rows is None and options.window is None
    if whole and facts.rows is not None and found.origin.rows_read != facts.rows:
        problem = (
            f"this file bears the name of {facts.name} but has {found.origin.rows_read:,} rows, not {facts.rows:,}"
        )
        raise InputError(problem, "move it away or load it by its path", file=found.origin.file)
    verified = "sha256" if facts.sha256 else "rows" if whole and facts.rows else "nothing"
    origin = found.origin.model_copy(
        update={
            "name": facts.name,
            "source": facts.url or facts.home,
            "licence": facts.licence,
            "citation": facts.citation,
            "verified": verified,
            "notes": facts.notes,
        }
    )
    return found.model_copy(update={"origin": origin, "defects": pl.concat([found.defects, _at_caps(found, facts)])})


def _at_caps(found: Trace, facts: TraceFacts) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for cap in facts.caps:
        count = int(found.requests[cap.field].is_between(cap.low, cap.high).sum())
        if count:
            if cap.end == "longest":
                defect = f"{cap.field} cut off at {cap.low:,} to {cap.high:,}"
                handling = "kept; fit no unbounded tail to it"
            else:
                defect, handling = f"{cap.field} at the floor of {cap.low:,}", "kept; the service gave no fewer"
            rows.append(Defect(defect=defect, rows=count, handling=handling).model_dump())
    return pl.DataFrame(rows, schema=found.defects.schema)


def _stand_in(facts: TraceFacts, options: ReadOptions) -> Trace:
    defaults = ReadOptions()
    for name in ReadOptions.model_fields:
        if name not in _FOR_STAND_INS and getattr(options, name) != getattr(defaults, name):
            raise UserError(f"{facts.stand_in.name} is generated; the option {name!r} is for files, leave it out.")
    made = facts.stand_in.trace(options.seed)
    made = made.model_copy(update={"origin": made.origin.model_copy(update={"citation": facts.citation})})
    if options.model is not None:
        made = made.model_copy(update={"requests": made.requests.with_columns(model=pl.lit(options.model))})
    if options.window is not None:
        made = cut(made, *options.window)
    if options.rows is not None:
        made = of_rows(made, *options.part)
    return made


def traces() -> pl.DataFrame:
    """All traces that have a name here.

    Returns:
        `name, title, rows, span_s, held` (path on this machine, null where it has to be fetched), `licence, stand_in`
        (name of the generated stand-in or null), `fetch` (command, null where nobody offers the file).
    """
    rows = []
    for facts in all_facts().values():
        path = located(facts)
        rows.append(
            {
                "name": facts.name,
                "title": facts.title,
                "rows": facts.rows,
                "span_s": facts.span_s,
                "held": None if path is None else str(path),
                "licence": facts.licence,
                "stand_in": facts.stand_in and facts.stand_in.name,
                "fetch": facts.fetch_command or None,
            }
        )
    schema = {
        "name": pl.String,
        "title": pl.String,
        "rows": pl.Int64,
        "span_s": pl.Float64,
        "held": pl.String,
        "licence": pl.String,
        "stand_in": pl.String,
        "fetch": pl.String,
    }
    return pl.DataFrame(rows, schema=schema)
