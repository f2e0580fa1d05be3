"""Find a fact file by its name or by one of its aliases."""

import functools
from pathlib import Path

from workbench.errors import InputError, UnknownName
from workbench.paths import facts_folder
from workbench.profiles.toml_reading import read_toml
from workbench.records import given_path

NOT_A_PROFILE = {"links"}
"""Files of `data/hardware` that hold a table of their own kind."""


def looks_like_path(name: str | Path) -> bool:
    """Whether a user means a file ("my.toml", "path/config.json", a Path) and not a name.

    >>> looks_like_path("h100-80gb-sxm"), looks_like_path("my.toml"), looks_like_path("p4d.24xlarge")
    (False, True, False)
    """
    if not isinstance(name, str | Path):
        raise InputError(f"{name!r:.60} is no name", "give a name, or the path of a file")
    given_path(name, "name_or_path")
    return isinstance(name, Path) or name.endswith((".toml", ".json")) or "/" in name or "\\" in name


def names_in(folder: str) -> list[str]:
    """The names of all profiles in a folder of `data/`, sorted."""
    return sorted(path.stem for path in _files(folder))


def file_of(kind: str, folder: str, name: str) -> Path:
    """The file of a named profile.

    Parameters:
        kind: what is looked for, for the error ("accelerator").
        folder: the folder under `data/` ("hardware").
        name: the profile's own name or an alias, in any case.

    Raises:
        UnknownName: with names that look like it.
    """
    wanted = name.casefold().strip()
    path = facts_folder() / folder / f"{wanted}.toml"
    if wanted not in NOT_A_PROFILE and Path(wanted).name == wanted and path.is_file():
        return path
    aliases = _aliases(folder, facts_folder())
    if wanted in aliases:
        return aliases[wanted]
    raise UnknownName(kind, name, [*names_in(folder), *aliases])


def _files(folder: str) -> list[Path]:
    # Named files end in .toml and names may hold dots, so the stem is taken from the last dot only.
    return [path for path in (facts_folder() / folder).glob("*.toml") if path.stem not in NOT_A_PROFILE]


@functools.cache
def _aliases(folder: str, root: Path) -> dict[str, Path]:
    found = {}
    for path in sorted(_files(folder)):
        for alias in read_toml(path).get("aliases", ()):
            found[str(alias).casefold()] = path
    return found
