"""How a model is deployed: number formats, tensor parallelism, and how many instances of each kind."""

from typing import Annotated

from pydantic import AfterValidator

from workbench.profiles.checking import build
from workbench.profiles.model_record import Dtype
from workbench.profiles.quantities import Count, Flag, ZeroOrMore
from workbench.records import Record


def _ordered(bounds: tuple[int, int]) -> tuple[int, int]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"is {bounds}, more at least than at most; write (least, most)")
    return bounds


Bounds = Annotated[tuple[ZeroOrMore, Count], AfterValidator(_ordered)]


class Deployment(Record):
    """How instances of a model are laid out.

    Attributes:
        tp: accelerators that hold one instance together (tensor parallelism).
        dtype, kv_dtype: number formats of weights and KV cache; None leaves the model's own.
        prefill, decode: least and most instances of each kind; None leaves both to the system.
        colocated: one kind of instance does both, and `prefill` bounds their number.
    """

    tp: Count = 1
    dtype: Dtype | None = None
    kv_dtype: Dtype | None = None
    prefill: Bounds | None = None
    decode: Bounds | None = None
    colocated: Flag = False


def deployment(
    tp: int = 1,
    dtype: str | None = None,
    kv_dtype: str | None = None,
    prefill: tuple[int, int] | None = None,
    decode: tuple[int, int] | None = None,
    colocated: bool = False,
) -> Deployment:
    """How instances of a model are laid out on a cluster.

    Parameters:
        tp: accelerators per instance (tensor parallelism).
        dtype, kv_dtype: number formats such as "bf16", "fp8", "int4"; None leaves the model's own.
        prefill, decode: (least, most) instances of each kind; None leaves both to the system.
        colocated: one kind of instance does both; `prefill` bounds their number.

    Raises:
        InputError: a number that cannot be, with the field.

    >>> deployment(tp=4, dtype="bf16", prefill=(1, 7), decode=(1, 7)).prefill
    (1, 7)
    """
    fields = {"tp": tp, "dtype": dtype, "kv_dtype": kv_dtype, "prefill": prefill, "decode": decode}
    return build(Deployment, fields | {"colocated": colocated})
