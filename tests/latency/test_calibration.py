"""Calibration: known coefficients come back, errors on left-out rows, the box, and hostile files."""

import warnings

import numpy as np
import polars as pl
import pytest

from workbench.cli import main
from workbench.errors import InputError, UnknownName, UserError
from workbench.latency import OutsideBox, calibrate, calibrated, load_profile, step_time
from workbench.latency.bound import bound_coefficients
from workbench.profiles import accelerator, deployment, model

COLUMNS = ("phase", "batch", "prompt_tokens", "cached_tokens", "context_tokens", "tp", "seconds")
SHAPE, DEVICE = model("llama-3.1-8b"), accelerator("h100")
HOW = {"model": "llama-3.1-8b", "accelerator": "h100"}


def peak(tp: int, which: int) -> float:
    """One of the seconds at data-sheet peaks (see kernels.layout): products a token, ..., weights, a cached token."""
    return bound_coefficients(SHAPE, DEVICE, tp)[which]


def prefill_s(tokens: int, cached: int, prompts: int, tp: int) -> float:
    squares = prompts * (tokens**2 + 2 * tokens * cached)
    products = max(peak(tp, 3), peak(tp, 0) * tokens * prompts)
    return 4e-3 + 1.5 * products + 3.0 * peak(tp, 2) / 2 * squares


def decode_s(batch: int, context: int, tp: int) -> float:
    return 2e-3 + 1.2 * peak(tp, 3) + 1.4 * peak(tp, 4) * batch * context + 8e-6 * batch


def synthetic(tps=(1, 2, 4), noise=0.0, seed=0) -> list[tuple]:
    rows = []
    for tp in tps:
        for tokens in (128, 512, 1024, 2048, 4096, 8192):
            for cached in (0, 1000):
                rows.append(("prefill", 2, tokens, cached, "", tp, prefill_s(tokens, cached, 2, tp)))
        for batch in (1, 4, 16, 64, 256):
            for context in (256, 1024, 4096):
                rows.append(("decode", batch, "", "", context, tp, decode_s(batch, context, tp)))
    spread = np.random.default_rng(seed).normal(1.0, noise, len(rows)) if noise else np.ones(len(rows))
    return [(*row[:-1], row[-1] * factor) for row, factor in zip(rows, spread, strict=True)]


def written(path, rows, columns=COLUMNS):
    path.write_text("\n".join(",".join(map(str, row)) for row in [columns, *rows]) + "\n")
    return path


def test_known_coefficients_come_back(tmp_path, home):
    found = calibrate(written(tmp_path / "Bench.csv", synthetic()), **HOW)
    assert found.profile.name == "bench"
    assert found.remarks == ()
    assert found.profile.phase("prefill").coefficients == pytest.approx([4e-3, 1.5, 3.0], rel=1e-6)
    assert found.profile.phase("decode").coefficients == pytest.approx([2e-3, 1.2, 1.4, 8e-6], rel=1e-6)
    assert found.errors["median_error"].max() < 1e-6
    assert set(found.errors["left_out"]) == {"nothing", "every fifth row", "each tp in turn", "each batch in turn"}
    assert found.coefficients.filter(pl.col("term") == "kv_cache")["value"].item() == pytest.approx(1.4)


def test_a_saved_profile_predicts_and_says_where_it_comes_from(tmp_path, home):
    calibrate(written(tmp_path / "bench.csv", synthetic()), **HOW).profile.save()
    assert calibrated() == ["bench"]
    for tp in (1, 4):
        step = step_time("llama-3.1-8b", "h100", deployment(tp=tp), source="bench")
        assert step.prefill_s(2000, 500, 2) == pytest.approx(prefill_s(1000, 500, 2, tp), rel=1e-6)
        assert step.decode_s(32, 32 * 1500) == pytest.approx(decode_s(32, 1500, tp), rel=1e-6)
    assert "81 rows of bench.csv" in step.decode(32, 32 * 1500).source
    assert step.status == "user"
    assert load_profile("bench").tp == (1, 2, 4)


def test_noise_shows_as_error_on_left_out_rows(tmp_path, home):
    found = calibrate(written(tmp_path / "bench.csv", synthetic(noise=0.05)), **HOW)
    fit = found.profile.phase("decode")
    assert fit.coefficients[1:3] == pytest.approx([1.2, 1.4], rel=0.15)
    assert 0.01 < fit.in_sample_error < 0.06
    assert fit.in_sample_error * 0.8 < fit.held_out_error < 0.10
    assert fit.held_out_p90 > fit.held_out_error


def test_no_calibrated_step_is_below_the_bound(tmp_path, home):
    rows = [(*row[:-1], row[-1] / 100) for row in synthetic()]  # a clock that ran a hundred times too slow
    calibrate(written(tmp_path / "bench.csv", rows), **HOW).profile.save()
    found = step_time("llama-3.1-8b", "h100", source="bench").decode([1, 64], [1000, 64_000])
    assert (found.seconds == found.bound_s).all()


def test_outside_the_box_it_warns_and_says_the_range(tmp_path, home):
    calibrate(written(tmp_path / "bench.csv", synthetic()), **HOW).profile.save()
    step = step_time("llama-3.1-8b", "h100", source="bench")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert step.decode(256, 256 * 4096).outside is False
        assert step.prefill_s(2 * 8192, 1000, 2) > 0
    with pytest.warns(OutsideBox, match=r"2 of 3 steps .* \(batch 1 to 256, context_tokens 256 to 4096"):
        outside = step.decode([16, 512, 8], [16_000, 512_000, 8 * 5000]).outside
    assert outside.tolist() == [False, True, True]
    with pytest.warns(OutsideBox, match="tokens 128 to 8192"):
        step.prefill_s(64, requests=2)
    with pytest.warns(OutsideBox, match="TP 8 lies outside"):
        step_time("llama-3.1-8b", "h100", deployment(tp=8), source="bench")


def test_another_model_accelerator_format_or_tp_is_refused(tmp_path, home):
    calibrate(written(tmp_path / "bench.csv", synthetic(tps=(2,))), **HOW).profile.save()
    for name, device, how in (
        ("llama-3-8b", "h100", {"tp": 2}),
        ("llama-3.1-8b", "h200", {"tp": 2}),
        ("llama-3.1-8b", "h100", {"tp": 2, "dtype": "fp8"}),
    ):
        with pytest.raises(UserError, match=r"was measured with llama-3\.1-8b on h100-80gb-sxm in bf16, not with"):
            step_time(name, device, deployment(**how), source="bench")
    with pytest.raises(UserError, match="measured at TP 2 only, which does not tell what TP 1 costs"):
        step_time("llama-3.1-8b", "h100", source="bench")


def test_what_the_rows_cannot_tell_is_said(tmp_path, home):
    rows = [row for row in synthetic(tps=(1,)) if row[0] == "decode"]
    found = calibrate(written(tmp_path / "bench.csv", rows), **HOW)
    assert found.remarks == (
        "There are no prefill rows, so the profile cannot tell prefill times.",
        "The decode rows do not tell weights apart from the other terms; its cost is inside theirs.",
    )
    found.profile.save()
    step = step_time("llama-3.1-8b", "h100", source="bench")
    assert step.decode_s(16, 16_000) == pytest.approx(decode_s(16, 1000, 1), rel=1e-6)
    with pytest.raises(UserError, match="calibrated without prefill rows and cannot tell prefill times"):
        step.prefill_s(100)


def test_mixed_steps_are_predicted_and_never_fitted(tmp_path, home):
    once = min(4e-3 + 1.5 * peak(1, 3), 2e-3 + 1.2 * peak(1, 3))  # the weights are read once
    mixed = [("mixed", 16, 512, 0, 1000, 1, prefill_s(512, 0, 1, 1) + decode_s(16, 1000, 1) - once)]
    found = calibrate(written(tmp_path / "bench.csv", synthetic() + mixed * 3), **HOW)
    row = found.errors.filter(pl.col("phase") == "mixed").row(0, named=True)
    assert (row["left_out"], row["rows"]) == ("never fitted", 3)
    assert row["median_error"] < 1e-6


def test_foreign_columns_units_and_formats(tmp_path, home):
    plain = calibrate(written(tmp_path / "bench.csv", synthetic()), **HOW)
    names = ("kind", "bs", "isl", "cached_tokens", "ctx", "tp", "latency_ms")
    rows = [(row[0].upper(), *row[1:-1], row[-1] * 1e3) for row in synthetic()]
    renamed = calibrate(
        written(tmp_path / "ms.csv", rows, names), **HOW, unit="ms", name="bench",
        columns={
            "phase": "kind", "batch": "bs", "prompt_tokens": "isl", "context_tokens": "ctx", "seconds": "latency_ms",
        },
    )  # fmt: skip
    for ours, theirs in zip(renamed.profile.phases, plain.profile.phases, strict=True):
        assert ours.coefficients == pytest.approx(theirs.coefficients)
    table = pl.DataFrame(synthetic(), schema=COLUMNS, orient="row", strict=False, infer_schema_length=None)
    table = table.with_columns(pl.lit("llama-3.1-8b").alias("model"), pl.lit("h100").alias("accelerator"))
    table.write_parquet(tmp_path / "rows.parquet")
    parquet = calibrate(tmp_path / "rows.parquet")
    assert parquet.profile.phase("decode").coefficients == pytest.approx([2e-3, 1.2, 1.4, 8e-6], rel=1e-6)
    assert parquet.profile.accelerator == "h100-80gb-sxm"


GOOD = [",".join(map(str, row)) for row in synthetic(tps=(1,))]
HEADER = ",".join(COLUMNS)
HOSTILE = {
    "empty": ("", ["empty"]),
    "header only": (HEADER + "\n", ["a header and no rows"]),
    "no header": ("\n".join(GOOD), ["there is no column phase"]),
    "no seconds": (HEADER.replace("seconds", "latency") + "\n" + GOOD[0], ["no column seconds", "--column seconds="]),
    "no phase": (HEADER.replace("phase", "kind") + "\n" + GOOD[0], ["no column phase"]),
    "doubled column": (HEADER + ",tp\n" + GOOD[0] + ",1", ["'tp'", "two columns"]),
    "not a number": ("\n".join([HEADER, *GOOD, "decode,four,,,100,1,0.01"]), ["data row 28", "'batch'", "'four'"]),
    "NaN": ("\n".join([HEADER, *GOOD, "decode,4,,,100,1,nan"]), ["data row 28", "'seconds'", "'nan'"]),
    "infinite": ("\n".join([HEADER, *GOOD, "decode,4,,,inf,1,0.01"]), ["data row 28", "'context_tokens'", "'inf'"]),
    "negative": ("\n".join([HEADER, *GOOD, "decode,4,,,100,1,-0.01"]), ["data row 28", "'seconds'", "'-0.01'"]),
    "no time": ("\n".join([HEADER, *GOOD, "decode,4,,,100,1,0"]), ["data row 28", "'seconds'", "above 0"]),
    "empty time": ("\n".join([HEADER, *GOOD, "decode,4,,,100,1,"]), ["data row 28", "'seconds'", "is empty"]),
    "half a TP": ("\n".join([HEADER, *GOOD, "decode,4,,,100,1.5,0.1"]), ["data row 28", "'tp'", "whole number"]),
    "no batch": ("\n".join([HEADER, *GOOD, "decode,,,,100,1,0.1"]), ["data row 28", "'batch'", "at least 1"]),
    "no context": ("\n".join([HEADER, *GOOD, "decode,4,,,,1,0.1"]), ["data row 28", "'context_tokens'"]),
    "no prompt": ("\n".join([HEADER, *GOOD, "prefill,1,0,,,1,0.1"]), ["data row 28", "'prompt_tokens'"]),
    "unknown phase": ("\n".join([HEADER, *GOOD, "warm,1,100,,,1,0.1"]), ["data row 28", "'phase'", "prefill, decode"]),
    "too many cells": ("\n".join([HEADER, *GOOD, "decode,4,,,100,1,0.1,7"]), ["line 29", "8 cells"]),
    "too few rows": ("\n".join([HEADER, *GOOD[-5:]]), ["only 5 decode rows", "at least 8"]),
    "TP that divides nothing": ("\n".join([HEADER, *GOOD, "decode,4,,,100,3,0.1"]), ["TP 3 does not divide"]),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_get_one_sentence(case, tmp_path, home):
    content, expected = HOSTILE[case]
    path = tmp_path / "bench.csv"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        calibrate(path, **HOW)
    for text in expected:
        assert text in str(caught.value)
    assert str(caught.value).endswith(".")
    assert not (home / "latency").exists()


@pytest.mark.parametrize(
    ("how", "error", "text"),
    [
        ({"model": "llama-3.1-8b"}, UserError, "Which accelerator was measured is not said"),
        ({"accelerator": "h100"}, UserError, "Which model was measured is not said"),
        ({"model": "deepseek-v3", "accelerator": "h100"}, UserError, "mixture-of-experts"),
        ({**HOW, "name": "../evil"}, InputError, "small letters"),
        ({**HOW, "name": "roofline"}, InputError, "names a source of its own"),
        ({**HOW, "unit": "min"}, UnknownName, "unit of time"),
        ({**HOW, "columns": {"latency": "seconds"}}, UnknownName, "column of benchmark rows"),
        ({**HOW, "columns": {"seconds": "absent"}}, InputError, "there is no column 'absent' for seconds"),
    ],
)
def test_arguments_that_cannot_be(how, error, text, tmp_path, home):
    with pytest.raises(error, match=text):
        calibrate(written(tmp_path / "bench.csv", synthetic()), **how)


def test_several_models_in_one_file_are_refused(tmp_path, home):
    rows = [(*row, name) for row, name in zip(synthetic(), ["llama-3.1-8b", "llama-3-8b"] * 60, strict=False)]
    with pytest.raises(InputError, match=r"holds several values \(llama-3-8b, llama-3\.1-8b\)"):
        calibrate(written(tmp_path / "bench.csv", rows, (*COLUMNS, "model")), accelerator="h100")


def test_a_broken_profile_is_refused(tmp_path, home):
    path = calibrate(written(tmp_path / "bench.csv", synthetic()), **HOW).profile.save()
    path.write_text(path.read_text().replace("kv_cache", "kv"))
    with pytest.raises(InputError, match="lacks coefficients or ranges"):
        load_profile("bench")
    with pytest.raises(UnknownName, match="workbench calibrate FILE"):
        load_profile("other")


def test_the_command(tmp_path, home, capsys):
    path = written(tmp_path / "bench.csv", synthetic(tps=(1,)))
    assert main(["calibrate", str(path), "--model", "llama-3.1-8b", "--accelerator", "h100", "--name", "mine"]) == 0
    out = capsys.readouterr().out
    for text in (
        "Coefficients",
        "kv_cache",
        "every fifth row",
        "context_tokens",
        "source='mine'",
        "do not tell weights",
    ):
        assert text in out
    assert (home / "latency" / "mine.toml").is_file()
    assert main(["calibrate", str(path), "--model", "llama-3.1-8b"]) == 2
    assert main(["calibrate", str(path), "--column", "seconds"]) == 2
    assert main(["calibrate", str(tmp_path / "no.csv"), "--model", "llama-3.1-8b", "--accelerator", "h100"]) == 2
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 3
    assert all(line.startswith("workbench: ") for line in errors)


def test_steps_of_a_real_rtx_4090(shared_data, tmp_path, home):
    """Whole steps put together from LLMServingSim's measured kernels: 32 layers, output head and sampler."""
    from workbench.latency.validation.rtx_steps import rtx_step_rows

    rows = rtx_step_rows()
    rows.write_csv(tmp_path / "rtx.csv")
    found = calibrate(tmp_path / "rtx.csv", model="llama-3.1-8b", accelerator="rtx-4090")
    errors = {(row["phase"], row["left_out"]): row["median_error"] for row in found.errors.iter_rows(named=True)}
    assert errors["decode", "every fifth row"] <= 0.10
    assert errors["prefill", "every fifth row"] <= 0.10


def test_steps_measured_twice_are_one_step(tmp_path, home):
    """Four steps, five times each: 20 rows, and nothing that a fit of four coefficients could be checked on."""
    rows = [("decode", batch, "", "", 1000, 1, decode_s(batch, 1000, 1)) for batch in (1, 2, 4, 8)] * 5
    with pytest.raises(InputError, match="only 4 decode different steps; measure at least 8"):
        calibrate(written(tmp_path / "bench.csv", rows), **HOW)


def test_repeated_rows_are_left_out_together(tmp_path, home):
    """Of two equal halves each fold leaves out both copies: the errors are those of the single file."""
    rows = synthetic(noise=0.05, seed=3)
    once = calibrate(written(tmp_path / "once.csv", rows), **HOW).errors
    twice = calibrate(written(tmp_path / "twice.csv", rows + rows), **HOW).errors
    assert twice["median_error"].to_list() == pytest.approx(once["median_error"].to_list(), rel=1e-4)


def test_times_below_the_data_sheet_are_remarked(tmp_path, home):
    """Microseconds taken for seconds: no step of an 8B model takes 10 µs, its weights alone take 4.8 ms to read."""
    rows = [(*row[:-1], row[-1] * 1e-3) for row in synthetic()]
    remarks = calibrate(written(tmp_path / "bench.csv", rows), **HOW).remarks
    assert any(f"{len(rows)} of {len(rows)} rows are faster" in remark for remark in remarks)


def test_a_long_table_of_many_sizes_takes_seconds(tmp_path, home):
    """200,000 rows of 256 batch sizes: the known coefficients come back, and 16 groups are left out, not 256."""
    rng = np.random.default_rng(5)
    batch, context = rng.integers(1, 257, 200_000), rng.integers(1, 8000, 200_000)
    frame = pl.DataFrame({"phase": "decode", "batch": batch, "context_tokens": context})
    seconds = decode_s(batch.astype(float), context, 1) * rng.normal(1.0, 0.02, 200_000)
    path = tmp_path / "long.parquet"
    frame.with_columns(seconds=pl.Series(seconds)).write_parquet(path)
    found = calibrate(path, **HOW)
    assert found.profile.phase("decode").coefficients[2:] == pytest.approx([1.4, 8e-6], rel=0.02)
    assert any("20,000 were fitted" in remark for remark in found.remarks)
    context_range = next(each for each in found.profile.phase("decode").ranges if each.quantity == "context_tokens")
    assert (context_range.least, context_range.most) == (1.0, 7999.0)


def test_saving_under_a_name_that_exists_says_so(tmp_path, home, capsys):
    path = str(written(tmp_path / "bench.csv", synthetic()))
    command = ["calibrate", path, "--model", "llama-3.1-8b", "--accelerator", "h100"]
    assert main(command) == 0
    assert "replaces" not in capsys.readouterr().out
    assert main(command) == 0
    assert "replaces the earlier profile of that name" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("given", [{"unit": []}, {"columns": 5}, {"name": 5}, {"path": 5}, {"path": None}])
def test_arguments_that_are_none_are_one_sentence(tmp_path, home, given):
    asked = {"path": written(tmp_path / "bench.csv", synthetic()), **HOW, **given}
    with pytest.raises(UserError):
        calibrate(asked.pop("path"), **asked)
