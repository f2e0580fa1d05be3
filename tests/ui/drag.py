"""Every slider of every explorer of a notebook, dragged to both ends in JupyterLab.

Takes some minutes a notebook, so it is no part of `make test`.

.venv/bin/python tests/ui/drag.py [NOTEBOOK ...]

One line an end: notebook, cell, explorer, slider, where it stood after, what changed. A line that begins with FAULT is
for mending: a cell that failed, an error of the page, an alert, or an end at which nothing changed and nothing is said.
A sentence that says why there is nothing to draw is an alert too: read it. Exits with 1 if there was a fault.
"""

import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import labdriver as ld
from playwright.sync_api import Error, sync_playwright

from workbench.paths import notebooks_folder

SETTLED_S, ANSWERED_S, PATIENCE_S = 0.6, 10.0, 120.0
"""What stays the same for so long has arrived; an answer is waited for so long, and what runs in the background."""

SHOW_CELL = """async index => {
  const notebook = window.jupyterapp.shell.currentWidget.content;
  notebook.activeCellIndex = index;
  await notebook.scrollToItem(index, 'start');
}"""

MARK = """index => {
  const cell = window.jupyterapp.shell.currentWidget.content.widgets[index];
  const boxes = Array.from(cell.node.querySelectorAll('.widget-vbox .js-plotly-plot'))
    .map(plot => plot.closest('.widget-vbox'));
  const found = Array.from(new Set(boxes));
  found.forEach((box, place) => box.setAttribute('data-explorer', `${index}-${place}`));
  return found.map((box, place) => [`${index}-${place}`, (box.querySelector('h3') || {}).textContent || '']);
}"""

STATE = """name => {
  const box = document.querySelector(`[data-explorer="${name}"]`);
  const plain = (_, value) => ArrayBuffer.isView(value) ? Array.from(value) : value;
  const plot = box.querySelector('.js-plotly-plot');
  const drawn = Array.from(plot.querySelectorAll('.main-svg')).map(svg => svg.innerHTML).join();
  const said = Array.from(box.querySelectorAll('.widget-html')).filter(e => !e.closest('.workbench-control'));
  const alert = box.querySelector('[role=alert]');
  return {
    drawing: drawn + JSON.stringify(plot.data, plain),
    said: said.map(e => e.innerText.trim()).filter(text => text).join(' | '),
    alert: alert ? alert.textContent : '',
  };
}"""

LATE = "[anywidget] Failed to initialize model."
"""What a busy browser says; figures bear it (`workbench/explore/figure.js`)."""

SAYS_WHY = ("What is drawn stays the same", "Press a button")
"""Words that explain an end at which nothing changed."""

BUSY = ("Running", "Computing", "compiling", "Stopping", "waiting for")


def settled(page, name: str, before: dict | None = None) -> dict:
    """What an explorer shows, once it differs from before, no longer changes and nothing runs behind it."""
    end, answered = time.monotonic() + PATIENCE_S, time.monotonic() + ANSWERED_S
    state, since = page.evaluate(STATE, name), time.monotonic()
    while time.monotonic() < end:
        page.wait_for_timeout(150)
        page.wait_for_function(ld.READY)
        now = page.evaluate(STATE, name)
        waits = now == before and time.monotonic() < answered and not says_why(now)
        if now != state or waits or any(word in now["said"] for word in BUSY):
            state, since = now, time.monotonic()
        elif time.monotonic() - since > SETTLED_S:
            break
    return state


def says_why(state: dict) -> bool:
    """Whether an explorer explains why nothing changed."""
    return any(words in state["said"] for words in SAYS_WHY)


def drag_one(page, box, name: str, index: int, where: str) -> int:
    """One slider to both ends, and all controls back; returns the faults."""
    handle = box.locator(".noUi-handle").nth(index)
    label = handle.get_attribute("aria-label") or "?"
    faults, state = 0, settled(page, name)
    for share in (0.0, 1.0):
        stood = handle.get_attribute("aria-valuetext")
        ld.drag(page, handle, share)
        stands = handle.get_attribute("aria-valuetext")
        now = settled(page, name, state if stands != stood else None)
        changed = [part for part in ("drawing", "said") if now[part] != state[part]]
        fault = bool(now["alert"]) or (stands != stood and not changed and not says_why(now))
        faults += fault
        print("FAULT" if fault else "ok", where, f"[{label}] {stood} -> {stands}:", *(changed or ["nothing"]), end="")
        print(
            f" | alert: {now['alert']}" if now["alert"] else "", f"| {now['said'][:600]}" if fault else "", flush=True
        )
        state = now
    box.get_by_title("Put every control back").click()
    return faults


def drag_all(page, name: str) -> int:
    """Every slider of the notebook that is open and has run; returns the faults."""
    faults = 0
    for index in range(page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.length")):
        page.evaluate(SHOW_CELL, index)
        page.wait_for_timeout(300)
        for mark, title in page.evaluate(MARK, index):
            box = page.locator(f'[data-explorer="{mark}"]')
            count = box.locator(".noUi-handle").count()
            print("--", name, f"cell {index}: {title}: {count} sliders", flush=True)
            for place in range(count):
                try:
                    faults += drag_one(page, box, mark, place, f"{name} cell {index}")
                except Error as error:
                    faults += 1
                    print("FAULT", name, f"cell {index}: slider {place} of {title!r}: {error}", flush=True)
    return faults


def _wrong(line) -> list[str]:
    return [line.text] if line.type == "error" else []


def main(names: list[str]) -> int:
    """Run and drag each notebook; the number of faults."""
    faults = 0
    with tempfile.TemporaryDirectory() as root, sync_playwright() as playwright:
        for path in notebooks_folder().glob("*.ipynb"):
            shutil.copy(path, root)
        browser = playwright.chromium.launch(executable_path=ld.CHROMIUM, headless=True, args=ld.FLAGS)
        with ld.lab(root) as base:
            for name in names or sorted(path.stem for path in notebooks_folder().glob("*.ipynb")):
                page, began = browser.new_page(viewport={"width": 1280, "height": 1000}), time.monotonic()
                page.set_default_timeout(60_000)
                problems: list[str] = []
                page.on("pageerror", lambda error, noted=problems: str(error) != LATE and noted.append(str(error)))
                page.on("console", lambda line, noted=problems: noted.extend(_wrong(line)))
                ld.open_notebook(page, base, f"{name}.ipynb")
                failed = ld.run_all(page, timeout_ms=600_000)
                ran = time.monotonic() - began
                faults += len(failed) + drag_all(page, name)
                faults += len(problems)
                took = time.monotonic() - began
                print(
                    "==",
                    name,
                    f"ran in {ran:.0f} s, dragged in {took - ran:.0f} s;",
                    "cells that failed:",
                    failed,
                    end="",
                )
                print("; errors of the page:", problems, flush=True)
                page.close()
        browser.close()
    return faults


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
