"""measure, calibrate, warm, doctor, lab: this machine."""

import argparse
import importlib.util
import os
import platform
from pathlib import Path

from workbench.cli.places import require_writable
from workbench.errors import UserError, WorkbenchError, install_command
from workbench.paths import cache_folder, facts_folder, measured_folder, trace_folders, user_data_folder


def add(commands: argparse._SubParsersAction) -> None:
    """Enter the commands into the parser."""
    measure = commands.add_parser("measure", help="measure this machine; the result is the profile `local`")
    measure.add_argument("--seconds", type=float, default=60.0, help="at most this long (default 60)")
    measure.add_argument(
        "--peer", metavar="HOST:PORT", help="also host to host, against a `workbench measure --listen`"
    )
    measure.add_argument("--listen", metavar="ADDRESS[:PORT]", help="be the far end of one peer's measurement")
    measure.add_argument("--token", help="the one-time token that --listen printed")
    measure.set_defaults(run=_measure)

    calibrate = commands.add_parser("calibrate", help="fit step times to your own benchmark rows and save them by name")
    calibrate.add_argument("file", metavar="FILE", help="CSV, JSON Lines or Parquet, one measured step a row")
    calibrate.add_argument("--model", metavar="NAME|FILE", help="what was measured, unless a column says so")
    calibrate.add_argument("--accelerator", metavar="NAME|FILE", help="on what, unless a column says so")
    calibrate.add_argument("--dtype", metavar="FORMAT", help="number format of the weights, by default the model's own")
    calibrate.add_argument(
        "--column", action="append", default=[], metavar="OURS=THEIRS", help="which column holds what"
    )
    calibrate.add_argument("--unit", choices=("s", "ms", "us", "ns"), default="s", help="of the measured times")
    calibrate.add_argument("--name", help="of the saved profile, by default the file's")
    calibrate.set_defaults(run=_calibrate)

    warm = commands.add_parser("warm", help="compile every kernel once, so that nothing compiles later")
    warm.set_defaults(run=_warm)

    doctor = commands.add_parser("doctor", help="versions, what is missing and the command that adds it")
    doctor.set_defaults(run=_doctor)

    lab = commands.add_parser("lab", help="open JupyterLab on the notebooks")
    lab.add_argument("--no-browser", action="store_true", help="do not open one; print the address")
    lab.add_argument("--copy-to", metavar="FOLDER", help="work on copies of the notebooks in this folder")
    lab.set_defaults(run=_lab)


HOME = "set WORKBENCH_HOME to a folder that can be written"


def _measure(options: argparse.Namespace) -> None:
    from workbench import profiles
    from workbench.blending.real.measuring import measure_overlap
    from workbench.cli.tables import progress, show

    if options.listen is not None:
        address, _, port = options.listen.partition(":")
        if port and not (port.isdecimal() and int(port) < 2**16):
            raise UserError(f"--listen takes ADDRESS or ADDRESS:PORT, a port up to 65535, got {options.listen!r}.")

        def ready(address: str, port: int, token: str) -> None:
            command = f"workbench measure --peer {address}:{port} --token {token}"
            print(f"Listening for one measurement. On the other host run:\n  {command}", flush=True)

        sent = profiles.listen_for_peer(address, int(port or 0), ready=ready)
        print(f"Done: {sent:,} bytes exchanged.")
        return
    require_writable(user_data_folder(), HOME)
    with progress() as tell:
        table = profiles.measure(
            options.seconds, options.peer, options.token or "", lambda name, share: tell(f"{name} ({share:.0%})"),
            {"overlap of compute and memory": measure_overlap},
        )  # fmt: skip
    show(table, "Measured")
    print("Saved as the profile 'local': use cluster='local' or accelerator='local'.")


def _calibrate(options: argparse.Namespace) -> None:
    from workbench import latency
    from workbench.cli.tables import show

    columns = {}
    for text in options.column:
        ours, equals, theirs = text.partition("=")
        if not equals or not theirs:
            raise UserError(f"--column takes OURS=THEIRS, got {text!r}; for example --column seconds=latency_s.")
        columns[ours.strip()] = theirs.strip()
    require_writable(user_data_folder(), HOME)
    found = latency.calibrate(
        options.file, model=options.model, accelerator=options.accelerator, dtype=options.dtype, name=options.name,
        columns=columns, unit=options.unit,
    )  # fmt: skip
    show(found.coefficients, "Coefficients")
    show(found.ranges, "Fitted range")
    show(found.errors, "Relative errors, by what was left out of the fit")
    for remark in found.remarks:
        print(remark)
    replaced = " It replaces the earlier profile of that name." if found.profile.name in latency.calibrated() else ""
    print(f"Saved in {found.profile.save()}: use source={found.profile.name!r}.{replaced}")


def _warm(_: argparse.Namespace) -> None:
    import numba

    from workbench import jit
    from workbench.cli.tables import progress
    from workbench.cli.warming import warm

    if numba.config.DISABLE_JIT:
        raise UserError("NUMBA_DISABLE_JIT is set, so nothing is compiled; unset it and run `workbench warm` again.")
    folder = require_writable(jit.kernels_folder(), "set WORKBENCH_CACHE to a folder that can be written")
    with progress() as tell:
        missed = warm(tell)
    if missed:
        raise WorkbenchError(f"No example reaches {', '.join(missed)}; they are compiled when they are first used.")
    print(f"All {len(jit.kernels())} kernels are compiled; they lie in {folder}.")


PARTS = (
    ("numba", None, "compiled kernels"),
    ("plotly", None, "figures"),
    ("ipywidgets", "lab", "explorers"),
    ("anywidget", "lab", "explorers"),
    ("jupyterlab", "lab", "notebooks"),
    ("kaleido", "lab", "still images"),
    ("torch", "torch", "real runs"),
    ("distributed", "cluster", "sweeps over several machines"),
)
"""What may be missing: package, the extra that brings it (None for the workbench itself), and what it is for."""

CHROME = "to draw still images (SVG) with; all else works without: install Google Chrome or Chromium"


def _doctor(_: argparse.Namespace) -> None:
    from importlib.metadata import version

    from workbench import __version__
    from workbench.profiles.local_profile import local_file

    print(f"workbench {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    print(f"facts: {facts_folder()}\ncache: {cache_folder()}")
    missing: dict[str | None, list[str]] = {}
    for name, extra, purpose in PARTS:
        if importlib.util.find_spec(name) is None:
            missing.setdefault(extra, []).append(purpose)
            print(f"  {name:12} missing ({purpose})")
        else:
            print(f"  {name:12} {version(name)} ({purpose})")
    print(f"  {'Chrome':12} {_chrome()}")
    given = os.environ.get("WORKBENCH_DATA")
    if given and not Path(given).expanduser().is_dir():
        print(f"WORKBENCH_DATA names {given}, which is no folder")
    held = [str(folder) for folder in trace_folders() if folder.is_dir()]
    print(f"traces: {', '.join(held) or 'none; `workbench data list` shows how to get them'}")
    folder = measured_folder()
    print(f"measurements by others: {folder or 'none; `workbench data list` shows where they come from'}")
    local = local_file()
    print(f"this machine's profile: {local if local.is_file() else 'none; `workbench measure` makes it'}")
    for extra, purposes in missing.items():
        command = install_command(extra) if extra else "pip install workbench-llm"
        print(f"To add {', '.join(dict.fromkeys(purposes))}: {command}")
    if not missing:
        print("No package is missing.")


def _chrome() -> str:
    """Whether there is a browser for still images; only kaleido knows where to look for one."""
    from workbench.cli.pages import chrome_found

    if importlib.util.find_spec("kaleido") is None:
        return "not looked for, since kaleido is missing"
    return "found (still images)" if chrome_found() else f"missing ({CHROME})"


def _lab(options: argparse.Namespace) -> None:
    from workbench.cli.lab import open_lab

    open_lab(options.copy_to, not options.no_browser)
