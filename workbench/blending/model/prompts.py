"""Requests of an offline pool: lengths, what their prompts share, and where they come from."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from workbench.errors import InputError
from workbench.records import whole


class Pool(NamedTuple):
    """An offline pool, all there at the start.

    Attributes:
        prompt, output: int64[n], tokens. source: int64[n], which of `sources` each comes from.
        sources: their names.
        known: bool[n], whose output length is set beforehand.
        symbols: int64[s], all prompts as symbols, one after the other: tokens, or hashes of longer parts; equal ones
            stand for equal tokens.
        start: int64[n + 1], where each prompt begins.
        symbol_tokens: int64[s], tokens that each symbol stands for.
    """

    prompt: np.ndarray
    output: np.ndarray
    source: np.ndarray
    sources: tuple[str, ...]
    known: np.ndarray
    symbols: np.ndarray
    start: np.ndarray
    symbol_tokens: np.ndarray

    @property
    def size(self) -> int:
        """How many requests there are."""
        return self.prompt.size

    @property
    def tokens(self) -> int:
        """All prompt and output tokens, those that prefix hits save among them."""
        return int(self.prompt.sum() + self.output.sum())


def pool_of_tokens(prompts: Sequence[Sequence[int]], output) -> Pool:
    """A pool of prompts that are given token by token.

    Parameters:
        prompts: token ids of each request. output: output tokens of each.

    Raises:
        InputError: lengths do not fit together, an output below 1, or a prompt that is no list of token ids.
    """
    parts = [_tokens(prompt, row) for row, prompt in enumerate(prompts, 1)]
    symbols = np.concatenate([*parts, np.zeros(0, np.int64)])
    start = np.cumsum([0, *(part.size for part in parts)], dtype=np.int64)
    return checked_pool(symbols, start, np.ones(symbols.size, np.int64), output)


def _tokens(prompt: Sequence[int], row: int) -> np.ndarray:
    given = np.atleast_1d(np.asarray(prompt)) if np.size(prompt) else np.zeros(0, np.int64)
    if given.ndim != 1 or not np.issubdtype(given.dtype, np.integer) or not np.can_cast(given.dtype, np.int64):
        raise InputError("is no list of token ids", "give whole numbers below 2^63", row=row, field="prompts")
    return given.astype(np.int64)


def pool_of_requests(requests: pl.DataFrame, block_tokens: int) -> Pool:
    """A pool of the requests of a trace: its `prefix_hashes`, of which each covers so many prompt tokens.

    The last hash of a prompt covers what is left. Without hashes nothing is shared.

    Parameters:
        requests: a request table (prompt_tokens, output_tokens, and prefix_hashes where there are any).
        block_tokens: prompt tokens that a hash covers.

    Raises:
        InputError: a column is missing, a length is no whole number, or hashes do not go with a prompt.
    """
    block = whole(block_tokens, "block_tokens", 1)
    for name in ("prompt_tokens", "output_tokens"):
        if name not in requests.columns:
            raise InputError("is no column of the requests", "give a request table, such as trace.requests", field=name)
    prompt = _prompt_tokens(requests["prompt_tokens"])
    counts = -(-prompt // block)
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    if "prefix_hashes" in requests.columns:
        hashes = requests["prefix_hashes"]
        short = np.flatnonzero(hashes.list.len().fill_null(0).to_numpy() != counts)
        if short.size:
            raise InputError(
                f"has {len(hashes[int(short[0])])} hashes for a prompt of {prompt[short[0]]} tokens",
                f"give one for every {block} tokens",
                row=int(short[0]) + 1,
                field="prefix_hashes",
            )
        holed = np.flatnonzero(hashes.list.eval(pl.element().is_null()).list.any().fill_null(False).to_numpy())
        if holed.size:
            raise InputError("holds an empty hash", "give each one", row=int(holed[0]) + 1, field="prefix_hashes")
        symbols = hashes.explode().drop_nulls().to_numpy().astype(np.int64)
    else:
        symbols = np.arange(start[-1], dtype=np.int64)
    tokens = np.full(symbols.size, block, np.int64)
    ends = start[1:][counts > 0] - 1
    tokens[ends] = (prompt - (counts - 1) * block)[counts > 0]
    return checked_pool(symbols, start, tokens, requests["output_tokens"].to_numpy())


def _prompt_tokens(column: pl.Series) -> np.ndarray:
    """Prompt lengths of a request table, int64[n]."""
    if not column.dtype.is_integer():
        raise InputError(f"is of type {column.dtype}", "give whole numbers of tokens", field=column.name)
    bad = column.is_null() | (column < 0).fill_null(True)
    if bad.any():
        row = int(bad.arg_max())
        found = "is empty" if column[row] is None else f"is {column[row]}"
        raise InputError(found, "give a whole number of tokens from 0 on", row=row + 1, field=column.name)
    return column.to_numpy().astype(np.int64)


def checked_pool(symbols, start, symbol_tokens, output) -> Pool:
    """A pool of one nameless source from its arrays.

    Raises:
        InputError: an output below 1, or arrays that do not fit together.
    """
    output = np.asarray(output)
    if output.size != start.size - 1:
        raise InputError(f"has {output.size} values for {start.size - 1} prompts", "give one each", field="output")
    if not output.size:
        raise InputError("an offline pool needs a request", "give at least one")
    if not np.issubdtype(output.dtype, np.integer) or output.min() < 1:
        raise InputError("holds a value that is no whole number of 1 or more", "mend it", field="output")
    before = np.concatenate([[0], np.cumsum(symbol_tokens)])
    prompt = before[start[1:]] - before[start[:-1]]
    none = np.zeros(output.size, np.int64)
    return Pool(
        prompt.astype(np.int64), output.astype(np.int64), none, ("requests",), none.astype(bool),
        symbols, start, symbol_tokens,
    )  # fmt: skip
