"""Reading a file of published points: a reader's own, or a broken one."""

import pytest

from workbench.catalogue.published import read_points, text_of
from workbench.errors import InputError


def test_own_points_need_little(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("series,x,value\nchain,8,1.5\n")
    (row,) = read_points(path, "theory/multicast").to_dicts()
    assert row["experiment"] == "theory/multicast"
    assert (row["series"], row["x"], row["value"], row["kind"], row["source"]) == (
        "chain",
        "8",
        1.5,
        "user",
        "mine.csv",
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not a readable CSV file"),
        ("series,x\nchain,8\n", "row 2, field 'value': a point needs a value, or an edge; fill it in"),
        ("x,value\n8,1\n", "row 1, field 'series': column is missing"),
        ("series,x,value,colour\na,1,2,red\n", "row 1, field 'colour': unknown column"),
        ("series,x,value\na,1,2\nb,1,many\n", "row 3, field 'value': 'many' is not a number"),
        ("series,x,value\na,1,inf\n", "row 2, field 'value': 'inf' is not a number"),
        ("series,x,low,high\na,1,3,2\n", "row 2, field 'low': low is above high; swap them"),
        ("series,x,value,kind\na,1,3,guessed\n", "row 2, field 'kind': 'guessed' is no kind"),
        ("series,x,value\na,1,3,4\n", "not a readable CSV file"),
    ],
)
def test_broken_files_are_refused_with_row_and_remedy(tmp_path, content, words):
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_points(path, "toy/line")
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_absent_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_points(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"value": 2.0, "low": None, "high": None}, "2"),
        ({"value": None, "low": 1.0, "high": 2.0}, "1 to 2"),
        ({"value": None, "low": 1.0, "high": None}, "at least 1"),
        ({"value": None, "low": None, "high": 2.0}, "at most 2"),
    ],
)
def test_a_point_as_text(row, text):
    assert text_of(row) == text
