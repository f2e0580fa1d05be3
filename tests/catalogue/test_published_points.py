"""Reading a file of published points: a reader's own, or a broken one."""

import polars as pl
import pytest

from workbench.catalogue.published import claim_of, read_points, text_of
from workbench.errors import InputError
from workbench.paths import facts_folder


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
        ("series,x\nchain,8\n", "line 2, field 'value': a point needs a value, or an edge; fill it in"),
        ("x,value\n8,1\n", "line 1, field 'series': column is missing"),
        ("series,x,value,colour\na,1,2,red\n", "line 1, field 'colour': unknown column"),
        ("series,x,value\na,1,2\nb,1,many\n", "line 3, field 'value': 'many' is not a number"),
        ("series,x,value\na,1,inf\n", "line 2, field 'value': 'inf' is not a number"),
        ("series,x,low,high\na,1,3,2\n", "line 2, field 'low': low is above high; swap them"),
        ("series,x,value,kind\na,1,3,guessed\n", "line 2, field 'kind': 'guessed' is no kind"),
        ("series,x,value\na,1,3,4\n", "line 2: holds 4 cells, and the header 3; take the surplus away"),
        ('series,x,value\na,1,3\n"b, c",1,3\nb, c,1,3\n', "line 4: holds 4 cells, and the header 3"),
        ('series,x,value\n"a,1,3\n', "not a readable CSV file"),
        ("series;x;value\na;1;3,5\n", "line 1: cells are divided by ';'; save it with commas between them"),
        ('series,x,value\n\n"a\nb",1,2\n,,\nb,1,many\n', "line 6, field 'value': 'many' is not a number"),
        ("\n\nseries,x,value\na,1,many\n", "line 4, field 'value': 'many' is not a number"),
        ('series,x,value\n"a\nb",1,2\na,1,3,4\n', "line 4: holds 4 cells"),
        ("\n\nseries,x,value\na,1,3,4\n", "line 4: holds 4 cells"),
        ("\nseries;x;value\n\na;1;3\n", "line 1: cells are divided by ';'"),
        ("series,x,value\n" + "a" * 200_000 + ",1,many\n", "line 2, field 'value': 'many' is not a number"),
        ("series,x,value\n\n,,\n", "there is no point below the header"),
        ("series,x,value\n", "there is no point below the header; add a row for each"),
    ],
)
def test_broken_files_are_refused_with_row_and_remedy(tmp_path, content, words):
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_points(path, "toy/line")
    assert words in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_for_several_experiments_gives_each_its_own(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("experiment,series,x,value\ntoy/line,a,1,2\ntheory/multicast,chain,8,22\n,b,1,3\n")
    assert read_points(path, "toy/line")["series"].to_list() == ["a", "b"]
    assert read_points(path, "theory/multicast")["series"].to_list() == ["chain", "b"]
    path.write_text("experiment,series,x,value\ntheory/multicast,chain,8,22\n")
    with pytest.raises(InputError, match=r"no point for toy/line \(its rows are for: theory/multicast\)"):
        read_points(path, "toy/line")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_blank_lines_are_no_points(tmp_path, end):
    path = tmp_path / "mine.csv"
    path.write_text("\ufeff" + end.join(["series,x,value", "", "a,1,2", ",,", "  ", "b,1,3", "", ""]), newline="")
    assert read_points(path, "toy/line").select("series", "x", "value").rows() == [("a", "1", 2.0), ("b", "1", 3.0)]


def test_blank_cells_read_as_empty_text(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("series,x,value,unit\nspeed-up,,2,\n")
    (row,) = read_points(path, "toy/line").to_dicts()
    assert (row["x"], row["unit"], row["kind"]) == ("", "", "user")
    path.write_text("series,x,value\n ,1,2\n")
    with pytest.raises(InputError, match="line 2, field 'series': a point needs the name of its series"):
        read_points(path, "toy/line")


def test_a_claim_names_the_whole_axis_before_its_value():
    """In our own files an axis stands last, "x = NAME" or "x = NAME in UNIT"; only the unit follows the value."""
    points = {row for path in (facts_folder() / "published").glob("*.csv") for row in axes_of(path)}
    assert len(points) > 400
    for series, x in points:
        name, _, unit = series.rpartition("x = ")[2].partition(" in ")
        assert claim_of(series, x).endswith(f"{name} = {x}" + (f" {unit}".replace(" 1/", "/") if unit else ""))


def axes_of(path):
    if path.name == "rows.csv":
        return []
    return read_points(path).filter(pl.col("series").str.contains(r"\bx = ")).select("series", "x").rows()


@pytest.mark.parametrize("path", [3, None, b"mine.csv"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InputError, match="is not a path"):
        read_points(path)


def test_own_points_without_x_are_judged_and_drawn(tmp_path):
    import workbench as wb

    path = tmp_path / "mine.csv"
    path.write_text('series,x,value\n"FaaSNet over FaaScale, largest speed-up",,1.9\nno such series,,1\n')
    result = wb.experiment("lambdascale/fig7").run("analytic", published=path)
    ours = result.verdicts().tail(-len(wb.experiment("lambdascale/fig7").published)).head(2)
    assert ours["claim"].to_list() == ["FaaSNet over FaaScale, largest speed-up", "no such series"]
    assert ours["published"].to_list() == ["1.9", "1"]
    assert ours["verdict"].to_list() == ["reproduced", "not comparable"]  # 34/18 lies within 10 % of 1.9
    assert result.figure().data


def test_own_points_with_an_unknown_series_or_x_are_told_the_valid_ones(tmp_path):
    import workbench as wb

    path = tmp_path / "mine.csv"
    path.write_text('series,x,value\nno such series,,1\n"FaaSNet over FaaScale, largest speed-up",8,1\n')
    result = wb.experiment("lambdascale/fig7").run("analytic", published=path)
    ours = result.verdicts().tail(-len(wb.experiment("lambdascale/fig7").published)).head(2)
    unknown, elsewhere = ours["reason"]
    assert unknown.startswith("this run has no series of that name; it has '")
    for series in result.tables["headline"]["series"].unique():
        assert repr(series) in unknown
    assert elsewhere == "this run has the series, but not at that x; it has an empty x"
    path.write_text("series,x,value\nchain,7.5,1\n")
    (far,) = wb.experiment("theory/multicast").run("analytic", published=path).verdicts()["reason"].tail(1)
    assert far == "this run has the series, but not at that x; it has 2, 3, 4, …, 62, 63, 64"


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
