"""Folders that a command writes to, checked before any work is done for them."""

import os
from pathlib import Path

from workbench.errors import UserError


def writable_folder(path: str | Path, remedy: str) -> Path:
    """Make a folder, or refuse in one sentence what cannot be written to.

    Parameters:
        path: of the folder; those above it are made too.
        remedy: what to do if it cannot be used, as a clause.
    """
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); {remedy}.") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{folder} cannot be written to; {remedy}.")
    return folder
