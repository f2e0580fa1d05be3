"""A trace that is written and read again is the same trace; no request is lost on the way."""

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.errors import UserError
from workbench.workloads import convert, trace
from workbench.workloads.sidecar import sidecar_path

TEXT = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=8)
IDS = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), TEXT)
HASHES = st.lists(st.integers(0, (1 << 64) - 1), max_size=4)


@st.composite
def tables(draw):
    count = draw(st.integers(1, 12))
    times = sorted(draw(st.lists(st.floats(0, 1e8), min_size=count, max_size=count)))
    whole = st.lists(st.integers(1, 10**8), min_size=count, max_size=count)
    columns = {
        "request_id": draw(
            st.lists(
                st.integers(0, 1 << 62) if draw(st.booleans()) else TEXT, min_size=count, max_size=count, unique=True
            )
        ),
        "model": draw(st.lists(TEXT, min_size=count, max_size=count)),
        "arrival_s": times,
        "prompt_tokens": draw(whole),
        "output_tokens": draw(whole),
    }
    if draw(st.booleans()):
        columns["prefix_hashes"] = draw(st.lists(HASHES, min_size=count, max_size=count))
    if draw(st.booleans()):
        columns["priority"] = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    schema = {"prefix_hashes": pl.List(pl.UInt64)} if "prefix_hashes" in columns else {}
    return pl.DataFrame(columns, schema_overrides=schema)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@given(table=tables())
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_written_and_read(kind, table, tmp_path):
    before = trace(table)
    path = convert(before, tmp_path / f"a.{kind}")
    after = trace(path)
    assert after.requests.equals(before.requests)
    assert after.requests.schema == before.requests.schema
    assert (after.origin.name, after.origin.start_s) == (before.origin.name, before.origin.start_s)


def test_a_stand_in_stays_one(tmp_path):
    path = convert(trace("mooncake-synthetic-like"), tmp_path / "m.parquet")
    found = trace(path)
    assert found.origin.stand_in
    assert found.origin.name == "mooncake-synthetic-like"
    assert found.origin.block_tokens == 512
    assert trace(path, rows=(10, 20)).origin.transformations[-1].name == "rows"


def test_an_edited_file_is_not_believed(tmp_path):
    path = convert(trace("lambdascale-burst-like"), tmp_path / "a.csv")
    path.write_text(path.read_text() + "999,default,2000.0,5,5\n")
    found = trace(path)
    assert not found.origin.stand_in
    assert found.origin.name == "a.csv"
    assert "does not belong" in found.defects["defect"][-1]


def test_a_broken_sidecar_is_not_believed(tmp_path):
    path = convert(trace("lambdascale-burst-like"), tmp_path / "a.csv")
    sidecar_path(path).write_text(json.dumps({"origin": 5}))
    assert not trace(path).origin.stand_in


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = convert(trace("lambdascale-burst-like"), tmp_path / "a.csv")
    old = path.read_bytes()

    def failing(self, target):
        target.write_text("half")
        raise OSError("disk full")

    monkeypatch.setattr(pl.DataFrame, "write_csv", failing)
    with pytest.raises(OSError, match="disk full"):
        convert(trace("lambdascale-burst-like", seed=2), path)
    assert path.read_bytes() == old
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.csv", "a.csv.origin.json"}


def test_kinds_that_there_are_not(tmp_path):
    with pytest.raises(UserError, match=r"\.csv, \.jsonl, \.parquet"):
        convert(trace("lambdascale-burst-like"), tmp_path / "a.xlsx")


TIMES = st.sampled_from(["1", "2.5", "-3", "0", "x", "", "nan", "1e3", "inf", " 4 "])
CELLS = st.sampled_from(["1", "2.5", "-3", "0", "x", "", "nan", "1e3", "99999999999999999999", " 4 "])


@given(
    rows=st.lists(st.tuples(TIMES, CELLS, CELLS), min_size=1, max_size=30),
    zero=st.sampled_from(["drop", "keep", "one"]),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_are_conserved(rows, zero, tmp_path):
    """Rows in = rows kept + rows dropped, whatever stands in the cells."""
    path = tmp_path / "a.csv"
    path.write_text("arrival_s,prompt_tokens,output_tokens\n0,1,1\n" + "".join(",".join(row) + "\n" for row in rows))
    found = trace(path, bad_rows="drop", zero_tokens=zero)
    assert found.origin.rows_read == len(rows) + 1 == len(found) + found.defects["dropped"].sum()
    times = found.requests["arrival_s"].to_numpy()
    assert times[0] == 0
    assert np.all(np.diff(times) >= 0)
    assert found.requests["prompt_tokens"].min() >= (0 if zero == "keep" else 1)
    assert found.requests["request_id"].n_unique() == len(found)
