"""Number formats of weights and KV caches, and the bits they take."""

from workbench.errors import UnknownName

BITS = {"fp32": 32.0, "bf16": 16.0, "fp16": 16.0, "fp8": 8.0, "int8": 8.0, "int4": 4.0, "nf4": 4.25}
"""Bits per stored number. nf4: 4 bits and a 16-bit scale for each 64 weights (server chains, BLOOM-176B in NF4)."""


def bits_of(dtype: str) -> float:
    """Bits that one number of this format takes.

    Raises:
        UnknownName: no such format.
    """
    if dtype not in BITS:
        raise UnknownName("number format", dtype, BITS)
    return BITS[dtype]
