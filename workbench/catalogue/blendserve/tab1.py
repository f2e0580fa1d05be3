"""Table 1: times of a layer's matrix products and of its attention, estimated and measured."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.blending.model.costs import Costs
from workbench.catalogue.blendserve.jobs import costs_for
from workbench.catalogue.blendserve.parameters import REACHED, On, Served
from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par
from workbench.catalogue.published import published
from workbench.catalogue.spec import Assumption, Match, experiment
from workbench.latency.kernel_coefficients import kernel_coefficients
from workbench.latency.kernels.parts import gemm_s
from workbench.latency.work import work_of
from workbench.profiles import Accelerator, Model

BATCHES = (512, 768, 1024)
CONTEXT = 1024
PRODUCTS, ATTENTION = "GEMM", "attention"
IMPLIED = "rate that the GEMM estimates imply"
SWEEPS, TABLE = "another party's kernel sweeps", "rates of Table 1 at a batch of 1024"


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["operations"].filter(pl.col("batch") == BATCHES[-1])
    rows = {(row["operation"], row["how"]): row["seconds"] * 1e3 for row in table.iter_rows(named=True)}
    return (
        f"At {BATCHES[-1]} requests of {CONTEXT} tokens a layer's attention is estimated at "
        f"{rows[ATTENTION, 'estimated']:.3f} ms; kernel sweeps give {rows[ATTENTION, 'measured']:.3f} ms for it and "
        f"{rows[PRODUCTS, 'measured']:.3f} ms for the matrix products."
    )


@experiment(
    "blendserve/tab1",
    title="Times of a layer's operations",
    question="How long do the matrix products and the attention of a layer take, and how well can they be foretold?",
    backends=("analytic",),
    seconds={"analytic": 0.1},
    draw="blending_basics.operations",
    say=_say,
    matches=(
        Match(("attention, estimated",), tolerance=0.001, fitted=("512",)),
        Match(("GEMM, measured", "attention, measured"), tolerance=0.1,
              assumptions=(Assumption("kernels are those of another party's sweeps", {"kernels": TABLE}),)),
        Match(("largest error of the estimates", IMPLIED), tolerance=0.1, note="checks the printed table in itself"),
        Match((f"{PRODUCTS}, estimated",), incomparable=dict.fromkeys(map(str, BATCHES), "its rule is not known")),
        Match(("error of the model against a measured GPU [acceptance]",),
              incomparable={"both operations": "it takes a run on an accelerator; this run had none"}),
    ),
)  # fmt: skip
def tab1(
    context: Context,
    *,
    model: Served = "llama-3-8b",
    accelerator: On = "a100-80gb-sxm",
    attention_share: Annotated[
        float,
        Par("Share of bandwidth in the estimate of attention", low=0.5, high=1.0, step=0.01, status="fitted",
            source="0.85 gives the printed estimate at a batch of 512; the others follow"),
    ] = 0.85,
    kernels: Annotated[
        str,
        Par("Measured kernels", choices=(SWEEPS, TABLE), status="measured",
            source="sweeps of vLLM kernels on an A100 (aiconfigurator); the other rates are read off the table"),
    ] = SWEEPS,
) -> dict[str, pl.DataFrame]:  # fmt: skip
    """Attention: its bytes over a share of peak bandwidth. Measured: kernels of another party's sweeps.

    The rule behind the printed estimates of matrix products is not known; ours are not laid beside them.
    """
    costs = costs_for(context, model, accelerator)
    shape, chip = context.model(model), context.accelerator(accelerator)
    layer_bytes = shape.kv_bytes_per_token_per_layer
    rate = attention_share * costs.memory_bytes_per_s
    rows, known = [], []
    for batch in BATCHES:
        moved = batch * CONTEXT * layer_bytes
        products, attention = (
            _reached(costs, shape, batch, moved) if kernels == TABLE else _swept(context, shape, chip, batch, moved)
        )
        for operation, how, seconds in (
            (ATTENTION, "estimated", moved / rate),
            (PRODUCTS, "measured", products),
            (ATTENTION, "measured", attention),
        ):
            rows.append({"operation": operation, "how": how, "batch": batch, "seconds": seconds})
            known.append((f"{operation}, {how}", batch, seconds, "s"))
    known.append(("bandwidth that the attention estimates imply", "", rate, "bytes/s"))
    known.append(("largest error of the estimates", "", _printed_error(), "1"))
    flops_per_token = sum(matrix.flops_per_token for matrix in work_of(shape).matrices)
    known += [
        (IMPLIED, row["x"], flops_per_token * float(row["x"]) / row["value"], "FLOP/s")
        for row in published("blendserve/tab1").filter(series=f"{PRODUCTS}, estimated").to_dicts()
    ]
    return {"operations": pl.DataFrame(rows), "headline": headline(known)}


def _reached(costs: Costs, shape: Model, batch: int, moved: float) -> tuple[float, float]:
    """Seconds of a layer's products and attention at the shares of peak rates that Table 1 reached at 1024."""
    flops = sum(matrix.flops_per_token for matrix in work_of(shape).matrices) * batch
    return flops / (REACHED.compute_share * costs.flops_per_s), moved / (
        REACHED.memory_share * costs.memory_bytes_per_s
    )


def _swept(context: Context, shape: Model, chip: Accelerator, batch: int, moved: float) -> tuple[float, float]:
    """Seconds of a layer's products and attention by kernels fitted to sweeps; without sweeps by achievable rates."""
    work, table = work_of(shape), kernel_coefficients()
    gemm = table.find("gemm", chip.name, dtype="bf16")
    decode = table.find("decode_attention", chip.name, grouped=shape.heads > shape.kv_heads)
    peak_flops, peak_bytes = (float(chip.speed(name, "nominal")) for name in ("flops_per_s", "memory_bytes_per_s"))
    if gemm is None or decode is None:
        flops, rate = (float(chip.speed(name)) for name in ("flops_per_s", "memory_bytes_per_s"))
        context.cite("matrix products and attention", "achievable rates", "", "measured", "no kernel sweep of it")
        return sum(m.flops_per_token for m in work.matrices) * batch / flops, moved / rate
    context.cite("matrix products", "fitted coefficients", "", gemm.status, gemm.source)
    context.cite("decode attention", "fitted coefficients", "", decode.status, decode.source)
    products = sum(
        gemm_s(
            float(batch), m.flops_per_token / (gemm.compute_fraction * peak_flops),
            m.weight_bytes / (gemm.memory_fraction * peak_bytes),
            m.activation_bytes_per_token / (gemm.memory_fraction * peak_bytes),
            gemm.launch_s + m.rows * gemm.launch_s_per_row, gemm.exponent,
        )
        for m in work.matrices
    )  # fmt: skip
    heads = batch * work.kv_heads * decode.s_per_kv_head
    return products, decode.launch_s + decode.split_s + max(heads, moved / (decode.memory_fraction * peak_bytes))


def _printed_error() -> float:
    """The largest relative error of the printed estimates against the printed measurements."""
    values = {(row["series"], row["x"]): row["value"] for row in published("blendserve/tab1").iter_rows(named=True)}
    return max(
        abs(values[f"{operation}, estimated", str(batch)] / values[f"{operation}, measured", str(batch)] - 1)
        for operation in (PRODUCTS, ATTENTION)
        for batch in BATCHES
    )
