"""A paper's whole catalogue by figure number: pick a row, explore it, or read why it is not there."""

import threading
from functools import partial
from typing import Any

import ipywidgets as w

from workbench.catalogue import published, spec
from workbench.errors import UnknownName
from workbench.explore.closing import close_tree
from workbench.explore.explorer import Explorer
from workbench.explore.live import guard
from workbench.figures.text import escape


class Browser:
    """Widgets: a list of a paper's rows, and below it the explorer of the row that is picked."""

    def __init__(self, paper: str):
        rows = published.rows()
        papers = rows["paper"].unique().to_list()
        entries = [entry for entry in spec.all_specs().values() if entry.paper == paper]
        if paper not in papers and not entries:
            raise UnknownName("paper", paper, {*papers, *(entry.paper for entry in spec.all_specs().values())})
        self._rows = rows.filter(rows["paper"] == paper).to_dicts()
        listed = {row["experiment"] for row in self._rows}
        self._rows += [
            {"row": entry.id.split("/")[1], "experiment": entry.id, "title": entry.title, "not_possible_reason": ""}
            for entry in entries
            if entry.id not in listed
        ]
        built = {entry.id for entry in entries}
        options = [
            (f"{'●' if row['experiment'] in built else '○'} {row['row']}: {row['title']}", index)
            for index, row in enumerate(self._rows)
        ]
        first = next((index for index, row in enumerate(self._rows) if row["experiment"] in built), 0)
        self.select = w.Select(
            options=options, value=first, rows=min(12, len(options)), description="Catalogue",
            layout=w.Layout(width="calc(100% - 4px)"), style={"description_width": "initial"},
        )  # fmt: skip
        self._built = built
        self._shown: Explorer | None = None
        self._large = False
        self._close_shown, self._close_before = _nothing, _nothing
        self._message = w.HTML()
        self._place = w.VBox(layout=w.Layout(width="100%"))
        self._pick = guard(self._message, threading.RLock())(self._show)
        self.select.observe(self._pick, names="value")
        legend = w.HTML("<p style='margin:2px 0;font-size:12px'>● can be run here, ○ not here yet</p>")
        self.widget = w.VBox([self.select, legend, self._message, self._place], layout=w.Layout(width="100%"))
        self._pick(None)

    def _show(self, _change) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._large = self._shown.large
        self._place.children = ()
        self._close_before()  # a page may still be answering what was just shown: that is closed one pick later
        self._close_before, self._close_shown, self._shown = self._close_shown, _nothing, None
        row = self._rows[self.select.value]
        if row["experiment"] in self._built:
            self._shown = Explorer(spec.find(row["experiment"]), {}, self._large)
            shown, self._close_shown = self._shown.widget, self._shown.close
        else:
            shown = w.HTML(_why_not(row))
            self._close_shown = partial(close_tree, shown)
        self._place.children = [shown]


def _nothing() -> None:
    """What there is to close before the first row is picked."""


def _why_not(row: dict[str, Any]) -> str:
    why = row["not_possible_reason"] or "It has no entry in this version of the workbench."
    facts = "".join(
        f"<li>{escape(name)}: {escape(row[key])}</li>"
        for name, key in (("across", "x_axis"), ("up", "y_axis"), ("curves", "curves"), ("judged by", "judged_by"))
        if row.get(key)
    )
    return f"<p>{escape(why)}</p><ul>{facts}</ul>"
