"""Where this machine's own measured profile lies, and how it is read back."""

from pathlib import Path
from typing import Any

from workbench.errors import InputError, UserError
from workbench.paths import user_data_folder
from workbench.profiles.toml_reading import read_toml


def local_file() -> Path:
    """The file that `workbench measure` writes: one TOML with the tables accelerator, cluster and measured."""
    return user_data_folder() / "profiles" / "local.toml"


def local_tables() -> tuple[dict[str, Any], Path]:
    """The measured profile of this machine as tables, and its file.

    Raises:
        UserError: nothing was measured yet.
    """
    path = local_file()
    if not path.exists():
        raise UserError(f"This machine has no profile yet ({path} is absent): run `workbench measure`.")
    tables = read_toml(path)
    for name in ("accelerator", "cluster"):
        if not isinstance(tables.get(name), dict):
            raise InputError("is missing", "run `workbench measure` again", file=path, field=name)
    return tables, path
