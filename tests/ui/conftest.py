"""One JupyterLab and one browser for all UI tests, and a page that notes every problem."""

import os

import labdriver
import nbformat
import pytest

KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}
CELLS = {
    "schedule": ["import workbench as wb", "wb.experiment('theory/schedule').explore()"],
    "blocks": ["import workbench as wb", "wb.experiment('lambdascale/block-count').explore()"],
    "bars": ["import workbench as wb", "wb.experiment('blitzscale/redundancy').explore()"],
    "tables": [
        "import workbench as wb",
        "wb.experiments()[:8, ['id', 'title', 'question']]",
        "wb.claims('chains')[:, ['claim', 'reading', 'correction']]",
        "wb.experiment('lambdascale/fig7').run('analytic').verdicts()",
    ],
    "browse": ["import workbench as wb", "wb.browse('lambdascale')"],
    "broken": ["1 / 0"],
}


@pytest.fixture(scope="session")
def base(tmp_path_factory):
    """The address of a private JupyterLab on a folder of small notebooks."""
    if not os.path.exists(labdriver.CHROMIUM):
        pytest.skip(f"no browser at {labdriver.CHROMIUM}; apt-get install chromium, or set UI_CHROMIUM")
    root = tmp_path_factory.mktemp("notebooks")
    for name, sources in CELLS.items():
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        notebook.metadata.kernelspec = KERNEL
        nbformat.write(notebook, root / f"{name}.ipynb")
    with labdriver.lab(root) as url:
        yield url


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=labdriver.CHROMIUM, headless=True, args=labdriver.FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def visitor(browser):
    """Whoever opens the pages of JupyterLab: the browser keeps their scripts, and loads them once."""
    with browser.new_context() as context:
        yield context


@pytest.fixture
def page(visitor, base):
    """A page whose `problems` lists console errors and requests that leave this machine."""
    opened = visitor.new_page()
    opened.set_viewport_size({"width": 1280, "height": 1100})
    opened.set_default_timeout(60_000)  # other tests run beside
    opened.problems = []
    opened.on("console", lambda line: opened.problems.append(line.text) if line.type == "error" else None)
    opened.on("pageerror", lambda error: opened.problems.append(str(error)))
    opened.on("request", lambda asked: _note(opened.problems, asked.url, base))
    yield opened
    opened.close()


def _note(problems: list[str], url: str, base: str) -> None:
    if url.startswith("http") and not url.startswith(base):
        problems.append(f"left this machine: {url}")
