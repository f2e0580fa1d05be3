"""`workbench reproduce` keeps what was computed, whatever fails, and says what failed."""

import importlib.util
import os
import subprocess
import sys

import plotly.io
import pytest

from workbench.catalogue import running, spec, storing
from workbench.cli import main, offline, pages

RUN = running.run


@pytest.fixture(autouse=True)
def formulas_only(monkeypatch):
    """Reproduce two experiments by their formulas alone, and draw no images unless a test says how."""
    entries = {id: spec.find(id) for id in ("blitzscale/fig13", "blitzscale/fig14")}
    monkeypatch.setattr(spec, "all_specs", lambda: entries)
    monkeypatch.setattr(running, "run", lambda entry, given, **_: RUN(entry, given, backends="analytic", quick=True))
    monkeypatch.setattr(pages, "chrome_found", lambda: False)


def reproduce(capsys, out, *more):
    code = main(["reproduce", "blitzscale", "--out", str(out), *more])
    shown, said = capsys.readouterr()
    return code, shown, said


def drawing(monkeypatch, write):
    """A browser is there, and `write(paths)` stands for what it does."""
    monkeypatch.setattr(pages, "chrome_found", lambda: True)
    monkeypatch.setattr(plotly.io, "write_images", lambda figures, files, **_: write(files))


def draw_all(files):
    for file in files:
        with open(file, "w") as image:
            image.write("<svg/>")


def test_without_a_browser_all_else_is_written(capsys, tmp_path):
    code, shown, said = reproduce(capsys, tmp_path)
    assert code == 0
    assert "No still images: drawing them needs a browser; install Chrome or Chromium." in said
    assert f"Report: {tmp_path / 'REPORT.md'}" in shown
    assert "![" not in (tmp_path / "REPORT.md").read_text()
    for name in ("blitzscale-fig13", "blitzscale-fig14"):
        assert (tmp_path / f"{name}.html").is_file()
        assert storing.load(tmp_path / name).experiment == name.replace("-", "/")


@pytest.mark.parametrize("error", [ZeroDivisionError("division by zero"), MemoryError(), KeyError("hosts")])
def test_one_experiment_that_breaks_takes_nothing_from_the_others(capsys, tmp_path, monkeypatch, error):
    run = running.run

    def breaks(entry, given, **more):
        if entry.id == "blitzscale/fig13":
            raise error
        return run(entry, given, **more)

    monkeypatch.setattr(running, "run", breaks)
    code, _, said = reproduce(capsys, tmp_path)
    assert code == 1
    assert f"blitzscale/fig13: {type(error).__name__}: " in said
    assert said.splitlines()[-1] == "workbench: 1 of 2 experiments failed: blitzscale/fig13."
    report = (tmp_path / "REPORT.md").read_text()
    assert f"- `blitzscale/fig13`: {type(error).__name__}: " in report
    assert "`blitzscale/fig14`" in report
    assert storing.load(tmp_path / "blitzscale-fig14").experiment == "blitzscale/fig14"
    assert not (tmp_path / "blitzscale-fig13.html").exists()


def test_ctrl_c_in_a_compiled_kernel_stops_all_of_it(capsys, tmp_path):
    """As numba hands it on: as the cause of another error, which no experiment has failed with."""
    code = (
        "import os, subprocess, sys\n"
        "import numba\n"
        "from workbench.catalogue import running\n"
        "from workbench.cli import main\n"
        "@numba.njit\n"
        "def spin(steps):\n"
        "    drawn = 1\n"
        "    for step in range(steps):\n"
        "        drawn ^= (drawn << 13) ^ (drawn >> 7) ^ step\n"
        "    return drawn\n"
        "def run(entry, given, **_):\n"
        "    print('at', flush=True)\n"
        "    spin(1)\n"
        "    subprocess.Popen(['sh', '-c', f'sleep 0.2; kill -INT {os.getpid()}'])\n"
        "    spin(2_000_000_000)\n"
        "running.run = run\n"
        f"sys.exit(main(['reproduce', 'blitzscale', '--out', {str(tmp_path)!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "at\n")
    assert done.stderr.splitlines()[-1] == "workbench: stopped."


@pytest.mark.parametrize(
    "then", ["raise RuntimeError('no compiled object yet')", "for _ in range(50): time.sleep(0.1)"]
)
def test_ctrl_c_in_a_call_back_of_the_compiler_stops_all_of_it(then, tmp_path):
    """Python prints what is raised there, and goes on; the compiler may fail over what it did not get."""
    code = (
        "import ctypes, sys, time\n"
        "from workbench.catalogue import running\n"
        "from workbench.cli import main\n"
        "def stop(_):\n"
        "    raise KeyboardInterrupt\n"
        "def run(entry, given, **_):\n"
        "    print('at', flush=True)\n"
        "    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(stop)(1)\n"
        f"    {then}\n"
        "running.run = run\n"
        f"sys.exit(main(['reproduce', 'blitzscale', '--out', {str(tmp_path)!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (1, "at\n")
    assert done.stderr.splitlines()[-1] == "workbench: stopped."


def test_in_a_log_each_experiment_is_named_with_how_long_its_real_run_may_take(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    _, _, said = reproduce(capsys, tmp_path)
    lines = [line for line in said.splitlines() if " of 2: " in line]
    assert lines == [
        "1 of 2: blitzscale/fig13, its real run takes up to about 60 s",
        "2 of 2: blitzscale/fig14",
    ]
    _, _, said = reproduce(capsys, tmp_path, "--no-torch")
    assert "1 of 2: blitzscale/fig13\n" in said
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torch" else name)
    _, _, said = reproduce(capsys, tmp_path)
    assert "1 of 2: blitzscale/fig13\n" in said


def test_what_cannot_be_written_is_named_and_the_rest_is(capsys, tmp_path):
    (tmp_path / "blitzscale-fig13").mkdir()
    (tmp_path / "blitzscale-fig13" / "mine.txt").write_text("something else")
    code, _, said = reproduce(capsys, tmp_path)
    assert code == 1
    assert "blitzscale-fig13 exists and is not a saved result" in said
    assert (tmp_path / "blitzscale-fig13" / "mine.txt").read_text() == "something else"
    assert (tmp_path / "blitzscale-fig14" / "result.json").is_file()
    assert "## " in (tmp_path / "REPORT.md").read_text()


def test_images_are_written_whole_and_put_into_the_report(capsys, tmp_path, monkeypatch):
    drawing(monkeypatch, draw_all)
    code, _, said = reproduce(capsys, tmp_path)
    assert (code, "No still images" in said) == (0, False)
    assert (tmp_path / "blitzscale-fig13.svg").read_text() == "<svg/>"
    assert "](blitzscale-fig13.svg)" in (tmp_path / "REPORT.md").read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize("more", [[], ["--gallery"]])
def test_a_browser_that_dies_costs_no_more_than_the_images(capsys, tmp_path, monkeypatch, more):
    def die(files):
        draw_all(files[:1])
        raise RuntimeError("the browser\nwent away")

    drawing(monkeypatch, die)
    (tmp_path / "blitzscale-fig13.svg").write_text("the old one")
    code, _, said = reproduce(capsys, tmp_path, *more)
    assert code == (1 if more else 0)
    assert "No still images: RuntimeError: the browser went away" in said
    assert (tmp_path / "blitzscale-fig13.svg").read_text() == "the old one"
    assert "`blitzscale/fig14`" in (tmp_path / "REPORT.md").read_text()
    assert (tmp_path / "blitzscale-fig14.html").is_file() == (not more)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_figure_that_cannot_be_drawn_costs_no_more_than_pages_and_images(capsys, tmp_path, monkeypatch):
    import workbench.figures

    drawing(monkeypatch, draw_all)
    monkeypatch.setattr(workbench.figures, "draw", lambda outcome: 1 / 0)
    monkeypatch.setattr(pages, "draw", lambda outcome: 1 / 0)
    code, _, said = reproduce(capsys, tmp_path)
    assert code == 1
    assert "No still images: ZeroDivisionError" in said
    assert "`blitzscale/fig13`" in (tmp_path / "REPORT.md").read_text()


def test_a_gallery_links_pages_with_sliders_and_one_that_cannot_be_written_costs_no_more_than_them(
    capsys, tmp_path, monkeypatch
):
    drawing(monkeypatch, draw_all)
    monkeypatch.setattr(offline, "EXPLORERS", {"blitzscale/fig13": {"targets": [2, 4]}, "aegaeon/fig4": {}})
    code, _, _ = reproduce(capsys, tmp_path, "--gallery")
    page = "explorers/blitzscale-fig13.html"
    assert code == 0
    assert (tmp_path / page).is_file()
    assert [path.suffix for path in sorted((tmp_path / "explorers").iterdir())] == [".html", ".js"]
    report = (tmp_path / "REPORT.md").read_text()
    title = spec.find("blitzscale/fig13").title
    assert f"- [{title}]({page}) (`blitzscale/fig13`)" in report
    assert report.count(page) == 2
    monkeypatch.setattr(offline, "EXPLORERS", {"blitzscale/fig13": {"targets": []}})
    code, _, said = reproduce(capsys, tmp_path, "--gallery")
    assert code == 1
    assert "No pages with sliders: blitzscale/fig13: slider 'targets' has no positions" in said
    assert "](blitzscale-fig13.svg)" in (tmp_path / "REPORT.md").read_text()


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda patch: None, "workbench: --gallery needs a browser; install Chrome or Chromium.\n"),
        (
            lambda patch: patch.setattr("importlib.util.find_spec", lambda name: None),
            'workbench: --gallery needs kaleido, which is not installed: pip install "workbench-llm[lab]".\n',
        ),
    ],
)
def test_a_gallery_without_a_browser_is_refused_before_anything_runs(capsys, tmp_path, monkeypatch, prepare, sentence):
    monkeypatch.setattr(running, "run", lambda *_, **__: pytest.fail("it ran"))
    prepare(monkeypatch)
    code, _, said = reproduce(capsys, tmp_path / "out", "--gallery")
    assert (code, said) == (2, sentence)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "run", lambda *_, **__: pytest.fail("it ran"))
    (tmp_path / "file").write_text("")
    code, _, said = reproduce(capsys, tmp_path / "file")
    assert code == 2
    assert said == f"workbench: {tmp_path / 'file'} is not a folder; give another --out.\n"


def test_a_folder_without_write_permission_is_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    code, _, said = reproduce(capsys, tmp_path)
    assert (code, said) == (2, f"workbench: {tmp_path} cannot be written to; give another --out.\n")
