"""One file for readers without Python: what it holds is what was run, and too large a page is refused with a remedy."""

import base64
import gzip
import json
import re

import pytest
from plotly.offline import get_plotlyjs_version

import workbench as wb
from workbench.catalogue import spec
from workbench.errors import UnknownName, UserError
from workbench.explore import exporting
from workbench.explore.positions import sliders_of

FIG5 = wb.experiment("lambdascale/fig5")


def content(page, id="content"):
    packed = re.search(f'<script type="text/plain" id="{id}">([^<]*)</script>', page).group(1)
    return gzip.decompress(base64.b64decode(packed)).decode()


def whole(part, shared):
    """The reader's slower twin of what the page does with what is stored once."""
    if isinstance(part, dict):
        return shared[part["$"]] if "$" in part else {name: whole(item, shared) for name, item in part.items()}
    return [whole(item, shared) for item in part] if isinstance(part, list) else part


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    file = FIG5.export_html(
        tmp_path_factory.mktemp("page") / "p.html", sliders={"nodes": [4, 8, 16], "order": 2}, blocks=6
    )
    return file.read_text()


def test_every_position_is_what_a_run_with_these_settings_draws(page):
    stored = json.loads(content(page))
    orders = next(item.about.choices for item in spec.find("lambdascale/fig5").parameters if item.name == "order")
    assert stored["sizes"] == [3, len(orders)]
    assert len(stored["positions"]) == 3 * len(orders)
    for index in (0, 1 + len(orders), 2 * len(orders)):
        settings = {"nodes": (4, 8, 16)[index // len(orders)], "order": orders[index % len(orders)]}
        wanted = FIG5.run("analytic", blocks=6, **settings)
        drawn = whole(stored["positions"][index], stored["shared"])
        figure = json.loads(wanted.figure().to_json())
        assert drawn["layout"]["title"]["text"] == figure["layout"]["title"]["text"]
        assert wanted.sentence in drawn["below"]
        for trace, other in zip(drawn["data"], figure["data"], strict=True):
            assert trace.get("name") == other.get("name")
            assert trace["x"] == other["x"]
            if trace["type"] == "bar":
                assert trace["y"] == other["y"]


def test_the_page_carries_its_library_and_asks_for_nothing(page):
    assert content(page, "library").lstrip().startswith("/**")
    assert "plotly.js v" in content(page, "library")[:500]
    assert len(page) < exporting.LIMIT_BYTES
    around = re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"(src|href)\s*=|url\(|https?:", around)
    assert "default-src 'none'" in around
    assert "blocks = 6" in around


def test_pages_of_a_folder_share_one_library(tmp_path, page):
    entry = spec.find("lambdascale/fig5")
    for name, blocks in (("a", 4), ("b", 6)):
        exporting.export_page(
            entry, tmp_path / f"{name}.html", {"nodes": [4, 8, 16], "order": 2}, {"blocks": blocks}, share=True
        )
    (library,) = tmp_path.glob("*.js")
    assert f"plotly.js v{get_plotlyjs_version()}" in library.read_text()[:500]
    for name in ("a", "b"):
        text = (tmp_path / f"{name}.html").read_text()
        assert re.findall(r"src\s*=\s*\S+", text) == [f'src="{library.name}"></script>']
        assert len(text) < 100_000
    assert content(text) == content(page)  # the same positions as in the page that carries its library


def test_numbers_are_rounded_and_what_recurs_is_stored_once():
    shared = {}
    numbers = [1 / 3 * 10**n for n in range(9)]
    twice = exporting._stored({"a": numbers, "b": list(numbers), "c": [1 / 3], "t": "x" * 200}, shared)
    assert twice["a"] == twice["b"] == {"$": 0}
    assert twice["c"] == [0.333333]
    assert [json.loads(text) for text in shared] == [[float(f"{n:.6g}") for n in numbers], "x" * 200]


@pytest.mark.parametrize(
    ("sliders", "wrong", "words"),
    [
        ({"nods": 3}, UnknownName, "near names: nodes"),
        ({"nodes": [8, 1_000_000]}, UserError, "out of range"),
        ({"nodes": "many"}, UserError, "takes a list of values, or how many"),
        ({"nodes": 1}, UserError, "2 positions or more"),
        ({"nodes": 10**9}, UserError, "at most 1,000 positions"),
        ({("nodes",): 3}, UnknownName, "named"),
        (["nodes", ["blocks"]], UnknownName, "named"),
        (5, UserError, "sliders are names, or name -> values, got 5"),
        ({"nodes": []}, UserError, "has no positions"),
        ([], UserError, "nothing to move"),
        ({"nodes": 60, "blocks": 60}, UserError, r"slider 'nodes' has \d+ positions, give about \d+"),
    ],
)
def test_sliders_that_cannot_be_are_refused_in_a_sentence_before_anything_runs(sliders, wrong, words, tmp_path):
    told = []
    with pytest.raises(wrong, match=words):
        FIG5.export_html(tmp_path / "p.html", sliders=sliders, progress=told.append)
    assert told == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "x" * 300, "a\0b", "mine.txt/page.html", "folder"])
def test_places_that_cannot_be_are_refused_before_anything_runs(name, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    (tmp_path / "folder").mkdir()
    told = []
    with pytest.raises(UserError, match=r"name another\.|for a path|not a path|cannot be written to"):
        FIG5.export_html(f"{tmp_path}/{name}", sliders={"nodes": [4, 8]}, progress=told.append)
    assert told == []
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "mine.txt"]
    assert FIG5.export_html(tmp_path / "new" / "deep" / "page.html", sliders={"nodes": [4, 8]}).is_file()


def test_a_cluster_has_no_range_so_its_positions_are_listed():
    entry = spec.find("lambdascale/block-count")
    with pytest.raises(UserError, match="slider 'cluster' has no range; list its values"):
        sliders_of(entry, entry.bind({}), ["cluster"])
    (slider,) = sliders_of(entry, entry.bind({}), {"cluster": ["blitzscale-a", "lambdascale-testbed1"]})
    assert slider.texts[slider.start] == "lambdascale-testbed1"


@pytest.mark.parametrize("count", [2, 3, 5, 9])
def test_positions_spread_over_the_range_with_both_ends_and_the_start(count):
    for entry in spec.all_specs().values():
        values = entry.bind({})
        for item in entry.parameters:
            if item.many or item.kind not in (int, float) or item.about.low is None or item.about.high is None:
                continue
            (slider,) = sliders_of(entry, values, {item.name: count})
            assert list(slider.values) == sorted(set(slider.values))
            assert (slider.values[0], slider.values[-1]) == (item.about.low, item.about.high)
            assert slider.values[slider.start] == values[item.name]
            assert len(slider.values) <= count + 1
            for value in slider.values:
                assert item.check(value, entry.id) == value


def test_a_page_that_is_too_large_says_what_to_cut_and_leaves_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "p.html"
    file.write_text("the old page")
    monkeypatch.setattr(exporting, "LIMIT_BYTES", 1_950_000)
    with pytest.raises(UserError, match=r"would have \d\.\d MB, .* slider 'nodes' has 3 positions, give about \d"):
        FIG5.export_html(file, sliders={"nodes": [4, 8, 16], "blocks": [4, 8]})
    assert [path.name for path in tmp_path.iterdir()] == ["p.html"]
    assert file.read_text() == "the old page"


def test_what_is_interrupted_leaves_nothing(tmp_path):
    def interrupt(text):
        if text == "position 2 of 2":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FIG5.export_html(tmp_path / "p.html", sliders={"nodes": [4, 8]}, progress=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_where_every_position_is_refused_the_page_is_too(tmp_path):
    with pytest.raises(UserError, match="one accelerator per host"):
        wb.experiment("blitzscale/fig14").export_html(
            tmp_path / "p.html", sliders={"cluster": ["lambdascale-testbed1"]}
        )
    assert list(tmp_path.iterdir()) == []
