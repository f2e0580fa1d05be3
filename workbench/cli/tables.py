"""Tables and progress on a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator

import polars as pl


def show(table: pl.DataFrame, title: str) -> None:
    """Print a table whole, in plain ASCII, or say that it is empty."""
    if not len(table):
        print(f"{title}: none\n")
        return
    print(f"{title}:")
    with pl.Config(
        tbl_rows=-1, tbl_cols=-1, tbl_width_chars=200, fmt_str_lengths=2000, tbl_formatting="ASCII_MARKDOWN",
        tbl_hide_column_data_types=True, tbl_hide_dataframe_shape=True,
    ):  # fmt: skip
        print(f"{table}\n")


@contextlib.contextmanager
def progress(total: int | None = None) -> Iterator[Callable[[str], None]]:
    """A progress line on stderr; call what it yields with a text, or with "" to count one piece as done."""
    from tqdm import tqdm

    with tqdm(total=total, file=sys.stderr, leave=False, disable=None, dynamic_ncols=True) as bar:

        def tell(text: str) -> None:
            if text:
                bar.set_description_str(text)
            else:
                bar.update()

        yield tell
