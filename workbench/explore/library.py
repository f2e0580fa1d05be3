"""The plotly library that all pages of a folder share."""

from pathlib import Path

from plotly.offline import get_plotlyjs, get_plotlyjs_version

from workbench.paths import write_atomic


def library_in(folder: Path) -> str:
    """Name of the library's file in a folder, which is written where it is missing.

    It bears its version in its name: a page keeps the library it was drawn for when plotly is upgraded.
    """
    library = folder / f"plotly-{get_plotlyjs_version()}.min.js"
    if not library.is_file():
        write_atomic(library, get_plotlyjs())
    return library.name
