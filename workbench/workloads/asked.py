"""The base of records that users fill in, for rooms that have looked for it here so far; it lives in `records`."""

from workbench.records import Asked

__all__ = ["Asked"]
