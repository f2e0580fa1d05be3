"""Pieces of HTML around a figure; every text from data is escaped."""

import html
import re
from collections.abc import Sequence

import polars as pl

from workbench.catalogue.outcome import Outcome
from workbench.catalogue.pacing import pacing_note
from workbench.results import READINGS, Verdict, agreement_table, verdict_columns, verdict_table

SHADES = dict.fromkeys(READINGS, "#8c8c8c") | {
    "reproduced": "#2ca58d",
    "differs": "#d1495b",
    "undecided": "#b89b2b",
}


LONG = 40
"""Letters from which on a cell of a table asks for room."""

WIDEST_EM = 30
"""Room that it asks for at most: the whole of such a table still fits a page 1,280 pixels wide."""

SHARES = {1: 45, 2: 34}
"""Room that it asks for at most, in % of the page, by the number of such columns (30 for more): on a narrow page a
table breaks its lines before it is cut."""

_JOINTS = re.compile(r"(?<=[\w)])([@_/:=,]+)(?=[\w(])")
"""Where a name may be broken into lines."""


def escape(text: object) -> str:
    """A text from data, safe inside markup."""
    return html.escape(str(text))


def alert(message: str) -> str:
    """A message that screen readers announce; empty for no message."""
    if not message:
        return ""
    return (
        f'<div role="alert" style="border-left:4px solid #d1495b;padding:4px 10px;margin:4px 0">{escape(message)}</div>'
    )


def table_html(table: pl.DataFrame, caption: str, columns: Sequence[str] | None = None, shade: str = "") -> str:
    """A polars table as plain HTML; the column `shade` is coloured by its reading."""
    shown = table.select(columns) if columns else table
    head = "".join(
        f'<th scope="col" style="text-align:left;padding:2px 8px">{escape(name)}</th>' for name in shown.columns
    )
    body, share = [], SHARES.get(_long_columns(shown), 30)
    for row in shown.iter_rows(named=True):
        cells = []
        for name, value in row.items():
            style = "text-align:left;vertical-align:top;padding:2px 8px"
            if name == shade:
                style += f";color:{SHADES.get(str(value), 'inherit')};font-weight:600;white-space:nowrap"
            text = number(value)
            if len(text) > LONG:
                em = min(WIDEST_EM, max(16, len(text) // 6))  # else a narrow page makes it tall
                style += f";min-width:min({em}em, {share}cqw)"
            cells.append(f'<td style="{style}">{_JOINTS.sub(_breaking, escape(text))}</td>')
        body.append(f"<tr>{''.join(cells)}</tr>")
    return (
        '<div style="overflow-x:auto;container-type:inline-size">'
        '<table style="border-collapse:collapse;font-size:13px;line-height:1.35">'
        f'<caption style="text-align:left;padding:2px 8px">{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _long_columns(table: pl.DataFrame) -> int:
    return sum(any(len(number(value)) > LONG for value in column) for column in table.iter_columns())


def _breaking(joint: re.Match) -> str:
    return f"{joint[0]}<wbr>"


def number(value: object) -> str:
    """A number with at most five digits; a list as a pair; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, list | tuple | pl.Series):
        return " to ".join(number(item) for item in value)
    return str(value)


def details(summary: str, inside: str) -> str:
    """A fold that opens on click or key."""
    return f"<details><summary>{escape(summary)}</summary>{inside}</details>"


def verdict_summary(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts read what, in words."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.verdict] = counts.get(verdict.verdict, 0) + 1
    order = [reading for reading in READINGS if reading in counts]
    return ", ".join(f"{counts[reading]} {reading}" for reading in order) or "nothing published to compare with"


def below_html(outcome: Outcome, sources: pl.DataFrame | None = None) -> str:
    """What stands beneath a figure: the sentence, then folds with verdicts, agreement, sources and the run's origin."""
    parts = [f'<p style="margin:4px 0">{escape(outcome.sentence)}</p>']
    if note := pacing_note(outcome):
        parts.append(f'<p style="margin:4px 0">{escape(note)}</p>')
    for backend, why in outcome.not_run.items():
        parts.append(f'<p style="margin:4px 0"><em>{escape(backend)}: {escape(why)}</em></p>')
    if outcome.verdicts:
        table = verdict_table(outcome.verdicts).drop("ours").rename({"ours_text": "ours"})
        inside = table_html(table, "Published beside ours", verdict_columns(outcome.verdicts), shade="verdict")
        parts.append(details(f"Verdicts: {verdict_summary(outcome.verdicts)}", inside))
    if outcome.agreement:
        table = agreement_table(outcome.agreement).rename({"difference": "relative difference"})
        good = sum(item.agrees for item in outcome.agreement)
        parts.append(
            details(
                f"Agreement of backends: {good} of {len(table)} within what is allowed",
                table_html(table, "Of each quantity the row that decides"),
            )
        )
    if sources is not None and len(sources):
        parts.append(details(f"Where the {len(sources)} numbers come from", table_html(sources, "Sources")))
    origin = ", ".join(f"{name} {value}" for name, value in outcome.origin.items())
    runs = "1 run" if len(outcome.seeds) == 1 else f"{len(outcome.seeds)} runs"
    parts.append(
        f'<p style="margin:4px 0;font-size:12px;opacity:.75">seed {outcome.seed}, {runs}, '
        f"{escape(outcome.mode)} mode; {escape(origin)}</p>"
    )
    return "".join(parts)


def result_html(outcome: Outcome) -> str:
    """A result as a notebook shows it when it is the last expression of a cell: words and verdicts, no figure."""
    return f"<strong>{escape(outcome.experiment)}</strong>{below_html(outcome)}"
