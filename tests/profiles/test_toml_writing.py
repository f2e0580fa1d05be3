"""What is written as TOML is read back as it was."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.profiles.toml_writing import toml_text

keys = st.text(min_size=1, max_size=12).filter(lambda key: "\r" not in key)
leaves = st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text(max_size=20)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
tables = st.dictionaries(keys, values, max_size=4)


@given(st.dictionaries(keys, tables | st.lists(tables, min_size=1, max_size=3), max_size=3))
def test_written_tables_are_read_back(document):
    assert tomllib.loads(toml_text(document)) == document


def test_none_is_left_out_and_strangers_are_refused():
    assert tomllib.loads(toml_text({"a": {"b": None, "c": {"d": None, "e": 1}}})) == {"a": {"c": {"e": 1}}}
    for wrong in ({"a": 1}, {"a": {"b": object()}}):
        with pytest.raises(WorkbenchError):
            toml_text(wrong)
