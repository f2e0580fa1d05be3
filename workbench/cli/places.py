"""Folders and files that a command writes to, checked before any work is done for them."""

import os
from pathlib import Path

from workbench.errors import UserError
from workbench.records import given_path


def require_writable(path: str | Path, remedy: str) -> Path:
    """Refuse a folder that could not be written to, or not be made, in one sentence; nothing is made yet.

    Parameters:
        path: of the folder, which need not exist.
        remedy: what to do if it cannot be used, as a clause.
    """
    folder = given_path(path, "path")
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not place.is_dir():
        raise UserError(f"{place} is not a folder; {remedy}.")
    if not os.access(place, os.W_OK | os.X_OK):
        raise UserError(f"{place} cannot be written to; {remedy}.")
    return folder


def require_place(path: str | Path, remedy: str) -> Path:
    """Refuse a file that could not be written, as `require_writable` does its folder.

    Parameters:
        path: of the file, which need not exist.
        remedy: what to do if it cannot be used, as a clause.
    """
    file = given_path(path, "path")
    if file.exists() and not file.is_file():
        raise UserError(f"{file} is no file that can be replaced; {remedy}.")
    require_writable(file.parent, remedy)
    return file
