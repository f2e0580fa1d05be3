"""REPORT.md: every experiment that was run, its verdicts and agreements, and what is not there."""

from collections.abc import Callable, Mapping, Sequence

import polars as pl

from workbench.catalogue import published
from workbench.catalogue.outcome import Outcome
from workbench.catalogue.pacing import pacing_note
from workbench.catalogue.spec import all_specs, find
from workbench.records import Record
from workbench.results import READINGS, Agreement, verdict_columns


def report(
    outcomes: Sequence[Outcome],
    failures: dict[str, str],
    image: Callable[[Outcome], str | None],
    explorers: Mapping[str, str] = {},
) -> str:
    """The whole report as Markdown.

    Parameters:
        outcomes: the runs, in catalogue order.
        failures: experiment id -> why it did not run.
        image: gives the relative path of a run's still image, or None where there is none.
        explorers: experiment id -> relative path of its page with sliders that needs no Python.
    """
    parts = [_head(outcomes), _without_python(explorers)]
    parts += [_entry(outcome, image(outcome), explorers.get(outcome.experiment)) for outcome in outcomes]
    if failures:
        lines = [f"- `{name}`: {why}" for name, why in failures.items()]
        parts.append("## Did not run\n\n" + "\n".join(lines))
    parts += [_missing(_papers(outcomes, failures)), _claims(outcomes)]
    return "\n\n".join(part for part in parts if part) + "\n"


def counts(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many verdicts read what."""
    found = dict.fromkeys(READINGS, 0)
    for outcome in outcomes:
        for verdict in outcome.verdicts:
            found[verdict.verdict] += 1
    return found


def _head(outcomes: Sequence[Outcome]) -> str:
    tally = counts(outcomes)
    origin = outcomes[0].origin if outcomes else {}
    modes = sorted({outcome.mode for outcome in outcomes})
    return "\n".join(
        [
            "# Report",
            "",
            "Each experiment is answered by formula, by simulation and, where it can be, by a real run, and laid",
            "beside what was published. A band decides the verdict: a published one, or this project's own, set before",
            "the first comparison (*sources* says which); *fitted* and *computed* never count as reproduced.",
            "",
            "| " + " | ".join(READINGS) + " |",
            "|" + "---|" * len(READINGS),
            "| " + " | ".join(str(tally[name]) for name in READINGS) + " |",
            "",
            _agreed(outcomes),
            _real_runs(outcomes),
            "",
            f"Mode: {', '.join(modes)}. " + ", ".join(f"{name} {value}" for name, value in origin.items()) + ".",
        ]
    )


def _agreed(outcomes: Sequence[Outcome]) -> str:
    """How many comparisons of backends agree; those with a real run, and with a recorded one, counted apart."""
    found = [item for outcome in outcomes for item in outcome.agreement]

    def share(items: list[Agreement]) -> str:
        return f"{sum(item.agrees for item in items)} of {len(items)}"

    text = f"Backends agree within what is allowed in {share(found)} comparisons"
    for name, words in (("torch", "with a real run"), ("recorded", "with a recorded run")):
        if some := [item for item in found if name in item.backends]:
            text += f", {words} in {share(some)} of these"
    return f"{text}."


def _real_runs(outcomes: Sequence[Outcome]) -> str:
    """How many experiments really ran here, and for how many a recorded run stands in."""
    live = sum("torch" in outcome.backends for outcome in outcomes)
    kept = [find(outcome.experiment).keep.backend for outcome in outcomes if "recorded" in outcome.backends]
    recorded = kept.count("torch")  # others stand in for measurements
    parts = [f"{live} made for this report"] if live else []
    parts += [f"{recorded} recorded earlier, shown where a run could not be made here"] if recorded else []
    return f"Real runs: {', '.join(parts) or 'none'}."


def _without_python(explorers: Mapping[str, str]) -> str:
    if not explorers:
        return ""
    folder = next(iter(explorers.values())).rpartition("/")[0]
    lines = [f"- [{find(id).title}]({page}) (`{id}`)" for id, page in explorers.items()]
    return (
        "Pages with sliders for readers without Python; they work from a file and without a network. Fetch the folder "
        f"`{folder}` as a whole, since its pages share one library.\n\n" + "\n".join(lines)
    )


def _entry(outcome: Outcome, picture: str | None, explorer: str | None) -> str:
    spec = find(outcome.experiment)
    parts = [f"## {spec.title}", f"`{spec.id}` · {', '.join(outcome.backends)} · {spec.question}", outcome.sentence]
    if picture:
        parts.append(f"![{spec.title}: {_cell(outcome.sentence)}]({picture})")
    if explorer:
        parts.append(f"[The same with sliders, without Python]({explorer})")
    parts += [f"*{backend}: {why}*" for backend, why in outcome.not_run.items()]
    if note := pacing_note(outcome):
        parts.append(note)
    if outcome.verdicts:
        parts.append(_table(outcome.verdicts, verdict_columns(outcome.verdicts)))
    if outcome.agreement:
        columns = ["quantity", "backends", "rows", "of", "difference", "allowed", "independent", "agrees"]
        parts.append(_table(outcome.agreement, columns, {"difference": "relative difference"}))
    seeds = ", ".join(map(str, outcome.seeds[:5])) + (", …" if len(outcome.seeds) > 5 else "")
    parts.append(f"Seeds {seeds}; {outcome.mode} mode.")
    return "\n\n".join(parts)


def _table(records: Sequence[Record], columns: Sequence[str], heads: Mapping[str, str] = {}) -> str:
    lines = ["| " + " | ".join(heads.get(name, name) for name in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(getattr(record, name)) for name in columns) + " |" for record in records]
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, tuple):
        return " to ".join(_cell(item) for item in value)
    return str(value).replace("|", "\\|").replace("\n", " ")


def _papers(outcomes: Sequence[Outcome], failures: dict[str, str]) -> set[str]:
    """Papers whose missing rows are listed: those asked for, all where the whole catalogue was."""
    asked = {*(outcome.experiment for outcome in outcomes), *failures}
    return set(published.rows()["paper"]) if asked >= set(all_specs()) else {id.split("/")[0] for id in asked}


def _missing(papers: set[str]) -> str:
    rows = published.rows().filter(pl.col("paper").is_in(sorted(papers)))
    built = set(all_specs())
    lines = [
        f"- {row['paper']}, {row['row']} ({row['title']}): {row['not_possible_reason'] or 'no entry in this version'}"
        for row in rows.iter_rows(named=True)
        if row["experiment"] not in built
    ]
    return "## Catalogue rows without an entry\n\n" + "\n".join(lines) if lines else ""


def _claims(outcomes: Sequence[Outcome]) -> str:
    ran = {outcome.experiment for outcome in outcomes}
    table = published.claims().filter(pl.col("experiment").is_in(sorted(ran)))
    if not len(table):
        return ""
    lines = ["| paper | claim | reading | correction | shown by |", "|---|---|---|---|---|"]
    lines += [
        "| " + " | ".join(_cell(row[name]) for name in ("paper", "claim", "reading", "correction", "experiment")) + " |"
        for row in table.iter_rows(named=True)
    ]
    return "## What is commonly said\n\n" + "\n".join(lines)
