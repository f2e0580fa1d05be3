"""Give back what a closed explorer holds: every widget stays registered until it is closed by name."""

from collections.abc import Iterator

import ipywidgets as w


def close_tree(widget: w.Widget) -> None:
    """Close a widget, everything inside it, and their layouts and styles."""
    for part in _held(widget):
        close_tree(part)
    widget.close()


def _held(widget: w.Widget) -> Iterator[w.Widget]:
    for value in list(widget._trait_values.values()):
        yield from (item for item in (value if isinstance(value, tuple) else (value,)) if isinstance(item, w.Widget))
