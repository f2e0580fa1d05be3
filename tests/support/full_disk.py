"""Writes everything that the workbench keeps, again on a disk that has become full, and prints as JSON what was left.

Run as `full_disk.py FOLDER MODE`: with MODE "disk" the folder's own small disk is filled up; with "files" no file may
grow over a few kB, and is cut short there, which any system can do.
"""

import io
import json
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import plotly.io

import workbench as wb
from workbench.catalogue import recorded, running, spec
from workbench.catalogue.recorded import record
from workbench.cli import main, pages
from workbench.sweeps import Task, run_tasks
from workbench.workloads import convert

ROOM_BYTES = 2048
FILLER = ".filler"


@contextmanager
def full(folder: Path, mode: str) -> Iterator[None]:
    """A disk with next to no room."""
    if mode == "files":
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_BYTES, hard))
        yield
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        return
    with (folder / FILLER).open("wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            filler.truncate(filler.tell() - 4096)
    yield
    (folder / FILLER).unlink()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by name."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != FILLER]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def attempt(write: Callable[[], object]) -> str:
    """What somebody is told."""
    try:
        write()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "written"


def draw(figures, files, **_) -> None:
    """Stands for the browser that draws still images."""
    for number, file in enumerate(files):
        Path(file).write_text(f"<svg>{number}{' ' * 9000}</svg>")


def gallery(folder: Path) -> None:
    """Two experiments by their formulas, as `make gallery` writes them."""
    said = io.StringIO()
    with redirect_stderr(said):
        code = main(["reproduce", "blitzscale", "--gallery", "--no-torch", "--out", str(folder)])
    if code:
        raise RuntimeError(said.getvalue())


def everything(folder: Path) -> dict[str, Callable[[], object]]:
    """Name -> a function that writes it."""
    experiment = wb.experiment("lambdascale/block-count")
    result = experiment.run("analytic")
    trace = wb.trace("azure-code-2023-like", window=(0, 600))
    a100s = wb.cluster(hosts=1, accelerators=1, accelerator="a100-80gb-sxm", nic_bytes_per_s=25e9)
    run = wb.simulate("fixed", cluster=a100s, models="llama-3-8b", trace=trace, backend="simpy")
    experiment_spec = spec.find(experiment.id)
    entries = {id: spec.find(id) for id in ("blitzscale/fig13", "blitzscale/fig14")}
    once = running.run
    outcomes = {id: once(entry, {}, backends="analytic", quick=True) for id, entry in entries.items()}
    spec.all_specs = lambda: entries
    running.run = lambda entry, given, **_: outcomes[entry.id]
    pages.chrome_found, plotly.io.write_images = lambda: True, draw
    recorded.recorded_file = lambda experiment: folder / "recorded" / "it.json"
    recorded.find = lambda experiment: experiment_spec._replace(keep=spec.Keep("analytic"))
    return {
        "result": lambda: result.save(folder / "result" / "it"),
        "run": lambda: run.save(folder / "run" / "it"),
        "trace": lambda: convert(trace, folder / "trace" / "it.csv"),
        "events": lambda: run.chrome_trace(folder / "events" / "it.json"),
        "recorded": lambda: record(result.outcome),
        "page": lambda: pages.write_page(outcomes["blitzscale/fig14"], "title", "question", folder / "page"),
        "gallery": lambda: gallery(folder / "gallery"),
    }


def swept(folder: Path, mode: str) -> dict:
    """A sweep whose third result finds no room, and the same once there is some."""
    sizes = (10, 10, 5000, 10)
    tasks = [Task("sweep_tasks:heavy", {"number": n, "floats": size}, str(n)) for n, size in enumerate(sizes)]

    def run():
        with ThreadPoolExecutor(1) as pool:
            return run_tasks(tasks, executor=pool, folder=folder / "sweep")

    run_tasks(tasks[:1], executor=ThreadPoolExecutor(1), folder=folder / "sweep")
    with full(folder, mode):
        told = attempt(run)
    left = [name for name in contents(folder / "sweep") if name.rpartition("/")[0].count("/") != 1 or "/." in name]
    again = run()
    rows = [len(result.table("numbers")) for result in again]
    return {"told": told, "left": left, "kept": [result.kept for result in again], "rows": rows, "sizes": sizes}


def report(folder: Path, mode: str) -> dict:
    """For everything that is written: what was told, and whether the old files, and only they, are left."""
    found = {"sweep": swept(folder, mode)}
    for name, write in everything(folder).items():
        place = folder / name
        write()
        before = contents(place)
        with full(folder, mode):
            told = attempt(write)
        after = contents(place)
        again = attempt(write)
        new = contents(place)
        found[name] = {
            "told": told,
            "changed": sorted(key for key in {*before, *after} if before.get(key) != after.get(key)),
            "again": again,
            "as before": set(new) == set(before),
        }
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.stdout, out = sys.stderr, sys.stdout
    print(json.dumps(report(Path(sys.argv[1]), sys.argv[2])), file=out)
