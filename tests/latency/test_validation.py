"""Validation against real measurements, where `WORKBENCH_DATA` holds them: readers, defects, and recorded numbers."""

import numpy as np
import polars as pl
import pytest

from workbench.latency.kernel_coefficients import kernel_coefficients
from workbench.latency.messages import all_reduce
from workbench.latency.rates import peak_rates
from workbench.latency.validation.anchors import anchor_errors, splitwise_rows
from workbench.latency.validation.collectives import NCCL, all_reduce_rows, fit_all_reduce
from workbench.latency.validation.kernel_errors import kernel_errors
from workbench.latency.validation.kernel_fitting import fit_decode_attention, fit_gemm, fit_prefill_attention
from workbench.latency.validation.layer_errors import layer_errors, layer_predictions
from workbench.latency.validation.layers import layer_rows
from workbench.latency.validation.recorded import recorded_statistics
from workbench.latency.validation.rtx_steps import rtx_step_errors
from workbench.latency.validation.servers import server_rows
from workbench.latency.validation.sweeps import (
    decode_attention_rows,
    gemm_rows,
    prefill_attention_rows,
)
from workbench.latency.validation.tpot import tpot_errors, tpot_points
from workbench.profiles import accelerator

pytestmark = pytest.mark.usefixtures("shared_data")

ANCHORS = {
    # Milliseconds at 1, 128, 512, 1,024, 2,048, 4,096 tokens: products alone and with norms, rotary, activation, sums.
    ("a100-80gb-sxm", "llama-2-7b", 1): "0.266/0.290 0.352/0.383 0.953/1.042 1.959/2.123 3.825/4.172 7.492/8.171",
    ("h100-80gb-sxm", "llama-2-7b", 1): "0.156/0.175 0.180/0.199 0.329/0.375 0.565/0.657 1.087/1.266 2.205/2.592",
    ("a40-48gb", "llama-2-7b", 1): "0.727/0.748 0.908/0.946 2.051/2.222 3.946/4.277 7.453/8.095 15.173/16.444",
    ("a100-80gb-sxm", "llama-2-70b", 8): "0.152/0.177 0.204/0.232 0.583/0.648 1.012/1.155 1.982/2.289 3.623/4.211",
    ("h100-80gb-sxm", "llama-2-70b", 8): "0.087/0.105 0.105/0.125 0.183/0.221 0.332/0.408 0.619/0.795 1.183/1.538",
    ("a100-80gb-sxm", "llama-3-8b", 1): "0.276/0.303 0.377/0.412 0.994/1.083 2.175/2.348 4.072/4.431 7.817/8.529",
}


@pytest.mark.parametrize("case", ANCHORS, ids=lambda case: "-".join(map(str, case)))
def test_layers_are_read_as_the_notes_print_them(case):
    """Notes on data §9; medians of repeated rows lie within 2 % of the printed ones."""
    gpu, name, tp = case
    rows = layer_rows(gpu, name).filter(pl.col("tp") == tp)
    for tokens, text in zip((1, 128, 512, 1024, 2048, 4096), ANCHORS[case].split(), strict=True):
        row = rows.filter(pl.col("tokens") == float(tokens)).row(0, named=True)
        expected = [float(number) / 1e3 for number in text.split("/")]
        assert [row["gemms_s"], row["layer_s"]] == pytest.approx(expected, rel=0.02)


def test_large_kernels_reach_the_shares_that_the_notes_print():
    """Notes on data §6: products of at least 4,096 each way, weights of 8,192 and more at 1 token, KV of 0.5 GB.

    Of the H100 they print 0.78 and 0.85; the files that are held give 0.83 and 0.89, hence the wider band.
    """
    for gpu, large, weights, cache in (
        ("a100-80gb-sxm", 0.91, 0.73, 0.74), ("h100-80gb-sxm", 0.78, 0.85, 0.86),
        ("h200-141gb-sxm", 0.75, 0.82, 0.80), ("l40s-48gb", 0.74, 0.86, 0.81),
    ):  # fmt: skip
        peaks, rows, band = peak_rates(accelerator(gpu)), gemm_rows(gpu), 0.06 if "h100" in gpu else 0.03
        size = pl.col("rows") * pl.col("columns")
        big = rows.filter((pl.col("tokens") >= 4096) & (pl.min_horizontal("rows", "columns") >= 4096))
        rate = big.select((2 * pl.col("tokens") * size / pl.col("seconds")).median()).item()
        assert rate / peaks.flops_per_s == pytest.approx(large, abs=band)
        single = rows.filter((pl.col("tokens") == 1) & (pl.min_horizontal("rows", "columns") >= 8192))
        rate = single.select((2 * size / pl.col("seconds")).median()).item()
        assert rate / peaks.memory_bytes_per_s == pytest.approx(weights, abs=band)
        rows = decode_attention_rows(gpu).with_columns(
            bytes=4 * pl.col("requests") * pl.col("context") * pl.col("kv_heads") * pl.col("head_dim")
        )
        rate = rows.filter(pl.col("bytes") >= 5e8).select((pl.col("bytes") / pl.col("seconds")).median()).item()
        assert rate / peaks.memory_bytes_per_s == pytest.approx(cache, abs=band)


def test_prompt_attention_never_exceeds_the_peak():
    """The L40S rows with an fp8 cache, which do by up to 19 times, are left out."""
    for gpu in ("a100-80gb-sxm", "h100-80gb-sxm", "h200-141gb-sxm", "l40s-48gb"):
        pairs = pl.col("requests") * pl.col("heads") * pl.col("prompt") * (pl.col("prompt") + 1) / 2
        flops_per_s = 4 * pl.col("head_dim") * pairs / pl.col("seconds")
        fastest = prefill_attention_rows(gpu).select(flops_per_s.max()).item()
        assert fastest <= peak_rates(accelerator(gpu)).flops_per_s


def test_halves_share_no_shape():
    for rows, shape in (
        (gemm_rows("a100-80gb-sxm"), ["rows", "columns"]),
        (decode_attention_rows("l40s-48gb"), ["requests", "heads", "kv_heads"]),
        (prefill_attention_rows("h100-80gb-sxm"), ["requests", "heads", "kv_heads"]),
    ):
        assert rows.group_by(shape).agg(pl.col("held_out").n_unique())["held_out"].max() == 1
        assert 0.45 < rows["held_out"].mean() < 0.55
        assert rows.select(pl.exclude("seconds", "held_out")).is_unique().all()


def test_fits_come_out_as_recorded():
    gpu, table = "a100-80gb-sxm", kernel_coefficients()
    about = {"accelerator": gpu, "sweep": "vllm", "status": "fitted", "source": "this very test"}
    found = [
        (fit_gemm(gpu, gemm_rows(gpu), "bf16", about), table.require("gemm", gpu, dtype="bf16")),
        (fit_prefill_attention(gpu, prefill_attention_rows(gpu), about), table.require("prefill_attention", gpu)),
        (
            fit_decode_attention(gpu, decode_attention_rows(gpu), False, about),
            table.require("decode_attention", gpu, grouped=False),
        ),
    ]
    for fitted, recorded in found:
        numbers = {name: value for name, value in fitted.model_dump().items() if isinstance(value, float)}
        assert numbers == pytest.approx({name: getattr(recorded, name) for name in numbers}, rel=0.02)


def as_recorded(table: pl.DataFrame, kind: str, keys: list[str]) -> None:
    """Medians of a table equal the recorded ones to 3 digits."""
    recorded = recorded_statistics(kind)
    assert table.select(keys).rows() == recorded.select(keys).rows()
    for column in table.columns:
        if column.endswith(("_error", "_signed", "_p90", "_share")):
            ours, theirs = table[column].fill_nan(None).to_list(), recorded[column].to_list()
            known = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None or b is not None]
            assert [a for a, _ in known] == pytest.approx([b for _, b in known], rel=2e-3, abs=2e-4), column


def test_kernel_statistics_are_as_recorded():
    as_recorded(kernel_errors(), "kernels", ["accelerator", "kernel", "format", "shape", "size", "rows"])


def test_layer_statistics_are_as_recorded():
    as_recorded(layer_errors(), "layers", ["accelerator", "model", "tp", "size", "rows"])


def test_server_statistics_are_as_recorded():
    as_recorded(tpot_errors(), "servers", ["accelerator", "engine", "precision", "model", "points"])


def test_anchor_statistics_are_as_recorded():
    as_recorded(anchor_errors(), "anchors", ["engine", "accelerator", "model", "tp", "phase", "points"])


def test_coefficients_of_one_project_hold_on_the_measurements_of_another():
    """vLLM's sweep by AIConfigurator against Vidur's layers: another engine and year, 12 to 16 % apart and lower."""
    for gpu in ("a100-80gb-sxm", "h100-80gb-sxm"):
        rows = layer_predictions(gpu, "llama-2-70b")
        error = rows["transferred"] / rows["layer_s"] - 1
        assert -0.2 < error.median() < -0.05


def test_servers_are_closed_loops_that_prefill_where_they_decode():
    rows = server_rows()
    assert rows.height == 1063
    assert rows["clients"].min() == 1
    points = tpot_points()
    assert (points["fitted_s"] > 0).all()
    assert np.isfinite(points["fitted_s"].to_numpy()).all()
    # The guide's closed form of three coefficients reached 6.2 % in sample on this group (114 of its 177 points).
    group = points.filter((pl.col("model") == "llama-3.1-8b") & (pl.col("engine") == "trtllm"))
    assert (group["fitted_s"] / group["tpot_s"] - 1).abs().median() <= 0.065


def test_splitwise_leaves_out_what_was_not_measured():
    rows = splitwise_rows()
    assert set(rows["accelerator"]) == {"a100-80gb-sxm", "h100-80gb-sxm"}
    prompt = rows.filter(
        (pl.col("accelerator") == "a100-80gb-sxm") & (pl.col("model") == "llama-2-70b") & (pl.col("tp") == 8)
        & (pl.col("phase") == "prefill") & (pl.col("tokens") == 2048)
    )  # fmt: skip
    # Notes on data §9: 39.3 + 0.1061 P + 9.52e-6 P² ms, rmse 15 ms.
    assert prompt["seconds"].item() == pytest.approx(39.3e-3 + 0.1061e-3 * 2048 + 9.52e-9 * 2048**2, abs=0.03)


def test_whole_steps_of_an_rtx_4090():
    table = {row["phase"]: row for row in rtx_step_errors().iter_rows(named=True)}
    for phase in ("prefill", "decode"):
        assert table[phase]["roofline_error"] <= 0.15
        assert table[phase]["kernels_error"] <= 0.10


@pytest.mark.parametrize(("gpu", "size"), [(gpu, size) for gpu, (_, sizes) in NCCL.items() for size in sizes])
def test_all_reduces_are_within_fifteen_percent_of_sizes_not_fitted(gpu, size):
    cost, rows = all_reduce(accelerator(gpu), size), all_reduce_rows(gpu, size).filter(pl.col("held_out"))
    predicted = cost.alpha_s + rows["bytes"].to_numpy() / cost.bytes_per_s
    assert np.median(np.abs(predicted / rows["seconds"].to_numpy() - 1)) <= 0.15
    assert fit_all_reduce(gpu, size).alpha_s == pytest.approx(cost.alpha_s, rel=1e-3)
