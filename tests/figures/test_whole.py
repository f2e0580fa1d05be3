"""Tables of facts are shown whole in a notebook, and are polars frames in everything else."""

import polars as pl
import pytest

import workbench as wb
from workbench.figures.whole import WholeTable


def test_all_rows_and_whole_texts_are_shown_and_escaped():
    long = "x" * 500
    shown = WholeTable({"number": range(99), "text": [long] * 98 + ["<b>"]})._repr_html_()
    assert shown.count("<tr>") == 1 + 99
    assert shown.count(long) == 98
    assert "…" not in shown
    assert "<b>" not in shown
    assert "99 rows" in shown
    assert "1 row<" in WholeTable({"number": [1]})._repr_html_()


@pytest.mark.parametrize("id", ["lambdascale/fig7", "theory/schedule"])
def test_the_tables_that_notebooks_show(id):
    entry = wb.experiment(id)
    result = entry.run("analytic")
    tables = (entry.parameters, entry.published, result.sources(), result.verdicts(), result.agreement())
    for table in (wb.experiments(), *tables):
        assert isinstance(table, pl.DataFrame)
        assert table._repr_html_().count("<tr>") == 1 + len(table)
        assert type(table.filter(pl.lit(True))) is pl.DataFrame
