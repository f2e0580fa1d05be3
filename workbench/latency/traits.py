"""What step times need to know of an accelerator beyond its profile: `data/latency/accelerators.toml`."""

import functools
from pathlib import Path

from workbench.paths import facts_folder
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.checking import build
from workbench.profiles.quantities import Bytes, Number
from workbench.profiles.toml_reading import read_toml, sources_in
from workbench.records import Quantity, Record


class Traits(Record):
    """One accelerator's.

    Attributes:
        cache_bytes: level-2 cache, None where it is not listed.
        fp8_speedup: rate of fp8 matrix products over 16-bit ones, None where there are none.
    """

    cache_bytes: Bytes | None = None
    fp8_speedup: Number | None = None


def cache_bytes(accelerator: str) -> float:
    """Size of the level-2 cache, 0 where it is not listed (then every byte comes from memory)."""
    found = _all(facts_folder() / "latency" / "accelerators.toml").get(accelerator, Traits()).cache_bytes
    return 0.0 if found is None else float(found)


def arithmetic_speedup(accelerator: Accelerator, dtype: str) -> Quantity:
    """How much faster than its 16-bit rate an accelerator multiplies weights of a number format.

    4-bit and 8-bit integer weights are unpacked and multiplied in 16 bits, and so are fp8 ones where the hardware has
    no fp8 arithmetic; fp32 ones are taken at the profile's rate, which they do not exceed.
    """
    traits = _all(facts_folder() / "latency" / "accelerators.toml").get(accelerator.name, Traits())
    if dtype == "fp8" and traits.fp8_speedup is not None:
        return traits.fp8_speedup
    return Quantity(value=1.0, unit="1", status="inferred", source="at the rate of the accelerator's profile")


@functools.cache
def _all(path: Path) -> dict[str, Traits]:
    tables = read_toml(path)
    sources = sources_in(tables, path)
    return {
        name: build(Traits, table, file=path, sources=sources) for name, table in tables.items() if name != "sources"
    }
