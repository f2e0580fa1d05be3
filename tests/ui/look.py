"""Screenshots of every notebook, light and dark, at 1280 and 900 pixels: look at them before you commit a figure.

.venv/bin/python tests/ui/look.py FOLDER [NOTEBOOK ...]
"""

import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import labdriver as ld
from playwright.sync_api import sync_playwright

from workbench.paths import notebooks_folder

THEME = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme}).then(() => null)"


def shoot(page, folder: Path, name: str, theme: str, width: int) -> None:
    """Scroll through the notebook and save one picture a screenful."""
    page.evaluate(THEME, f"JupyterLab {theme}")
    page.wait_for_timeout(1500)
    scroller = page.locator(".jp-WindowedPanel-outer").first
    height = page.viewport_size["height"] - 120
    for index in range(40):
        scroller.evaluate("(element, top) => { element.scrollTop = top; }", index * height)
        page.wait_for_timeout(900)
        page.screenshot(path=folder / f"{name}-{theme.lower()}-{width}-{index:02d}.png")
        if scroller.evaluate("element => element.scrollTop + element.clientHeight >= element.scrollHeight - 2"):
            break


def main(folder: Path, names: list[str]) -> None:
    """Run each notebook once, and show it in each width and theme."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as root, sync_playwright() as playwright:
        for path in notebooks_folder().glob("*.ipynb"):
            shutil.copy(path, root)
        bars = ["--hide-scrollbars"]  # what is cut and what can be scrolled would look the same
        browser = playwright.chromium.launch(
            executable_path=ld.CHROMIUM, headless=True, args=ld.FLAGS, ignore_default_args=bars
        )
        with ld.lab(root) as base:
            for name in names or sorted(path.stem for path in notebooks_folder().glob("*.ipynb")):
                page = browser.new_page()
                page.set_default_timeout(60_000)
                ld.open_notebook(page, base, f"{name}.ipynb")
                print(name, ld.run_all(page, timeout_ms=600_000), flush=True)
                for width in (1280, 900):
                    page.set_viewport_size({"width": width, "height": 1000})
                    page.wait_for_timeout(3000)
                    for theme in ("Light", "Dark"):
                        shoot(page, folder, name, theme, width)
                page.close()
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
