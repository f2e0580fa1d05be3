"""Downloads against a server on this machine: truncated, wrong, resumed, refused, disk full."""

import hashlib
import http.server
import shutil
import threading
from collections import namedtuple

import pytest

from workbench.errors import InputError, UserError, WorkbenchError
from workbench.workloads import fetch, trace
from workbench.workloads.downloads import fetching
from workbench.workloads.downloads.transport import safe
from workbench.workloads.facts import TraceFacts

CONTENT = b"arrived_at,num_prefill_tokens,num_decode_tokens\n" + b"".join(
    b"%d.5,%d,7\n" % (k, k + 1) for k in range(90_000)
)
NAME = "trace.csv"


class Server(http.server.ThreadingHTTPServer):
    """Serves CONTENT the way its `mood` says, and remembers the ranges it was asked for."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.mood, self.content, self.ranges = "good", CONTENT, []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        asked = self.headers.get("Range")
        server.ranges.append(asked)
        if server.mood == "absent":
            return self.send_error(404)
        if server.mood == "redirect":
            self.send_response(302)
            self.send_header("Location", "http://example.invalid/trace.csv")
            return self.end_headers()
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and server.mood != "no range" else 0
        if start and start >= len(server.content):
            return self.send_error(416)
        body = server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(server.content) - 1}/{len(server.content)}")
        if server.mood != "no length":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if server.mood == "truncated" else body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    running = Server()
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def facts(monkeypatch):
    """The facts of a small trace that stands for a public one."""

    def giving(**update):
        known = TraceFacts(
            name="small",
            title="a small trace",
            format="vidur",
            home="https://example.invalid",
            url="https://example.invalid/" + NAME,
            files=(NAME,),
            bytes=len(CONTENT),
            sha256=hashlib.sha256(CONTENT).hexdigest(),
            rows=90_000,
            licence="MIT",
            citation="nobody",
        ).model_copy(update=update)
        monkeypatch.setattr(fetching, "facts_of", lambda name: known)

    giving()
    return giving


def left(folder) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_a_good_download(server, facts, tmp_path):
    steps = []
    found = fetch("small", tmp_path, server.url, progress=lambda done, total: steps.append((done, total)))
    assert found.path.read_bytes() == CONTENT
    assert (found.bytes, found.verified, found.downloaded) == (len(CONTENT), "sha256", True)
    assert left(tmp_path) == {NAME}
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert steps == sorted(steps)
    assert len(trace(found.path)) == 90_000


def test_a_good_file_is_not_fetched_again(server, facts, tmp_path):
    fetch("small", tmp_path, server.url)
    again = fetch("small", tmp_path, server.url)
    assert not again.downloaded
    assert len(server.ranges) == 1


def test_a_wrong_file_is_not_overwritten(server, facts, tmp_path):
    (tmp_path / NAME).write_text("mine")
    with pytest.raises(InputError, match="move it away"):
        fetch("small", tmp_path, server.url)
    assert (tmp_path / NAME).read_text() == "mine"
    assert server.ranges == []


def test_a_broken_connection_is_picked_up(server, facts, tmp_path):
    server.mood = "truncated"
    with pytest.raises(WorkbenchError, match="run it again to go on"):
        fetch("small", tmp_path, server.url)
    assert left(tmp_path) == {f".{NAME}.part"}
    half = (tmp_path / f".{NAME}.part").stat().st_size
    server.mood = "good"
    assert fetch("small", tmp_path, server.url).path.read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={half}-"]
    assert left(tmp_path) == {NAME}


def test_a_server_without_ranges_starts_over(server, facts, tmp_path):
    (tmp_path / f".{NAME}.part").write_bytes(CONTENT[:1000])
    server.mood = "no range"
    assert fetch("small", tmp_path, server.url).path.read_bytes() == CONTENT
    assert server.ranges == ["bytes=1000-"]


def test_a_whole_part_is_only_checked(server, facts, tmp_path):
    (tmp_path / f".{NAME}.part").write_bytes(CONTENT)
    assert fetch("small", tmp_path, server.url).downloaded
    assert server.ranges == []


def test_a_part_that_is_too_long_starts_over(server, facts, tmp_path):
    (tmp_path / f".{NAME}.part").write_bytes(CONTENT + b"x")
    assert fetch("small", tmp_path, server.url).path.read_bytes() == CONTENT
    assert server.ranges == [None]


def test_a_wrong_part_is_thrown_away(server, facts, tmp_path):
    (tmp_path / f".{NAME}.part").write_bytes(b"y" * 1000)
    with pytest.raises(WorkbenchError, match="sha256"):
        fetch("small", tmp_path, server.url)
    assert left(tmp_path) == set()
    assert fetch("small", tmp_path, server.url).path.read_bytes() == CONTENT


def test_wrong_content_of_the_right_size(server, facts, tmp_path):
    server.content = CONTENT.replace(b",7\n", b",8\n")
    with pytest.raises(WorkbenchError, match="thrown away"):
        fetch("small", tmp_path, server.url)
    assert left(tmp_path) == set()


@pytest.mark.parametrize("content", [CONTENT + b"1,2,3\n", CONTENT[:-10]])
def test_wrong_size(content, server, facts, tmp_path):
    server.content = content
    with pytest.raises(WorkbenchError, match="it is not the trace"):
        fetch("small", tmp_path, server.url)
    assert NAME not in left(tmp_path)


def test_more_than_announced(server, facts, tmp_path):
    server.mood, server.content = "no length", CONTENT + b"1,2,3\n"
    with pytest.raises(WorkbenchError, match="more than"):
        fetch("small", tmp_path, server.url)
    assert NAME not in left(tmp_path)


def test_without_size_and_checksum(server, facts, tmp_path):
    facts(bytes=None, sha256=None)
    server.mood = "no length"
    found = fetch("small", tmp_path, server.url)
    assert (found.verified, found.sha256) == ("nothing", hashlib.sha256(CONTENT).hexdigest())


def test_a_range_that_cannot_be_met_starts_over(server, facts, tmp_path):
    facts(bytes=None)
    (tmp_path / f".{NAME}.part").write_bytes(CONTENT + b"x")
    assert fetch("small", tmp_path, server.url).path.read_bytes() == CONTENT
    assert server.ranges == [f"bytes={len(CONTENT) + 1}-", None]


def test_an_absent_file(server, facts, tmp_path):
    server.mood = "absent"
    with pytest.raises(WorkbenchError, match="answers 404"):
        fetch("small", tmp_path, server.url)


def test_a_redirect_away_from_https(server, facts, tmp_path):
    server.mood = "redirect"
    with pytest.raises(WorkbenchError, match="not HTTPS"):
        fetch("small", tmp_path, server.url)


def test_no_server(facts, tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(WorkbenchError, match="broke off after 0 bytes"):
        fetch("small", tmp_path, "http://127.0.0.1:9")


def test_no_room(server, facts, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: usage(10, 5, 5))
    with pytest.raises(UserError, match="has 5 free"):
        fetch("small", tmp_path, server.url)
    assert server.ranges == []


def test_the_disk_fills_up(server, facts, tmp_path):
    """A device that is always full stands for the unfinished file."""
    (tmp_path / f".{NAME}.part").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"disk of .* is full"):
        fetch("small", tmp_path, server.url)
    assert NAME not in left(tmp_path)


def test_a_folder_that_cannot_be(server, facts, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(UserError, match="cannot be used"):
        fetch("small", tmp_path / "file" / "folder", server.url)


def test_the_folder_where_traces_are_looked_for(server, facts, empty_machine):
    assert fetch("small", base_url=server.url).path == empty_machine / NAME


def test_addresses():
    assert safe("https://example.org/x")
    assert safe("http://127.0.0.1:8000/x")
    assert not safe("http://example.org/x")
    assert not safe("file:///etc/passwd")


def test_unsafe_addresses_are_refused(facts, tmp_path):
    with pytest.raises(UserError, match="neither HTTPS"):
        fetch("small", tmp_path, "http://example.invalid")


def test_a_trace_that_nobody_offers(tmp_path):
    with pytest.raises(UserError, match="does not offer"):
        fetch("lambdascale-burst", tmp_path)
