"""Explorers: widgets generated from an experiment's parameters, and a browser of each paper's catalogue."""

from workbench.errors import MissingExtra


def explore_experiment(spec, parameters, live=False):
    """The explorer of one catalogue entry, its controls standing at the given values, as a widget to display.

    Parameters:
        live: whether the entry's first backend answers at once and at every move of a control, however long it takes.
    """
    _need_widgets()
    from workbench.explore.explorer import Explorer

    if live:
        spec = spec._replace(seconds={**spec.seconds, spec.backends[0]: 0.0})
    return Explorer(spec, parameters).widget


def browse_paper(paper: str):
    """The catalogue of one paper, as a widget to display."""
    _need_widgets()
    from workbench.explore.browser import Browser

    return Browser(paper).widget


def _need_widgets() -> None:
    try:
        import anywidget  # noqa: F401
        import ipywidgets  # noqa: F401
    except ImportError:
        raise MissingExtra("An explorer", "ipywidgets", "lab") from None
