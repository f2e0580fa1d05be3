"""Public formats are recognised by content, whatever the file is called, and read by column name."""

import gzip
import json

import polars as pl
import pytest

from workbench.workloads import trace

BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
BURST_3 = "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
QWEN = {"chat_id": 1, "parent_chat_id": -1, "input_length": 40, "output_length": 5, "type": "text", "turn": 1}
STAMPS = ("queued_ts", "scheduled_ts", "first_token_ts", "last_token_ts")

# name: (content, arrival times, prompt tokens, output tokens)
SAMPLES = {
    "azure-2023": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n"
        "2023-11-16 18:17:03.9799600,48,10\r\n2023-11-16 18:17:04.0319600,31,8",
        [0, 0.052],
        [48, 31],
        [10, 8],
    ),
    "azure-2024": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.009930+00:00,48,10\n2024-05-10 00:00:01+00:00,31,8\n",
        [0, 0.99007],
        [48, 31],
        [10, 8],
    ),
    "azure-multimodal": (
        "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
        "2024-10-15 00:00:00.5,2,48,10\n2024-10-15 00:00:01.5,0,31,8\n",
        [0, 1],
        [48, 31],
        [10, 8],
    ),
    "azure-2024-window": (
        "request_id,arrival_ms,output_tokens,split,prompt_tokens,source_timestamp,source_row\n"
        "a-0,0.000,10,validation,48,2024-05-12 08:47:44.022580+00:00,3765335\n"
        "a-1,233.880,8,validation,31,2024-05-12 08:47:44.256460+00:00,3765336\n",
        [0, 0.23388],
        [48, 31],
        [10, 8],
    ),
    "burstgpt": (
        BURST + "5,ChatGPT,48,10,58,API log\n45.0,GPT-4,31,8,39,Conversation log\n",
        [0, 40],
        [48, 31],
        [10, 8],
    ),
    "mooncake": (
        '{"timestamp": 27482, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]}\n'
        '{"timestamp": 30535, "input_length": 512, "output_length": 26, "hash_ids": [46]}\n',
        [0, 3.053],
        [600, 512],
        [52, 26],
    ),
    "qwen-bailian": (
        "".join(json.dumps(QWEN | {"timestamp": t, "hash_ids": [1, 2, 3]}) + "\n" for t in (61.114, 61.5)),
        [0, 0.386],
        [40, 40],
        [5, 5],
    ),
    "vidur": (
        "arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,48,10\n199.96150599999999,31,8\n",
        [0, 199.961506],
        [48, 31],
        [10, 8],
    ),
    "splitwise-sim": (
        "request_id,request_type,application_id,arrival_timestamp,batch_size,prompt_size,token_size\n"
        "0,2,0,1,1,48,10\n1,2,0,3,1,31,8\n",
        [0, 2],
        [48, 31],
        [10, 8],
    ),
    "blitzscale-client": ("timestamp,prefill,decode\n100,48,10\n1350,31,8\n", [0, 1.25], [48, 31], [10, 8]),
    "llmservingsim-run": (
        "".join(
            json.dumps({"request_id": f"b-{k}", "input_toks": 48, "output_toks": 10, "arrival_time": 1787267980.5 + k})[
                :-1
            ]
            + "".join(f', "{stamp}": 27536.5' for stamp in STAMPS)
            + "}\n"
            for k in range(2)
        ),
        [0, 1],
        [48, 48],
        [10, 10],
    ),
    "llmservingsim": (
        '{"input_toks": 48, "output_toks": 10, "arrival_time_ns": 46926808, "input_tok_ids": [83810, 14592]}\n'
        '{"input_toks": 31, "output_toks": 8, "arrival_time_ns": 1046926808, "input_tok_ids": [3278]}\n',
        [0, 1],
        [48, 31],
        [10, 8],
    ),
    "generic": ("time;model;input;output\n0.5;m1;48;10\n2.5;m2;31;8\n", [0, 2], [48, 31], [10, 8]),
}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("file", ["BurstGPT_1.csv", "conversation_trace.jsonl", "noname"])
def test_recognised_by_content(name, file, write):
    content, times, prompt, output = SAMPLES[name]
    found = trace(write(file, content), spread=False)
    assert found.origin.format == name
    assert found.requests["arrival_s"].to_list() == pytest.approx(times, abs=1e-9)
    assert found.requests["prompt_tokens"].to_list() == prompt
    assert found.requests["output_tokens"].to_list() == output
    assert found.requests.schema == {
        "request_id": found.requests.schema["request_id"],
        "model": pl.String,
        "arrival_s": pl.Float64,
        "prompt_tokens": pl.Int64,
        "output_tokens": pl.Int64,
    } | ({"prefix_hashes": pl.List(pl.Int64)} if found.origin.block_tokens else {})


@pytest.mark.parametrize("name", SAMPLES)
def test_gzip_changes_nothing(name, write):
    content = SAMPLES[name][0]
    plain, packed = trace(write("a", content)), trace(write("a.gz", gzip.compress(content.encode())))
    assert packed.requests.equals(plain.requests)


def test_burstgpt_3_is_read_by_name(write):
    """Read by position, the elapsed time and the model would be taken for token counts (notes on data, defect 9)."""
    path = write("b.csv", BURST_3 + "5,s1,7.5,ChatGPT,48,10,58,API log\n9,s2,1.5,GPT-4,31,8,39,API log\n")
    found = trace(path, spread=False)
    assert found.requests.select("model", "prompt_tokens", "output_tokens").rows() == [
        ("ChatGPT", 48, 10),
        ("GPT-4", 31, 8),
    ]


def test_burstgpt_failures_and_log_types(write):
    rows = "1,ChatGPT,0,0,0,API log\n2,ChatGPT,5,0,5,API log\n3,GPT-4,6,7,13,API log\n4,GPT-4,8,9,17,Conversation log\n"
    path = write("b.csv", BURST + rows)
    assert trace(path).requests["prompt_tokens"].to_list() == [6, 8]
    assert trace(path).defects.filter(pl.col("defect").str.contains("failed"))["rows"].to_list() == [2]
    assert len(trace(path, zero_tokens="keep")) == 4
    only = trace(path, log_type="API log")
    assert only.requests["prompt_tokens"].to_list() == [6]
    assert only.origin.rows_read == len(only) + only.defects["dropped"].sum() == 4


def test_burstgpt_seconds_are_spread_inside_the_second(write):
    rows = "".join(f"{second},GPT-4,{k + 1},1,2,API log\n" for second in (10, 10, 10, 11, 15) for k in range(20))
    path = write("b.csv", BURST + rows)
    found = trace(path, seed=4)
    absolute = found.requests["arrival_s"] + found.origin.start_s
    assert absolute.cast(pl.Int64).value_counts().sort("arrival_s").rows() == [(10, 60), (11, 20), (15, 20)]
    assert found.requests["request_id"].to_list() == list(range(100))
    assert found.requests["arrival_s"].n_unique() == 100
    assert found.origin.transformations[0].parameters == {"cell_s": "1", "seed": "4"}
    assert found == trace(path, seed=4)
    assert found != trace(path, seed=5)


def test_stamps_of_azure_are_counted(write):
    """2024 leaves the fraction out on whole seconds; 2023 names no zone (notes on data, defects 3 and 4)."""
    naive = trace(write("a.csv", SAMPLES["azure-2023"][0])).defects
    assert naive.filter(pl.col("defect").str.starts_with("stamp")).rows() == [
        ("stamp without an offset", 2, "taken as UTC", 0, 1)
    ]
    zoned = trace(write("b.csv", SAMPLES["azure-2024"][0])).defects
    assert zoned.rows() == [("stamp without a fraction", 1, "read as a whole second", 0, 2)]


def test_inserted_columns_of_burstgpt_3_are_counted(write):
    rows = "5,s1,9.5,ChatGPT,48,10,58,API log\n6,s1,700,GPT-4,31,8,39,API log\n"
    found = trace(write("b.csv", BURST_3 + rows))
    assert found.requests.select("prompt_tokens", "output_tokens").rows() == [(48, 10), (31, 8)]
    assert found.defects.select("defect", "rows").rows() == [("Session ID and Elapsed time stand before the model", 2)]
    two = trace(write("c.csv", BURST + "5,ChatGPT,48,10,58,API log\n"))
    assert two.defects.is_empty()


def test_qwen_matches_on_all_blocks_but_the_last(write):
    content = "".join(json.dumps(QWEN | {"timestamp": t, "hash_ids": [7, 8, t]}) + "\n" for t in (1, 2))
    found = trace(write("q", content))
    assert found.requests["prefix_hashes"].to_list() == [[7, 8], [7, 8]]
    assert found.origin.block_tokens == 16
    assert "last prefix block" in found.defects["defect"][0]


def test_images_are_counted(write):
    found = trace(write("m", SAMPLES["azure-multimodal"][0]))
    assert found.defects["rows"].to_list() == [1]


def test_only_language_requests_of_splitwise_sim(write):
    content = SAMPLES["splitwise-sim"][0] + "2,1,0,4,1,5,5\n"
    found = trace(write("s", content))
    assert len(found) == 2
    assert found.defects["dropped"].to_list() == [1]


def test_mooncake_without_hashes_is_in_milliseconds(write):
    found = trace(
        write(
            "m",
            '{"timestamp": 0, "input_length": 1, "output_length": 2}\n' * 2
            + '{"timestamp": 3000, "input_length": 1, "output_length": 2}\n',
        ),
        spread=False,
    )
    assert found.requests["arrival_s"][-1] == 3.0
    assert "prefix_hashes" not in found.requests.columns


def test_conversations_skip_to_the_first_human_turn(write):
    """36.7 % of the common ShareGPT split start with an assistant turn (notes on data, defect 14)."""
    turns = [("gpt", "left out"), ("human", "ab"), ("gpt", "cde"), ("human", "f"), ("gpt", "gh")]
    entry = {"id": "x", "conversations": [{"from": who, "value": text} for who, text in turns]}
    found = trace(write("s.json", json.dumps([entry])), count_tokens=len)
    assert found.requests.select("prompt_tokens", "output_tokens").rows() == [(2, 3), (6, 2)]
    assert found.defects["rows"].to_list() == [1, 2, 1]


def test_a_column_named_by_the_user(write):
    path = write("log.csv", "when_ms,in,out,who,tenant\n500,48,10,a,x\n1500,31,8,b,y\n")
    found = trace(
        path, columns={"arrival_s": "when_ms", "prompt_tokens": "in", "output_tokens": "out", "model": "tenant"}
    )
    assert found.requests["arrival_s"].to_list() == [0, 1]
    assert found.requests["model"].to_list() == ["x", "y"]


@pytest.mark.parametrize(
    ("column", "cells", "unit", "clock"),
    [
        ("arrival_s", ("0.5", "1.5"), None, "relative"),
        ("arrival_ms", ("500", "1500"), None, "relative"),
        ("arrivalTimeUs", ("500000", "1500000"), None, "relative"),
        ("Arrival Time (ns)", ("500000000", "1500000000"), None, "relative"),
        ("ts", ("1787267980", "1787267981"), None, "utc"),
        ("ts", ("1787267980500", "1787267981500"), None, "utc"),
        ("ts", ("1787267980500000", "1787267981500000"), None, "utc"),
        ("ts", ("1787267980500000001", "1787267981500000001"), None, "utc"),
        ("ts", ("2026-08-20 23:59:59.5", "2026-08-21 00:00:00.5"), None, "utc"),
        ("ts", ("2026-08-20T23:59:59Z", "2026-08-21T00:00:00Z"), None, "utc"),
        ("ts", ("2026-08-21 01:00:00+02:00", "2026-08-20 23:00:01+00:00"), None, "utc"),
        ("ts", ("500", "1500"), "ms", "relative"),
        ("ts", ("0", "60"), None, "relative"),
    ],
)
def test_units_of_time(column, cells, unit, clock, write):
    path = write("a.csv", f"{column},prompt,completion\n{cells[0]},1,2\n{cells[1]},3,4\n")
    found = trace(path, unit=unit)
    assert found.requests["arrival_s"].to_list() == [0, 60 if cells[1] == "60" else 1]
    assert found.origin.clock == clock


def test_nanoseconds_since_1970_lose_nothing(write):
    """A double cannot hold them; the difference to the first arrival must be exact."""
    first = 1_787_267_980_082_740_301
    found = trace(write("a.csv", f"ts,prompt,completion\n{first},1,2\n{first + 7},1,2\n"))
    assert found.requests["arrival_s"][1] == 7e-9


def test_requests_given_as_a_table():
    table = pl.DataFrame({"ts": [5, 6], "prompt_len": [1, 2], "output_len": [3, 4], "id": ["x", "y"]})
    found = trace(table)
    assert found.requests.rows() == [("x", "default", 0.0, 1, 3), ("y", "default", 1.0, 2, 4)]


def test_typed_parquet(tmp_path):
    table = pl.DataFrame(
        {"time": ["2026-01-01 00:00:00", "2026-01-01 00:00:02"], "prompt": [1.0, 2.0], "output": [3, 4]}
    )
    table = table.with_columns(pl.col("time").str.to_datetime(time_zone="UTC"), pl.col("output").cast(pl.UInt16))
    table.write_parquet(tmp_path / "a.parquet")
    found = trace(tmp_path / "a.parquet")
    assert found.requests.select("arrival_s", "prompt_tokens", "output_tokens").rows() == [(0.0, 1, 3), (2.0, 2, 4)]
    assert found.origin.start == "2026-01-01 00:00:00 UTC"


def test_a_json_array(write):
    found = trace(
        write("a.json", json.dumps([{"t": 1, "prompt": 2, "output": 3}, {"t": 4.5, "prompt": 5, "output": 6}]))
    )
    assert found.requests["arrival_s"].to_list() == [0, 3.5]


def test_one_model_for_all(write):
    assert set(trace(write("a", SAMPLES["generic"][0]), model="llama").requests["model"]) == {"llama"}
