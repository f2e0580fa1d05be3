"""Where a converted trace came from, kept beside its file so that a stand-in stays one.

The origin lies in `FILE.origin.json` with the checksum of the file it belongs to; after an edit of the file it no
longer belongs, and is not believed.
"""

from pathlib import Path

import polars as pl
from pydantic import ValidationError

from workbench.paths import write_atomic
from workbench.records import Record
from workbench.workloads.finding import sha256_of
from workbench.workloads.handle import Trace
from workbench.workloads.ledger import Defect
from workbench.workloads.origin import Origin

_MOST_BYTES = 1 << 20


class Sidecar(Record):
    """The origin of a converted trace and the checksum of its file."""

    file_sha256: str
    origin: Origin


def sidecar_path(path: Path) -> Path:
    """Where the origin of a file is kept."""
    return path.with_name(path.name + ".origin.json")


def remember(path: Path, origin: Origin) -> Path:
    """Write the origin beside a file that was just written."""
    entry = Sidecar(file_sha256=sha256_of(path), origin=origin)
    return write_atomic(sidecar_path(path), entry.model_dump_json(indent=1))


def remembered(found: Trace) -> Trace:
    """The trace with the origin kept beside its file, where there is one that belongs to these very bytes."""
    path = Path(found.origin.file)
    beside = sidecar_path(path)
    if not beside.is_file() or beside.stat().st_size > _MOST_BYTES:
        return found
    try:
        entry = Sidecar.model_validate_json(beside.read_bytes())
    except ValidationError:
        return _disbelieved(found, "it cannot be read")
    if entry.file_sha256 != found.origin.sha256:
        return _disbelieved(found, "the file has changed since")
    read = found.origin
    origin = entry.origin.model_copy(
        update={
            "file": read.file,
            "sha256": read.sha256,
            "bytes": read.bytes,
            "format": read.format,
            "rows_read": read.rows_read,
            "start_s": entry.origin.start_s + read.start_s,
            "transformations": (*entry.origin.transformations, *read.transformations),
        }
    )
    return found.model_copy(update={"origin": origin})


def _disbelieved(found: Trace, why: str) -> Trace:
    entry = Defect(
        defect=f"{sidecar_path(Path(found.origin.file)).name} does not belong: {why}",
        rows=len(found),
        handling="not used",
    )
    table = pl.DataFrame([entry.model_dump()], schema=found.defects.schema)
    return found.model_copy(update={"defects": pl.concat([found.defects, table])})
