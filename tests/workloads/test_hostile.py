"""Every hostile input gets one sentence with file, place and remedy, or is repaired and counted.

Inputs of the notes on peers, section 5, and of the notes on data, section 4, and what else breaks readers.
"""

import gzip
import json

import polars as pl
import pytest

from workbench.errors import InputError, UnknownName, UserError
from workbench.workloads import Limits, Poisson, fixed_lengths, generate, trace

HEADER = "arrival_s,prompt_tokens,output_tokens\n"
GOOD = HEADER + "0.5,10,1\n1.5,20,2\n"
MOONCAKE = '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]}\n'


def line(**fields) -> str:
    return json.dumps({"timestamp": 3000, "input_length": 600, "output_length": 5, "hash_ids": [1, 2]} | fields) + "\n"


RANKED = HEADER.strip() + ",priority\n0.5,10,1,0\n"
REFUSED = {
    # name: (file name, content, options, what the sentence must hold)
    "empty": ("a.csv", "", {}, ["empty"]),
    "blank": ("a.csv", "\n \n\n", {}, ["empty"]),
    "quotation mark left open in the header": (
        "a.csv",
        '"' + HEADER + "1,2,3\n" * 500 + '1,"2",3\n4,5,6\n',
        {},
        ["no column holds arrival_s; the columns are arrival_s,prompt_tokens,output_tokens..."],
    ),
    "header only": ("a.csv", HEADER, {}, ["a header and no rows"]),
    "header only, no newline": ("a.csv", HEADER.strip(), {}, ["a header and no rows"]),
    "no header": ("a.csv", "0.5,10,1\n1.5,20,2\n", {}, ["not a header", "column names"]),
    "no header, stamps": ("a.csv", "2023-11-16 18:17:03,10,1\n", {}, ["not a header"]),
    "doubled column": (
        "a.csv",
        "arrival_s,prompt_tokens,prompt_tokens\n0,1,2\n",
        {},
        ["'prompt_tokens'", "two columns"],
    ),
    "too many cells": ("a.csv", GOOD + "2,3,4,5\n", {}, ["line 4", "4 cells", "has 3"]),
    "too many cells beside columns that are not read, below a cell of two lines": (
        "a.csv",
        HEADER.strip() + ',note\n0.5,10,1,"a\nb"\n2,3,4,5,6\n',
        {},
        ["line 4", "5 cells"],
    ),
    "too few cells": ("a.csv", GOOD + "2,3\n", {}, ["data row 3", "'output_tokens'", "None"]),
    "unclosed quote": ("a.csv", GOOD + '2,"3,4\n5,6,7\n', {}, ["quotation mark", "line 4"]),
    "bare carriage returns": ("a.csv", GOOD.replace("\n", "\r"), {}, ["carriage returns"]),
    "not a number": ("a.csv", GOOD + "2,many,4\n", {}, ["data row 3", "'prompt_tokens'", "'many'", "bad_rows"]),
    "NaN time": ("a.csv", GOOD + "nan,3,4\n", {}, ["data row 3", "'arrival_s'", "'nan'"]),
    "infinite time": ("a.csv", GOOD + "inf,3,4\n", {}, ["data row 3", "'arrival_s'", "'inf'"]),
    "NaN tokens": ("a.csv", GOOD + "2,NaN,4\n", {}, ["data row 3", "'prompt_tokens'", "'NaN'"]),
    "empty cell": ("a.csv", GOOD + "2,,4\n", {}, ["data row 3", "'prompt_tokens'"]),
    "half a token": ("a.csv", GOOD + "2,3.5,4\n", {}, ["data row 3", "'prompt_tokens'", "3.5"]),
    "negative length": ("a.csv", GOOD + "2,3,-4\n", {}, ["data row 3", "'output_tokens'", "negative", "-4"]),
    "absurd length": ("a.csv", GOOD + "2,999999999999,4\n", {}, ["data row 3", "'prompt_tokens'", "999999999999"]),
    "64-bit overflow": ("a.csv", GOOD + "2,99999999999999999999,4\n", {}, ["data row 3", "'prompt_tokens'"]),
    "zero tokens, strict": ("a.csv", GOOD + "2,3,0\n", {"zero_tokens": "refuse"}, ["data row 3", "'output_tokens'"]),
    "only failures": ("a.csv", HEADER + "1,0,0\n", {}, ["no row is left to use (left out: 1 of "]),
    "mixed clocks": ("a.csv", GOOD + "1700000000,3,4\n", {}, ["data row 3", "'arrival_s'", "years", "unit="]),
    "stamp that is none": (
        "a.csv",
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,2\n2023-13-16 18:17:03,1,2\n",
        {},
        ["data row 2", "'TIMESTAMP'", "2023-13-16"],
    ),
    "no time column": ("a.csv", "prompt_tokens,output_tokens\n1,2\n", {}, ["arrival_s", "columns="]),
    "no prompt column": ("a.csv", "arrival_s,foo,output_tokens\n1,2,3\n", {}, ["prompt_tokens", "foo", "columns="]),
    "no output column": ("a.csv", "arrival_s,prompt_tokens,foo\n1,2,3\n", {}, ["output_tokens", "columns="]),
    "column asked for is missing": ("a.csv", GOOD, {"columns": {"arrival_s": "when"}}, ["'when'", "prompt_tokens"]),
    "Latin-1": (
        "a.csv",
        b"arrival_s,prompt_tokens,output_tokens,model\n1,2,3,na\xefve\n",
        {},
        ["line 2", "UTF-8", "iconv"],
    ),
    "cut character": ("a.csv", (GOOD + "é").encode()[:-1], {}, ["UTF-8", "cut off"]),
    "UTF-16": ("a.csv", GOOD.encode("utf-16"), {}, ["UTF-16", "save it as UTF-8"]),
    "zero bytes": ("a.csv", GOOD.encode() + b"\x00\x00", {}, ["zero bytes", "line 4"]),
    "zip": ("a.csv", b"PK\x03\x04" + bytes(100), {}, ["zip", "unpack"]),
    "git-lfs pointer": (
        "BurstGPT_1.csv",
        "version https://git-lfs.github.com/spec/v1\noid sha256:4bb3783693d0\nsize 52283111\n",
        {},
        ["git-lfs pointer", "workbench data fetch"],
    ),
    "damaged gzip": ("a.csv.gz", gzip.compress(GOOD.encode() * 50)[:-20], {}, ["gzip", "damaged or cut off"]),
    "gzip inside gzip": ("a.csv.gz", gzip.compress(gzip.compress(GOOD.encode())), {}, ["gzip inside gzip"]),
    "gzip bomb": (
        "a.csv.gz",
        gzip.compress(GOOD.encode() + bytes(3_000_000)),
        {"limits": Limits(file_bytes=1_000_000)},
        ["unpacks to more", "1,000,000"],
    ),
    "text inside gzip": ("a.csv.gz", gzip.compress(HEADER.encode()), {}, ["a.csv.gz", "no rows"]),
    "large file": ("a.csv", GOOD, {"limits": Limits(file_bytes=10)}, ["limit of 10"]),
    "long line": ("a.csv", GOOD + "9" * 3000, {"limits": Limits(line_bytes=1000)}, ["line 4", "1,000 bytes"]),
    "long line in the middle": (
        "a.csv",
        HEADER + "1," + "9" * 3000 + ",3\n4,5,6\n",
        {"limits": Limits(line_bytes=1000)},
        ["line 2", "1,000 bytes"],
    ),
    "one huge line": ("a.jsonl", '{"a": "' + "x" * 5_000_000, {}, ["line 1", "4,194,304 bytes"]),
    "too many rows": ("a.csv", GOOD, {"limits": Limits(rows=1)}, ["more than 1 rows", "rows="]),
    "too many lines": ("a.jsonl", MOONCAKE * 3, {"limits": Limits(rows=2)}, ["more than 2 rows"]),
    "rows beyond the end": ("a.csv", GOOD, {"rows": (5, 9)}, ["no rows to read"]),
    "window beyond the end": ("a.csv", GOOD, {"window": (50, 60)}, ["no row is left"]),
    "window without times": ("a.csv", "num_prefill_tokens,num_decode_tokens\n1,2\n", {"window": (0, 1)}, ["no times"]),
    "not JSON": ("a.jsonl", MOONCAKE + "{'timestamp': 1}\n", {}, ["line 2", "not JSON"]),
    "not JSON below a blank line": ("a.jsonl", "\n" + MOONCAKE + "\n{'timestamp': 1}\n", {}, ["line 4", "not JSON"]),
    "not JSON at all, below a blank line": ("a.jsonl", "\n{broken\n", {}, ["line 2", "not JSON"]),
    "not JSON at all": ("a.jsonl", "{broken\n", {}, ["line 1", "not JSON"]),
    "not an object": ("a.jsonl", MOONCAKE + "[1, 2]\n", {}, ["line 2", "not a JSON object"]),
    "too deep": ("a.jsonl", MOONCAKE + "[" * 100_000 + "\n", {}, ["line 2", "not JSON"]),
    "number of 5,000 digits": (
        "a.jsonl",
        MOONCAKE + line(input_length=1).replace("1,", "9" * 5000 + ",", 1),
        {},
        ["line 2"],
    ),
    "list of numbers": ("a.json", "[1, 2]", {}, ["data row 1", "not a JSON object"]),
    "empty list": ("a.json", "[]", {}, ["the list is empty"]),
    "array too large": ("a.json", json.dumps([{"a": 1}] * 100), {"limits": Limits(array_bytes=100)}, ["JSON Lines"]),
    "missing key": (
        "a.jsonl",
        MOONCAKE + '{"timestamp": 3, "input_length": 6}\n',
        {},
        ["data row 2", "'output_length'"],
    ),
    "text for a number": (
        "a.jsonl",
        MOONCAKE + line(input_length="six"),
        {},
        ["data row 2", "'input_length'", "'six'"],
    ),
    "true for a number": ("a.jsonl", MOONCAKE + line(output_length=True), {}, ["data row 2", "'output_length'"]),
    "list for a number": ("a.jsonl", MOONCAKE + line(output_length=[1]), {}, ["data row 2", "'output_length'"]),
    "NaN in JSON": ("a.jsonl", MOONCAKE + line(timestamp=float("nan")), {}, ["data row 2", "'timestamp'"]),
    "hash id above 64 bits": (
        "a.jsonl",
        MOONCAKE + line(hash_ids=[1, 1 << 64]),
        {},
        ["data row 2", "'hash_ids'", "64 bits"],
    ),
    "hash ids of both signs": ("a.jsonl", MOONCAKE + line(hash_ids=[-1, 1 << 63]), {}, ["'hash_ids'", "negative"]),
    "text hash id": ("a.jsonl", MOONCAKE + line(hash_ids=[1, "x"]), {}, ["data row 2", "'hash_ids'", '"x"']),
    "null hash id": ("a.jsonl", MOONCAKE + line(hash_ids=[1, None]), {}, ["data row 2", "'hash_ids'"]),
    "missing hash ids": ("a.jsonl", MOONCAKE + line(hash_ids=None), {}, ["data row 2", "'hash_ids'"]),
    "too few hash ids": (
        "a.jsonl",
        MOONCAKE + line(hash_ids=[1]),
        {},
        ["data row 2", "1 ids, 2 blocks", "block_tokens="],
    ),
    "too many hash ids": ("a.jsonl", MOONCAKE + line(hash_ids=[1, 2, 3]), {}, ["data row 2", "3 ids, 2 blocks"]),
    "text priority": ("a.csv", RANKED + "2,3,4,high\n", {}, ["data row 2", "'priority'", "'high'", "0 or more"]),
    "negative priority": ("a.csv", RANKED + "2,3,4,-1\n", {}, ["data row 2", "'priority'", "'-1'", "0 or more"]),
    "Parquet cut off": ("a.parquet", b"PAR1" + bytes(50), {}, ["Parquet", "cannot be read"]),
    "conversations as text": (
        "a.json",
        json.dumps([{"id": "x", "conversations": [{"from": "human", "value": "hi"}]}]),
        {},
        ["not token counts", "count_tokens="],
    ),
    "conversation without turns": (
        "a.json",
        json.dumps([{"id": "x", "conversations": []}, {"id": "y", "conversations": 5}]),
        {"count_tokens": len},
        ["data row 2", "'conversations'"],
    ),
    "another format than asked for": ("a.csv", GOOD, {"format": "burstgpt"}, ["does not have the columns"]),
    "an option of another format": ("a.csv", GOOD, {"log_type": "API log"}, ["generic", "'log_type'"]),
    "a log type that is not there": (
        "a.csv",
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n1,a,2,3,5,API log\n",
        {"log_type": "api"},
        ["'Log Type'", "'API log'"],
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_sentence(case, write):
    name, content, options, parts = REFUSED[case]
    path = write(name, content)
    with pytest.raises(UserError) as error:
        trace(path, **options)
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 600
    assert message.endswith(".")
    assert error.value.exit_code == 2
    assert name in message
    for part in parts:
        assert part in message, message


REPAIRED = {
    # name: (content, options, defect, rows, dropped, arrival times that are left)
    "byte-order mark": ("\ufeff" + GOOD, {}, "byte-order mark", 1, 0, [0, 1]),
    "CRLF": (GOOD.replace("\n", "\r\n"), {}, "CRLF", 2, 0, [0, 1]),
    "no final newline": (GOOD.strip(), {}, "no newline", 1, 0, [0, 1]),
    "blank lines": (GOOD + "\n\n2.5,3,4\n", {}, "blank line", 2, 2, [0, 1, 2]),
    "unordered": (HEADER + "3,1,1\n1,2,2\n2,3,3\n", {}, "before that of an earlier row", 2, 0, [0, 1, 2]),
    "ties": (HEADER + "1,1,1\n1,2,2\n2,3,3\n", {}, "same time", 1, 0, [0, 0, 1]),
    "negative times": (HEADER + "-2,1,1\n-1,2,2\n2,3,3\n", {}, "negative time", 2, 0, [0, 1, 4]),
    "Unix times": (HEADER + "1700000000.5,1,1\n1700000002.5,2,2\n", {}, "Unix time", 2, 0, [0, 2]),
    "zero output": (GOOD + "2.5,3,0\n", {}, "zero prompt or output", 1, 1, [0, 1]),
    "zero prompt": (GOOD + "2.5,0,3\n", {}, "zero prompt or output", 1, 1, [0, 1]),
    "zero output, kept": (GOOD + "2.5,3,0\n", {"zero_tokens": "keep"}, "zero prompt or output", 1, 0, [0, 1, 2]),
    "zero output, raised": (GOOD + "2.5,3,0\n", {"zero_tokens": "one"}, "zero prompt or output", 1, 0, [0, 1, 2]),
    "bad cells, dropped": (GOOD + "x,3,1\n2.5,y,3\n", {"bad_rows": "drop"}, "not a time", 1, 2, [0, 1]),
    "negative, dropped": (GOOD + "2.5,3,-1\n", {"bad_rows": "drop"}, "negative length", 1, 1, [0, 1]),
    "doubled ids": ("id," + HEADER + "7,1,1,1\n7,2,2,2\n8,3,3,3\n", {}, "doubled request id", 1, 0, [0, 1, 2]),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_repaired_and_counted(case, write):
    content, options, defect, rows, dropped, times = REPAIRED[case]
    found = trace(write("a.csv", content), **options)
    assert found.requests["arrival_s"].to_list() == times
    entry = found.defects.filter(pl.col("defect").str.contains(defect)).row(0, named=True)
    assert entry["rows"] == rows
    assert found.defects["dropped"].sum() == dropped == found.origin.rows_read - len(found)


def test_raised_zeros_are_ones(write):
    found = trace(write("a.csv", GOOD + "2.5,0,0\n"), zero_tokens="one")
    assert found.requests.row(2)[3:] == (1, 1)


def test_ties_keep_the_order_of_the_file(write):
    found = trace(write("a.csv", HEADER + "5,1,1\n2,2,2\n5,3,3\n2,4,4\n"))
    assert found.requests["prompt_tokens"].to_list() == [2, 4, 1, 3]


def test_doubled_ids_are_numbered_by_row(write):
    found = trace(write("a.csv", "id," + HEADER + "7,1,1,1\n7,2,2,2\n"))
    assert found.requests["request_id"].to_list() == [0, 1]


def test_wrong_hashes_can_be_dropped(write):
    found = trace(write("a.jsonl", MOONCAKE + line(hash_ids=[1]) + line(hash_ids=[5, 6])), bad_rows="drop")
    assert found.requests["prefix_hashes"].to_list() == [[1, 2], [5, 6]]
    assert found.defects["dropped"].sum() == 1


def test_another_block_size_can_be_stated(write):
    found = trace(write("a.jsonl", line(input_length=100, hash_ids=[1, 2])), block_tokens=64)
    assert found.origin.block_tokens == 64


def test_hash_ids_of_64_bits_stay_whole(write):
    """Cut to 32 bits, different prefixes would merge (ai-dynamo/dynamo pull request 12046)."""
    ids = [[1, 2], [1, 2 + (1 << 32)], [1, (1 << 64) - 1]]
    found = trace(write("a.jsonl", "".join(line(hash_ids=entry) for entry in ids)))
    assert found.requests["prefix_hashes"].to_list() == ids
    assert found.statistics.prefixes.unique_blocks == 4


def test_a_request_at_time_zero_is_fine(write):
    assert len(trace(write("a.csv", HEADER + "0,1,1\n"))) == 1


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"bad_rows": "ignore"}, "field 'bad_rows': is 'ignore'"),
        ({"seed": -1}, "field 'seed': is -1"),
        ({"rows": 0}, "field 'rows': is 0"),
        ({"spread": -2.0}, "field 'spread': is -2.0"),
        ({"columns": {"prompt": "x"}}, "field 'columns.prompt"),
    ],
)
def test_options_that_cannot_be(options, part, write):
    with pytest.raises(UserError) as error:
        trace(write("a.csv", GOOD), **options)
    assert part in str(error.value)


def test_formats_that_there_are_not(write):
    with pytest.raises(UnknownName, match="burstgpt"):
        trace(write("a.csv", GOOD), format="burstgpt2")


def test_paths_that_are_no_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        trace(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="not a regular file"):
        trace(tmp_path)
    with pytest.raises(InputError, match="not a regular file"):
        trace("/dev/zero")


def test_tables_without_rows():
    with pytest.raises(InputError, match="holds no rows"):
        trace(pl.DataFrame({"arrival_s": [], "prompt_tokens": [], "output_tokens": []}))


def test_a_parquet_file_without_rows(tmp_path):
    pl.DataFrame(schema={"arrival_s": pl.Float64, "prompt_tokens": pl.Int64}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="holds no rows"):
        trace(tmp_path / "a.parquet")


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_rates_that_cannot_be(rate):
    with pytest.raises(UserError, match="rate_per_s"):
        Poisson(rate_per_s=rate)


def test_spans_without_arrivals_and_with_too_many():
    with pytest.raises(UserError, match="No request"):
        generate(Poisson(rate_per_s=1e-9), fixed_lengths(1, 1), duration_s=1.0)
    with pytest.raises(UserError, match="shorten the duration"):
        generate(Poisson(rate_per_s=1e9), fixed_lengths(1, 1), duration_s=1e9)
    with pytest.raises(UserError, match="either"):
        generate(Poisson(rate_per_s=1), fixed_lengths(1, 1))
