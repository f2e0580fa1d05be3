"""Measuring this machine, with a tiny budget, and exchanging bytes with a peer over loopback."""

import socket
import sys
import threading

import polars as pl
import pytest

from workbench import profiles
from workbench.errors import InputError, UserError, WorkbenchError
from workbench.paths import write_atomic
from workbench.profiles import listen_for_peer, measure, measure_disk, measure_gpu, measure_machine
from workbench.profiles.measure_tables import profile_tables
from workbench.profiles.measure_timing import Measured, repeat
from workbench.profiles.toml_writing import toml_text

EXPECTED = {
    "memory_copy_bytes_per_s",
    "weight_stream_bytes_per_s",
    "matrix_product_flops_per_s",
    "disk_read_bytes_per_s",
    "loopback_bytes_per_s",
    "loopback_receive_bytes_per_s",
    "loopback_latency_s",
    "process_start_s",
}


def test_repeat_gives_median_and_quartiles():
    times = iter([99.0, 1.0, 2.0, 4.0])  # the first run is not counted
    row = repeat("x_bytes_per_s", "bytes/s", lambda: next(times), seconds=0, amount=8.0)
    assert (row.low, row.median, row.high, row.runs) == (3.0, 4.0, 6.0, 3)
    times = iter([99.0, 1.0, 2.0, 4.0])
    assert repeat("x_s", "s", lambda: next(times), seconds=0).median == 2.0
    with pytest.raises(WorkbenchError, match="clock did not move"):
        repeat("x_s", "s", lambda: 0.0, seconds=0)


def test_a_machine_is_measured_and_becomes_the_local_profile(home):
    seen = []
    table = measure(seconds=0.2, progress=lambda name, share: seen.append((name, share)))
    assert table.columns == ["quantity", "median", "low", "high", "unit", "runs", "how"]
    assert set(table["quantity"]) >= EXPECTED
    assert table["quantity"].is_unique().all()
    assert (table["runs"] >= 3).all()
    assert ((table["low"] > 0) & (table["low"] <= table["median"]) & (table["median"] <= table["high"])).all()
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert (seen[0][1], seen[-1]) == (0.0, ("saved", 1.0))

    one, beside = profiles.accelerator("local"), profiles.cluster("local")
    medians = dict(table.select("quantity", "median").iter_rows())
    assert float(beside.host.ssd.rate()) == medians["disk_read_bytes_per_s"]
    assert float(beside.nic.rate()) == medians["loopback_bytes_per_s"]
    assert beside.nic.latency() == medians["loopback_latency_s"]
    assert beside.accelerator == one
    for number in (*one.sources(), *beside.sources()):
        assert number.status == "measured"
        assert "workbench measure, 20" in number.source
    assert one.speed("flops_per_s", "nominal") == one.achievable.flops_per_s
    assert not list((home / "profiles").glob(".*")), "no temporary file is left"


def test_slopes_of_overlap_become_the_accelerators(home, monkeypatch):
    """Whoever can measure them hands them in; without them the accelerator has none."""
    monkeypatch.setattr(measure_machine, "_steps", lambda seconds, peer, token, more: [
        ("rates", lambda: [
            Measured(quantity=name, median=1e9, low=1e9, high=1e9, unit=unit, runs=3, how="by hand")
            for name, unit in (("weight_stream_bytes_per_s", "bytes/s"), ("memory_copy_bytes_per_s", "bytes/s"),
                               ("matrix_product_flops_per_s", "flop/s"), ("disk_read_bytes_per_s", "bytes/s"),
                               ("loopback_bytes_per_s", "bytes/s"), ("loopback_latency_s", "s"))
        ]),
        *((name, lambda one=one: one(0.1)) for name, one in more.items()),
    ])  # fmt: skip

    def slopes(seconds):
        return [Measured(quantity=f"overlap_{kind}_slope", median=value, low=value, high=value, unit="1", runs=3,
                         how="two threads") for kind, value in (("memory", 0.0), ("compute", 0.25))]  # fmt: skip

    measure(seconds=0.1, more={"overlap": slopes})
    found = profiles.accelerator("local").achievable
    assert (float(found.overlap_memory_slope), float(found.overlap_compute_slope)) == (0.0, 0.25)
    assert found.overlap_compute_slope.status == "measured"
    assert "two threads; workbench measure" in found.overlap_compute_slope.source
    measure(seconds=0.1)
    assert profiles.accelerator("local").achievable.overlap_memory_slope is None


@pytest.mark.parametrize(
    ("slopes", "words"),
    [("overlap_memory_slope = 0.5", "give both or neither"),
     ("overlap_memory_slope = 0.5\noverlap_compute_slope = 1.5", "above 1")],
)  # fmt: skip
def test_slopes_of_overlap_are_two_from_0_to_1(tmp_path, slopes, words):
    file = tmp_path / "chip.toml"
    file.write_text("memory_bytes = 1e9\n[achievable]\nflops_per_s = 1e12\nmemory_bytes_per_s = 1e9\n" + slopes)
    with pytest.raises(InputError, match=words):
        profiles.accelerator(file)


def test_a_failed_measurement_leaves_the_old_profile(home, monkeypatch):
    path = write_atomic(home / "profiles" / "local.toml", "old = 1\n")

    def broken(seconds):
        raise WorkbenchError("no process")

    monkeypatch.setattr(measure_machine, "process_start", broken)
    with pytest.raises(WorkbenchError, match="no process"):
        measure(seconds=0.05)
    assert path.read_text() == "old = 1\n"


@pytest.mark.parametrize("seconds", [0, -1, 61, float("nan"), "60", True])
def test_a_budget_is_at_most_a_minute(seconds, home):
    with pytest.raises(InputError, match="time budget"):
        measure(seconds=seconds)


def test_disk_read_says_how_the_cache_was_kept_out(tmp_path, monkeypatch):
    row = measure_disk.disk_read(0.05, 4 << 20, tmp_path)
    if sys.platform == "linux":
        assert "O_DIRECT" in row.how or "posix_fadvise" in row.how
    monkeypatch.delattr(measure_disk.os, "O_DIRECT", raising=False)
    assert "posix_fadvise" in measure_disk.disk_read(0.05, 4 << 20, tmp_path).how
    monkeypatch.delattr(measure_disk.os, "posix_fadvise", raising=False)
    assert "may have helped" in measure_disk.disk_read(0.05, 4 << 20, tmp_path).how
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_refused(tmp_path):
    with pytest.raises(WorkbenchError, match="bytes free, too few"):
        measure_disk.disk_read(0.05, 1 << 60, tmp_path)


class Listener:
    """A listener in a thread, and what became of it."""

    def __init__(self, seconds: float = 20.0):
        self.ready = threading.Event()
        self.result: int | BaseException | None = None
        self.thread = threading.Thread(target=self._run, args=(seconds,), daemon=True)
        self.thread.start()
        assert self.ready.wait(10)

    def _run(self, seconds: float) -> None:
        try:
            self.result = listen_for_peer(seconds=seconds, ready=self._heard)
        except WorkbenchError as error:
            self.result = error

    def _heard(self, address: str, port: int, token: str) -> None:
        assert address == "127.0.0.1", "loopback unless told otherwise"
        self.peer, self.token = f"{address}:{port}", token
        self.ready.set()

    def end(self) -> int | BaseException | None:
        self.thread.join(10)
        assert not self.thread.is_alive()
        return self.result


def test_two_peers_measure_the_path_between_them(home):
    listener = Listener()
    table = measure(seconds=0.2, peer=listener.peer, token=listener.token)
    rows = {row["quantity"]: row for row in table.iter_rows(named=True)}
    assert {"peer_send_bytes_per_s", "peer_receive_bytes_per_s", "peer_latency_s"} <= rows.keys()
    assert isinstance(listener.end(), int)
    assert listener.result >= 6 * (1 << 20)
    nic = profiles.cluster("local").nic
    assert float(nic.rate()) == rows["peer_send_bytes_per_s"]["median"]
    assert listener.peer in nic.name


def test_wrong_tokens_are_turned_away(home):
    listener = Listener()
    for _ in range(3):
        with pytest.raises(UserError, match="did not accept the token"):
            measure(seconds=0.05, peer=listener.peer, token="0" * 32)
    assert isinstance(listener.end(), WorkbenchError)
    with pytest.raises(UserError, match=r"Nobody answers|hung up"):
        measure(seconds=0.05, peer=listener.peer, token=listener.token)


def test_a_token_is_good_for_one_session_only(home):
    listener = Listener()
    host, port = listener.peer.split(":")
    with socket.create_connection((host, int(port)), 5) as first:
        first.sendall(listener.token.encode())
        assert first.recv(1) == b"y"
        first.sendall(b"?" * 9)  # not a request: the listener ends
        assert first.recv(1) == b""
    assert listener.end() == 0
    with pytest.raises(UserError, match="Nobody answers"):
        measure(seconds=0.05, peer=listener.peer, token=listener.token)


def test_the_listener_does_not_wait_for_ever():
    assert isinstance(Listener(seconds=0.05).end(), WorkbenchError)


def test_an_address_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f"Cannot listen on 127.0.0.1 port {port}"):
            listen_for_peer(port=port, seconds=0.1)


@pytest.mark.parametrize("peer", ["", "host", "host:", ":80", "host:99999", "host:port"])
def test_a_bad_peer_is_refused(peer, home):
    with pytest.raises(InputError, match="HOST:PORT"):
        measure(seconds=0.05, peer=peer, token="0" * 32)


@pytest.mark.torch
def test_the_gpu_measurements_run_on_any_torch_device():
    torch = pytest.importorskip("torch", reason="needs the torch extra")
    device = torch.device("cpu")
    rows = [
        measure_gpu.host_copy([device, device], 1 << 16, False, 0.01, "gpu_host_to_all_devices"),
        measure_gpu.device_copy([device], 1 << 16, 0.01),
        measure_gpu.device_copy([device, device], 1 << 16, 0.01),
        measure_gpu.gpu_matrix_product(device, 32, 0.01),
        measure_gpu.gpu_weight_stream(device, 32, 0.01),
    ]
    assert [row.unit for row in rows] == ["bytes/s"] * 3 + ["flop/s", "bytes/s"]
    assert all(row.median > 0 for row in rows)


def test_gpu_rows_become_a_gpu_profile(home, monkeypatch):
    monkeypatch.setattr("workbench.profiles.measure_tables.gpu_count", lambda: 2)
    monkeypatch.setattr("workbench.profiles.measure_tables._gpu", lambda: ("A GPU", 80 * 10**9))

    def row(quantity: str, value: float, unit: str = "bytes/s") -> Measured:
        return Measured(quantity=quantity, median=value, low=value, high=value, unit=unit, runs=3, how="made up")

    rows = [
        row("memory_copy_bytes_per_s", 1e10),
        row("weight_stream_bytes_per_s", 2e10),
        row("matrix_product_flops_per_s", 1e11, "flop/s"),
        row("disk_read_bytes_per_s", 1e9),
        row("loopback_bytes_per_s", 3e9),
        row("loopback_latency_s", 1e-5, "s"),
        row("gpu_host_to_device_pinned_bytes_per_s", 5e10),
        row("gpu_host_to_all_devices_pinned_bytes_per_s", 8e10),
        row("gpu_device_to_device_bytes_per_s", 3e11),
        row("gpu_matrix_product_flops_per_s", 7e14, "flop/s"),
        row("gpu_weight_stream_bytes_per_s", 3e12),
    ]
    tables = profile_tables(rows, {"date": "2026-01-01", "processor": "p", "system": "s"}, None)
    write_atomic(home / "profiles" / "local.toml", toml_text(tables))
    one, beside = profiles.accelerator("local"), profiles.cluster("local")
    assert (one.label, float(one.memory_bytes), beside.accelerators) == ("A GPU", 80e9, 2)
    assert float(one.speed("flops_per_s")) == 7e14
    assert float(beside.host.scale_up.rate()) == 3e11
    assert float(beside.host.pcie.rate()) == 5e10
    assert float(beside.host.host_memory.rate()) == 8e10
    assert isinstance(pl.DataFrame(tables["measured"]), pl.DataFrame)
