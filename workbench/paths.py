"""Where facts, traces and caches live, and how a file is written so that a killed run leaves the old one."""

import errno
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from workbench.errors import UserError

PACKAGE = Path(__file__).resolve().parent
"""The package's own folder: in a checkout, or where it was installed."""


def _beside_or_inside(name: str, packed: str) -> Path:
    checkout = PACKAGE.parent / name
    return checkout if checkout.is_dir() and (PACKAGE.parent / "pyproject.toml").is_file() else PACKAGE / packed


def facts_folder() -> Path:
    """The project's own `data/` folder: of the checkout when there is one, else the copy inside the wheel."""
    return _beside_or_inside("data", "_data")


def notebooks_folder() -> Path:
    """The notebooks: of the checkout when there is one, else the copy inside the wheel."""
    return _beside_or_inside("notebooks", "_notebooks")


def gallery_folder() -> Path:
    """The committed gallery: of the checkout, or what the wheel holds of it (the tables of its findings)."""
    return _beside_or_inside("figures", "_figures")


def figures_folder() -> Path:
    """Where a run writes unless told otherwise: `figures/out` under the current folder."""
    return Path("figures") / "out"


def user_data_folder() -> Path:
    """Where downloads and this machine's own profile live (`WORKBENCH_HOME`, else the platform's data folder)."""
    if home := os.environ.get("WORKBENCH_HOME"):
        return Path(home).expanduser()
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "workbench"


def cache_folder() -> Path:
    """Where compiled kernels and other rebuildable things live (`WORKBENCH_CACHE`, else the user's cache folder)."""
    if cache := os.environ.get("WORKBENCH_CACHE"):
        return Path(cache).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "workbench"


def trace_folders() -> list[Path]:
    """Folders searched for real trace files, first hit wins: `WORKBENCH_DATA`/traces, then our own downloads."""
    folders = []
    if given := os.environ.get("WORKBENCH_DATA"):
        folders += [Path(given).expanduser() / "traces", Path(given).expanduser()]
    return [*folders, user_data_folder() / "traces"]


def measured_folder() -> Path | None:
    """The folder of other people's GPU measurements (`WORKBENCH_DATA`/measured), or None where it is absent."""
    if not (given := os.environ.get("WORKBENCH_DATA")):
        return None
    folder = Path(given).expanduser() / "measured"
    return folder if folder.is_dir() else None


def make_folder(path: Path) -> Path:
    """Make a folder where there is none.

    Raises:
        UserError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None
    return path


def aside(path: Path) -> Path:
    """Where the earlier folder of a path stands while a new one takes its place."""
    return path.parent / f".{path.name}.old"


@contextmanager
def room_in(folder: Path) -> Iterator[None]:
    """Writing into a folder: a disk that is full, or a file larger than may be, becomes one sentence.

    Raises:
        UserError: nothing more can be written there.
    """
    try:
        yield
    except Exception as error:  # polars tells the system's number in its text alone
        told = re.search(r"\(os error (\d+)\)", str(error))
        number = int(told[1]) if told else getattr(error, "errno", None)
        if number not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise UserError(
            f"{folder} takes no more ({os.strerror(number)}); make room or choose another folder, then write it again."
        ) from None


@contextmanager
def folder_atomic(path: Path) -> Iterator[Path]:
    """A new, empty folder next to a path, to be filled; it takes the path's place whole at the end, or not at all.

    A run that is killed between the two renames leaves the earlier folder whole, at `aside(path)`.

    Raises:
        UserError: nothing can be written there, or not all of it.
    """
    try:
        beside = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=make_folder(path.parent)))
    except OSError as error:
        raise _unwritable(path.parent, error) from None
    try:
        with room_in(path.parent):
            yield beside
        beside.chmod(0o755)
        _take_place(beside, path)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise


def _take_place(beside: Path, path: Path) -> None:
    if not path.exists():
        beside.rename(path)
        return
    old = aside(path)
    shutil.rmtree(old, ignore_errors=True)  # left by a save that was killed after the new folder was in place
    path.rename(old)
    try:
        beside.rename(path)
    except OSError:
        old.rename(path)
        raise
    shutil.rmtree(old)


def _unwritable(folder: Path, error: OSError) -> UserError:
    return UserError(f"{folder} cannot be written to ({error.strerror}); choose another folder.")


def write_atomic(path: str | Path, write: bytes | str | Callable[[Path], object]) -> Path:
    """Write a file beside its place and rename it there, so that readers see the old file or the new one, whole.

    Parameters:
        path: the file to make; its folder is created.
        write: the content, or a function that is given a temporary path in the same folder and fills it.

    Raises:
        UserError: the folder cannot be made or written to, or not all of it can.
    """
    path = Path(path)
    if path.exists() and not path.is_file():  # a folder, or a device, which the new file would take the place of
        raise UserError(f"{path} is no file that can be replaced; name another.")
    make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}{path.suffix}")
    try:
        # opened like any new file: the system applies the umask, which a process cannot read without changing it
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    except OSError as error:
        raise _unwritable(path.parent, error) from None
    try:
        with room_in(path.parent):
            if callable(write):
                write(temporary)
            else:
                temporary.write_bytes(write.encode() if isinstance(write, str) else write)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return path
