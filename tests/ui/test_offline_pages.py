"""An exported explorer in a browser, from a file and without any server: moving a slider changes the figure."""

import os
import shutil
from pathlib import Path

import labdriver as ld
import pytest

import workbench as wb

pytestmark = pytest.mark.ui


@pytest.fixture
def offline(request):
    """A page of a browser that has no network; `problems` lists console errors, `asked` all that it asked for."""
    if not os.path.exists(ld.CHROMIUM):
        pytest.skip(f"no browser at {ld.CHROMIUM}; apt-get install chromium, or set UI_CHROMIUM")
    browser = request.getfixturevalue("browser")
    context = browser.new_context(viewport={"width": 1100, "height": 1000}, offline=True)
    page = context.new_page()
    page.problems, page.asked = [], []
    page.on("console", lambda line: page.problems.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    yield page
    context.close()


def test_a_slider_moves_the_figure_without_python_or_network(offline, tmp_path):
    exp = wb.experiment("lambdascale/fig5")
    sliders = {"nodes": [2, 4, 8, 16], "sources": [1, 2, 4], "order": 3}
    file = exp.export_html(tmp_path / "a page.html", sliders=sliders, blocks=4)
    offline.goto(file.as_uri())
    first = ld.figure(offline)
    handle = offline.get_by_label("Nodes, sources included")
    assert handle.get_attribute("aria-valuetext") == "8"
    handle.press("ArrowRight")
    second = ld.wait_redrawn(offline, first)
    for shown, nodes in ((first, 8), (second, 16)):
        wanted = exp.run("analytic", nodes=nodes, blocks=4).figure()
        assert shown["title"] == wanted.layout.title.text
        assert [len(trace["x"]) for trace in shown["traces"]] == [len(trace.x or ()) for trace in wanted.data]
    offline.get_by_role("button", name="Reset", exact=True).press("Enter")
    assert ld.wait_redrawn(offline, second)["title"] == first["title"]
    offline.get_by_label("Order of the blocks").select_option(index=1)
    offline.wait_for_function("() => document.querySelector('#alert').textContent === ''")
    file = wb.experiment("blitzscale/fig14").export_html(
        tmp_path / "refused.html", sliders={"cluster": ["blitzscale-a", "lambdascale-testbed1"]}
    )
    offline.goto(file.as_uri())
    ld.figure(offline)
    offline.get_by_label("Cluster").select_option(label="lambdascale-testbed1")
    offline.wait_for_function("() => document.querySelector('#alert').textContent.includes('one accelerator per host')")
    assert offline.problems == []
    assert [url for url in offline.asked if not url.startswith(("file:", "data:", "blob:"))] == []


def test_every_page_of_the_gallery_moves_and_one_without_its_library_says_so(offline, tmp_path):
    pages = sorted((Path(__file__).resolve().parents[2] / "figures" / "explorers").glob("*.html"))
    for file in pages:
        offline.goto(file.as_uri())
        first = ld.figure(offline)
        offline.locator("#controls input").last.press("Home")
        ld.wait_redrawn(offline, first)
    assert offline.problems == []
    assert [url for url in offline.asked if not url.startswith(("file:", "data:", "blob:"))] == []
    shutil.copy(pages[0], tmp_path / "alone.html")
    offline.goto((tmp_path / "alone.html").as_uri())
    offline.wait_for_function("() => document.querySelector('#alert').textContent.includes('fetch its whole folder')")
