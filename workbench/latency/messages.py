"""The all-reduces of tensor parallelism: α + S/B with α and B by accelerator and group size."""

import functools
from pathlib import Path
from typing import Annotated

from pydantic import Field

from workbench.errors import UserError
from workbench.paths import facts_folder
from workbench.profiles.accelerator_record import Accelerator
from workbench.profiles.checking import build
from workbench.profiles.toml_reading import read_toml, sources_in
from workbench.records import Quantity, Record, Source, Status, whole

MOST = 8
"""Accelerators of the largest group whose all-reduces were measured."""


class AllReduceRow(Record):
    """Seconds of an all-reduce of S bytes among `accelerators` of one host are alpha_s + S / bytes_per_s."""

    accelerator: str
    accelerators: Annotated[int, Field(ge=2)]
    alpha_s: Annotated[float, Field(ge=0)]
    bytes_per_s: Annotated[float, Field(gt=0)]
    status: Status
    source: str = Field(min_length=9)


class AllReduce(Record):
    """Cost of one all-reduce: α in seconds, B in bytes of the whole message a second, and where they come from."""

    alpha_s: float = 0.0
    bytes_per_s: float = float("inf")
    numbers: tuple[Source, ...] = ()


def all_reduce(accelerator: Accelerator, tp: int) -> AllReduce:
    """What one all-reduce among `tp` accelerators of a host costs.

    Measured groups (2, 4, 8) are interpolated linearly in α and in bus bandwidth. Where none was measured, α is that
    of the A100 and B that of a ring over the accelerator's scale-up link, or over PCIe without one.

    Raises:
        UserError: more accelerators than were measured together.
    """
    if whole(tp, "tp", 1) == 1:
        return AllReduce()
    if tp > MOST:
        raise UserError(
            f"TP {tp} spans more than the {MOST} accelerators of a host, and all-reduces across hosts were not "
            f"measured; choose a TP of at most {MOST}."
        )
    rows = _rows(facts_folder() / "latency" / "collectives.toml")
    own = [row for row in rows if row.accelerator == accelerator.name]
    latency = own or [row for row in rows if row.accelerator == "a100-80gb-sxm"]
    alpha = _between(latency, tp, "alpha_s", accelerator.name)
    bus = _between(own, tp, "bus", accelerator.name) if own else _bus_of_profile(accelerator)
    rate = Quantity(value=float(bus) / (2 * (tp - 1) / tp), unit="bytes/s", status=bus.status, source=bus.source)
    numbers = (_source(f"all-reduce over {tp}, latency", alpha), _source(f"all-reduce over {tp}, rate", rate))
    return AllReduce(alpha_s=float(alpha), bytes_per_s=float(rate), numbers=numbers)


def least_message_s_per_byte(accelerator: Accelerator, tp: int) -> float:
    """A bound: every byte of the message leaves and enters each accelerator once, at the link's nominal rate.

    A ring needs 2(n - 1)/n times as much; a switch that adds up on the way, as NVLink's can, comes down to once.
    """
    return 0.0 if tp == 1 else 1.0 / float(_link(accelerator, "nominal"))


def _between(rows: list[AllReduceRow], tp: int, what: str, name: str) -> Quantity:
    rows = sorted(rows, key=lambda row: row.accelerators)

    def value(row: AllReduceRow) -> float:
        share = 2 * (row.accelerators - 1) / row.accelerators
        return row.alpha_s if what == "alpha_s" else row.bytes_per_s * share

    below = max((row for row in rows if row.accelerators <= tp), key=lambda row: row.accelerators, default=rows[0])
    above = min((row for row in rows if row.accelerators >= tp), key=lambda row: row.accelerators, default=rows[-1])
    width = above.accelerators - below.accelerators
    part = 0.0 if width == 0 else (tp - below.accelerators) / width
    exact = width == 0 and below.accelerators == tp and below.accelerator == name
    return Quantity(
        value=value(below) + part * (value(above) - value(below)),
        unit="s" if what == "alpha_s" else "bytes/s",
        status=below.status if exact else "inferred",
        source=below.source if exact else f"from groups of other sizes or another accelerator ({below.source})",
    )


def _bus_of_profile(accelerator: Accelerator) -> Quantity:
    if (measured := accelerator.achievable.all_reduce_bytes_per_s) is not None:
        return measured
    return _link(accelerator, "achievable")


def _link(accelerator: Accelerator, which: str) -> Quantity:
    if accelerator.nominal.scale_up_bytes_per_s or accelerator.achievable.scale_up_bytes_per_s:
        return accelerator.speed("scale_up_bytes_per_s", which)
    if accelerator.nominal.host_bytes_per_s or accelerator.achievable.host_bytes_per_s:
        return accelerator.speed("host_bytes_per_s", which)
    raise UserError(
        f"Accelerator {accelerator.name} has no link to its neighbours, which tensor parallelism needs; "
        "choose TP 1, or add scale_up_bytes_per_s to its profile."
    )


def _source(what: str, value: Quantity) -> Source:
    return Source(quantity=what, value=f"{value.value:.6g}", unit=value.unit, status=value.status, source=value.source)


@functools.cache
def _rows(path: Path) -> tuple[AllReduceRow, ...]:
    tables = read_toml(path)
    sources = sources_in(tables, path)
    rows = [row | {"source": sources.get(row.get("source"), row.get("source"))} for row in tables.get("all_reduce", ())]
    return tuple(build(AllReduceRow, row, file=path) for row in rows)
