"""Names: real traces are verified or refused, never replaced; stand-ins bear names of their own."""

import polars as pl
import pytest

from workbench.errors import InputError, UnknownName, UserError
from workbench.workloads import facts, trace, traces
from workbench.workloads.facts import all_facts
from workbench.workloads.finding import sha256_of

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n2023-11-16 18:17:04,5,8"


def test_an_absent_trace_says_how_to_fetch_it(empty_machine):
    with pytest.raises(UserError) as error:
        trace("azure-code-2023")
    message = str(error.value)
    assert "`workbench data fetch azure-code-2023`" in message
    assert '"azure-code-2023-like"' in message


def test_a_trace_nobody_offers_says_so(empty_machine):
    with pytest.raises(UserError, match="nobody offers it"):
        trace("lambdascale-burst")


def test_a_stand_in_is_marked_and_never_bears_the_real_name(empty_machine):
    made = trace("azure-conv-2023-like", seed=3)
    assert made.origin.stand_in
    assert made.origin.name == "azure-conv-2023-like"
    assert repr(made).startswith("<stand-in azure-conv-2023-like")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("azure-code-2023", "AzureLLMInferenceTrace_code.csv"),
        ("burstgpt-1", "BurstGPT_1.csv"),
        ("azure-code-2024", "AzureLLMInferenceTrace_code_1week.csv"),
    ],
)
def test_a_counterfeit_is_refused(empty_machine, name, file):
    (empty_machine / file).write_text(AZURE)
    with pytest.raises(InputError, match="instead of") as error:
        trace(name)
    assert str(empty_machine / file) in str(error.value)
    assert "move it away" in str(error.value)


def test_counterfeits_that_are_known_are_named(empty_machine):
    (empty_machine / "BurstGPT_1.csv").write_text("Timestamp,Model\n1,a\n")
    with pytest.raises(InputError, match="H0GUN3/ARL"):
        trace("burstgpt-1")


def test_same_size_other_bytes_is_refused(empty_machine, monkeypatch):
    path = empty_machine / "AzureLLMInferenceTrace_code.csv"
    path.write_text(AZURE)
    changed = all_facts()["azure-code-2023"].model_copy(update={"bytes": path.stat().st_size})
    monkeypatch.setitem(all_facts(), "azure-code-2023", changed)
    with pytest.raises(InputError, match="sha256 starts with"):
        trace("azure-code-2023")


def fake(monkeypatch, name: str, **update) -> None:
    monkeypatch.setitem(all_facts(), name, all_facts()[name].model_copy(update=update))


def test_line_ends_do_not_make_a_counterfeit(empty_machine, monkeypatch):
    """BurstGPT_1 exists with CRLF (released) and with LF; both hold the same trace (notes on data, section 3)."""
    path = empty_machine / "BurstGPT_1.csv"
    text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,7,8,15,API log\n"
    path.write_text(text.replace("\n", "\r\n"), newline="")
    released = sha256_of(path)
    other = facts.OtherForm(bytes=len(text), source="test")
    fake(monkeypatch, "burstgpt-1", sha256=released, bytes=path.stat().st_size, rows=1, other_form=other)
    assert len(trace("burstgpt-1")) == 1
    path.write_text(text)
    assert len(trace("burstgpt-1")) == 1
    path.write_text(text.replace("GPT-4", "GPT-3"))
    with pytest.raises(InputError, match="another sha256"):
        trace("burstgpt-1")


def test_without_a_checksum_the_rows_are_counted(empty_machine, monkeypatch):
    (empty_machine / "splitwise_code.csv").write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n0.0,4808,10\n")
    with pytest.raises(InputError, match="has 1 rows, not 8,819"):
        trace("vidur-splitwise-code")
    fake(monkeypatch, "vidur-splitwise-code", rows=1)
    assert trace("vidur-splitwise-code").origin.verified == "rows"


def test_another_format_under_the_name_is_refused(empty_machine, monkeypatch):
    (empty_machine / "splitwise_code.csv").write_text(AZURE)
    with pytest.raises(InputError, match="format azure-2023"):
        trace("vidur-splitwise-code")


def test_a_known_file_is_known_by_its_content(trace_folder, tmp_path):
    copy = tmp_path / "somebody_renamed_it.txt"
    copy.write_bytes((trace_folder / "AzureLLMInferenceTrace_code.csv").read_bytes())
    found = trace(copy)
    assert (found.origin.name, found.origin.verified, found.origin.licence) == (
        "azure-code-2023",
        "sha256",
        "CC-BY-4.0",
    )


def test_the_table_of_traces(empty_machine):
    table = traces()
    assert {"azure-code-2023", "burstgpt-3", "mooncake-toolagent", "qwen-thinking"} <= set(table["name"])
    assert table["held"].null_count() == table.height
    row = table.row(by_predicate=pl.col("name") == "azure-code-2024", named=True)
    assert (row["rows"], row["fetch"]) == (16_803_695, "workbench data fetch azure-code-2024")


@pytest.mark.parametrize("name", ["azure-code-2032", "burst", "qwen"])
def test_near_names_are_listed(name):
    with pytest.raises(UnknownName) as error:
        trace(name)
    assert error.value.near


def test_file_options_are_refused_for_stand_ins():
    with pytest.raises(UserError, match="'unit'"):
        trace("azure-conv-2023-like", unit="ms")


def test_parts_of_stand_ins():
    whole = trace("mooncake-synthetic-like")
    assert trace("mooncake-synthetic-like", rows=10).requests.equals(whole.requests[:10])
    window = trace("mooncake-synthetic-like", window=(10, 20), model="m")
    assert window.requests["arrival_s"][0] == 0
    assert set(window.requests["model"]) == {"m"}
