"""Explorers in a real JupyterLab: moving a control changes the drawing, errors are seen, nothing leaves the machine."""

import labdriver as ld
import pytest

pytestmark = pytest.mark.ui

ALERTS = "() => Array.from(document.querySelectorAll('[role=alert]')).map(e => e.textContent).filter(t => t)"

LATE = """
  const made = URL.createObjectURL.bind(URL), wait = "await new Promise(done => setTimeout(done, 5000));";
  URL.createObjectURL = part => made(part.size > 1e6 ? new Blob([wait, part], { type: part.type }) : part);
"""
"""Plotly comes five seconds late, as on a busy machine."""

GIVEN_UP = "const made = AbortSignal.timeout.bind(AbortSignal); AbortSignal.timeout = () => made(1);"
"""anywidget waits a thousandth of a second for a widget, not two seconds."""


def test_a_slider_moves_the_drawing(page, base, tmp_path):
    ld.open_notebook(page, base, "schedule.ipynb")
    assert ld.run_all(page) == []
    first = ld.figure(page)
    assert first["title"] == "Binomial pipeline: 8 blocks to 8 nodes"
    handle = ld.slider(page, "Nodes, source included")
    assert handle.get_attribute("aria-label") == "Nodes, source included"
    ld.press(handle, "ArrowRight")
    second = ld.wait_redrawn(page, first)
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot').layout.title.text === 'Binomial pipeline: 8 blocks to 9 nodes'"
    )
    assert len(second["traces"]) >= len(first["traces"])
    ld.drag(page, handle, 1.0)
    page.wait_for_function("() => document.querySelector('.js-plotly-plot').layout.title.text.endsWith('to 64 nodes')")
    page.wait_for_function("() => document.body.innerText.includes('8 blocks reach all 64 nodes in 13 steps')")
    assert page.evaluate(ALERTS) == []
    assert page.problems == []


def test_texts_below_bars_stay_texts_when_bars_move(page, base):
    """Plotly forgets the type of an axis whose data change: "0", "+1" and "not enough" became a scale of numbers."""
    ld.open_notebook(page, base, "bars.ipynb")
    assert ld.run_all(page) == []
    first = ld.figure(page)
    ld.press(ld.slider(page, "Hosts that fail at the same time"), "ArrowRight")
    ld.wait_redrawn(page, first)
    assert page.evaluate("() => document.querySelector('.js-plotly-plot')._fullLayout.xaxis.type") == "category"
    assert page.problems == []


@pytest.mark.parametrize("busy", [LATE, GIVEN_UP], ids=["late", "given-up"])
def test_on_a_busy_machine_too_a_slider_moves_the_drawing(busy, page, base):
    """anywidget hands nothing to a widget that has not begun after two seconds: its figure never moved again."""
    page.add_init_script(busy)
    ld.open_notebook(page, base, "blocks.ipynb")
    assert ld.run_all(page) == []
    handle = ld.slider(page, "Nodes, source included")
    ld.press(handle, "ArrowRight", times=2)
    assert busy == GIVEN_UP or page.locator(".js-plotly-plot").count() == 0
    title = "() => document.querySelector('.js-plotly-plot')?.layout.title.text.includes('to %s nodes')"
    page.wait_for_function(title % 10)
    ld.press(handle, "ArrowRight")
    page.wait_for_function(title % 11)
    ld.figure(page)
    assert set(page.problems) <= {"[anywidget] Failed to initialize model."}


def test_a_page_that_is_loaded_again_shows_the_figure_as_it_stood(page, base):
    ld.open_notebook(page, base, "blocks.ipynb")
    assert ld.run_all(page) == []
    first, handle = ld.figure(page), ld.slider(page, "Nodes, source included")
    ld.press(handle, "ArrowRight")
    moved = ld.wait_redrawn(page, first)
    page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save').then(() => null)")
    page.reload()
    again = ld.figure(page)
    assert again["title"] == moved["title"] != first["title"]
    assert [trace["y"] for trace in again["traces"]] == [trace["y"] for trace in moved["traces"]]
    assert handle.get_attribute("aria-valuenow") == "9.0"
    assert page.problems == []


def test_numbers_can_be_typed_and_buttons_simulate(page, base):
    ld.open_notebook(page, base, "blocks.ipynb")
    assert ld.run_all(page) == []
    first = ld.figure(page)
    assert not any("simulation" in trace["name"] for trace in first["traces"] if trace["name"])
    box = page.get_by_role("spinbutton", name="Nodes, source included")
    box.fill("16")
    box.press("Enter")
    page.wait_for_function("() => document.querySelector('.js-plotly-plot').layout.title.text.includes('to 16 nodes')")
    page.get_by_role("button", name="Simulate").click()
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot').data.some(t => (t.name || '').includes('simulation'))",
        timeout=60_000,
    )
    assert page.evaluate(ALERTS) == []
    assert page.problems == []


def test_before_a_class_letters_grow_and_everything_goes_back_by_key_alone(page, base):
    ld.open_notebook(page, base, "blocks.ipynb")
    assert ld.run_all(page) == []
    first = ld.figure(page)
    ld.press(ld.slider(page, "Nodes, source included"), "ArrowRight")
    moved = ld.wait_redrawn(page, first)
    page.get_by_role("button", name="Larger text").press("Enter")
    ld.wait_redrawn(page, moved)
    letters = [".workbench-label", ".js-plotly-plot .xtitle", ".js-plotly-plot .legendtext"]
    sizes = page.evaluate(
        "all => all.map(s => parseFloat(getComputedStyle(document.querySelector(s)).fontSize))", letters
    )
    assert min(sizes) >= 18
    page.get_by_role("button", name="Usual text").press("Enter")
    page.get_by_title("Put every control back").press("Enter")
    page.wait_for_function("t => document.querySelector('.js-plotly-plot').layout.title.text === t", arg=first["title"])
    assert page.evaluate(ALERTS) == []
    assert page.problems == []


@pytest.mark.parametrize("width", [1280, 900])
def test_the_figure_follows_the_width_of_the_page(page, base, width):
    page.set_viewport_size({"width": width, "height": 1000})
    ld.open_notebook(page, base, "blocks.ipynb")
    assert ld.run_all(page) == []
    page.wait_for_timeout(3000)
    shown = ld.figure(page)
    assert shown["drawn"] <= shown["box"] + 1
    assert shown["drawn"] > 0.95 * shown["box"]
    pane = page.locator(".jp-NotebookPanel .jp-OutputArea-output").last.bounding_box()
    assert shown["box"] <= pane["width"] + 1


def test_a_figure_that_grew_taller_follows_the_width_of_the_page_still(page, base):
    """Plotly, told a height, holds the width too: beside a sidebar opened later, the figure was cut off."""
    ld.open_notebook(page, base, "blocks.ipynb")
    assert ld.run_all(page) == []
    first = ld.figure(page)
    page.get_by_role("button", name="Simulate").click()  # its legend needs room
    page.wait_for_function("() => document.querySelector('.js-plotly-plot').data.some(t => /simulation/.test(t.name))")
    tall = page.evaluate("() => document.querySelector('.js-plotly-plot .main-svg').getBoundingClientRect().height")
    page.set_viewport_size({"width": 900, "height": 1000})
    page.wait_for_function(
        """wide => {
          const plot = document.querySelector('.js-plotly-plot'), drawn = plot.querySelector('.main-svg');
          const width = drawn.getBoundingClientRect().width;
          return width < wide - 100 && Math.abs(width - plot.getBoundingClientRect().width) < 2;
        }""",
        arg=first["drawn"],
    )
    svg = page.locator(".js-plotly-plot .main-svg").first.bounding_box()
    assert svg["height"] == tall
    assert page.problems == []


def test_on_a_narrow_page_tables_break_their_lines_and_the_widest_can_be_scrolled(page, base):
    page.set_viewport_size({"width": 900, "height": 1000})
    ld.open_notebook(page, base, "tables.ipynb")
    assert ld.run_all(page) == []
    boxes = page.evaluate(
        """() => Array.from(document.querySelectorAll('.jp-OutputArea-output table')).map(table => {
          const box = table.parentElement, cell = table.closest('.jp-OutputArea-output').getBoundingClientRect();
          return { beyond: table.offsetWidth - box.clientWidth, scrolls: getComputedStyle(box).overflowX,
            inside: box.getBoundingClientRect().right <= cell.right + 1, room: box.clientWidth };
        })"""
    )
    assert len(boxes) == 3
    assert all(box["inside"] and box["scrolls"] == "auto" and box["room"] > 300 for box in boxes)
    assert max(box["beyond"] for box in boxes[:2]) <= 1
    assert boxes[2]["beyond"] > 1  # nine columns


def test_a_paper_can_be_browsed_by_figure(page, base):
    ld.open_notebook(page, base, "browse.ipynb")
    assert ld.run_all(page) == []
    ld.figure(page)
    listing = page.locator(".widget-select select").first
    labels = listing.locator("option").all_text_contents()
    missing = next(label for label in labels if label.startswith("○"))
    listing.select_option(label=missing)
    page.wait_for_function("() => document.body.innerText.includes('an image that could not be read')")
    assert page.problems == []


def test_a_failing_cell_is_seen(page, base):
    ld.open_notebook(page, base, "broken.ipynb")
    assert [error["ename"] for error in ld.run_all(page)] == ["ZeroDivisionError"]
