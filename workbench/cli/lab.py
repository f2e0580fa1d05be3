"""`workbench lab`: JupyterLab on the notebooks; an installed package's own are worked on as copies."""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

from workbench import paths
from workbench.cli.places import require_writable
from workbench.errors import MissingExtra, UserError, WorkbenchError
from workbench.paths import write_atomic

COPIES = Path("workbench-notebooks")
"""Where the notebooks of an installed package are copied to, under the current folder."""

_MANIFEST = ".copied.json"


def open_lab(copy_to: str | None, browser: bool) -> None:
    """Open JupyterLab on the checkout's notebooks, or on copies of the installed ones, and wait until it ends."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingExtra("`workbench lab`", "jupyterlab", "lab")
    folder = paths.notebooks_folder()
    if copy_to or paths.PACKAGE in folder.parents or not os.access(folder, os.W_OK):
        folder = copy_notebooks(folder, Path(copy_to) if copy_to else COPIES)
    command = [sys.executable, "-m", "jupyterlab", str(folder / "00-start.ipynb"), "--ServerApp.ip=127.0.0.1"]
    command += [] if browser else ["--no-browser"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    print(f"Opening {folder / '00-start.ipynb'}; press Ctrl-C twice to end.", flush=True)
    code = subprocess.call(command)
    if code not in (0, 130, -2):
        raise WorkbenchError(f"JupyterLab ended with exit code {code}.")


def copy_notebooks(source: Path, target: Path) -> Path:
    """Copy the notebooks into a folder, and bring earlier copies up to date; one that was edited is left as it is.

    What a copy looked like when it was made is noted in the folder, so that edits can be told from an old version.
    """
    if not any(source.glob("*.ipynb")):
        raise UserError(f"No notebooks are installed in {source}; reinstall the workbench.")
    require_writable(target, "give another folder with --copy-to")
    noted = _noted(target / _MANIFEST)
    kept = []
    for notebook in sorted(source.glob("*.ipynb")):
        new, copy = notebook.read_bytes(), target / notebook.name
        found = copy.read_bytes() if copy.is_file() else None
        if found not in (None, new) and _digest(found) != noted.get(notebook.name):
            kept.append(notebook.name)
            continue
        if found != new:
            write_atomic(copy, new)
        noted[notebook.name] = _digest(new)
    write_atomic(target / _MANIFEST, json.dumps(noted, indent=1) + "\n")
    print(f"You work on copies of the notebooks, in {target.resolve()}.")
    if kept:
        print(f"Your edited {', '.join(kept)} stayed as you left it; for the workbench's own, move yours away first.")
    return target


def _noted(manifest: Path) -> dict[str, str]:
    try:
        noted = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return noted if isinstance(noted, dict) else {}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
