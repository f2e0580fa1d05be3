"""Real trace files on this machine, each checked against what the publisher released."""

import hashlib
from pathlib import Path

from workbench.errors import InputError, UserError
from workbench.paths import trace_folders
from workbench.workloads.facts import TraceFacts

_CHUNK = 1 << 20


def find(facts: TraceFacts) -> Path:
    """Where the real trace lies.

    Raises:
        UserError: when it is not here, with the command that fetches it and the stand-in to ask for instead.
        InputError: when a file of its name holds something else.
    """
    path = located(facts)
    if path is None:
        raise absent(facts)
    check_content(facts, path)
    return path


def located(facts: TraceFacts) -> Path | None:
    """The first file that bears one of the trace's names, unchecked."""
    places = (folder / name for folder in trace_folders() for name in facts.files)
    return next((path for path in places if path.is_file()), None)


def absent(facts: TraceFacts) -> UserError:
    """What to say when a trace is not here; it is never replaced by another without being asked."""
    ways = [f"fetch it with `{facts.fetch_command}`"] if facts.url else []
    if facts.stand_in:
        ways.append(f'ask for the generated stand-in "{facts.stand_in.name}"')
    offered = "" if facts.url else " and nobody offers it for download"
    remedy = " or ".join(ways) or f"see {facts.home}"
    return UserError(f"The trace {facts.name} is not on this machine{offered}; {remedy}.")


def check_content(facts: TraceFacts, path: Path) -> None:
    """Refuse a file that is not the official one, by size and then by sha256."""
    size = path.stat().st_size
    if facts.other_form and size == facts.other_form.bytes:
        if facts.sha256 and sha256_of(path, crlf=True) != facts.sha256:
            raise _counterfeit(facts, path, "its content with CRLF line ends has another sha256")
    elif facts.bytes is not None and size != facts.bytes:
        raise _counterfeit(facts, path, f"it has {size:,} bytes instead of {facts.bytes:,}")
    elif facts.sha256 is not None and (found := sha256_of(path)) != facts.sha256:
        raise _counterfeit(facts, path, f"its sha256 starts with {found[:12]} instead of {facts.sha256[:12]}")


def _counterfeit(facts: TraceFacts, path: Path, why: str) -> InputError:
    known = f" (known counterfeits: {'; '.join(facts.counterfeits)})" if facts.counterfeits else ""
    again = f" and run `{facts.fetch_command}`" if facts.url else ""
    return InputError(
        f"this file bears the name of {facts.name} but {why}{known}",
        f"move it away{again}, or load it by its path under its own name",
        file=path,
    )


def sha256_of(path: Path, crlf: bool = False) -> str:
    """sha256 of a file, or of what it would be with CRLF instead of LF line ends."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk.replace(b"\n", b"\r\n") if crlf else chunk)
    return digest.hexdigest()
