"""A named trace, fetched from its publisher into the folder where it is looked for."""

import os
import shutil
import urllib.parse
from pathlib import Path

from workbench.errors import UserError, WorkbenchError
from workbench.paths import user_data_folder
from workbench.records import Record
from workbench.workloads.downloads.transport import Progress, download
from workbench.workloads.facts import TraceFacts, facts_of
from workbench.workloads.finding import check_content, sha256_of


class Fetched(Record):
    """A downloaded trace.

    Attributes:
        path: where it lies.
        bytes, sha256: of the file.
        verified: "sha256", "size", or "nothing" where the publisher gives neither.
        downloaded: False where it had been there already.
    """

    path: Path
    bytes: int
    sha256: str
    verified: str
    downloaded: bool


def fetch(
    name: str, folder: str | Path | None = None, base_url: str | None = None, progress: Progress | None = None
) -> Fetched:
    """Download a public trace, check size and sha256, and put it in its place whole or not at all.

    A download that broke off goes on where it stopped. A good file is never overwritten, nor is another file of the
    same name.

    Parameters:
        name: from `traces()`.
        folder: where to; by default the user's trace folder.
        base_url: another server that has the file under the same name (a mirror); https, or http on this machine.
        progress: called with bytes so far and in all.

    Raises:
        UserError: for a trace that nobody offers, a wrong file in the way, or a full disk.
        WorkbenchError: when the server or the connection fails, or sends something else than the trace.
    """
    facts = facts_of(name)
    if not facts.url:
        raise UserError(f"The publisher of {name} does not offer it for download; see {facts.home}.")
    target_folder = Path(folder).expanduser() if folder is not None else user_data_folder() / "traces"
    target = target_folder / facts.files[0]
    if target.exists():
        check_content(facts, target)
        return _report(facts, target, downloaded=False)
    _make_room(facts, target_folder)
    part = target.with_name(f".{target.name}.part")
    url = facts.url if base_url is None else f"{base_url.rstrip('/')}/{urllib.parse.quote(facts.files[0])}"
    download(url, part, facts.bytes, progress)
    found = sha256_of(part)
    if facts.sha256 is not None and found != facts.sha256:
        part.unlink()
        raise WorkbenchError(
            f"What {url} sent has sha256 {found[:12]}… instead of {facts.sha256[:12]}…; it was thrown away, try later."
        )
    os.replace(part, target)
    return _report(facts, target, downloaded=True)


def _make_room(facts: TraceFacts, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise UserError(f"{folder} cannot be used ({error.strerror}); choose another folder.") from None
    if facts.bytes is not None and free < facts.bytes:
        raise UserError(
            f"{facts.name} has {facts.bytes:,} bytes and {folder} has {free:,} free; make room or choose another."
        )


def _report(facts: TraceFacts, path: Path, downloaded: bool) -> Fetched:
    verified = "sha256" if facts.sha256 else "size" if facts.bytes is not None else "nothing"
    return Fetched(
        path=path,
        bytes=path.stat().st_size,
        sha256=facts.sha256 or sha256_of(path),
        verified=verified,
        downloaded=downloaded,
    )
