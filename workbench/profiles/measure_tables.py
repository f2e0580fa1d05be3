"""From measured rows to the accelerator and the cluster of the profile "local"."""

from typing import Any

import psutil

from workbench.profiles.measure_gpu import gpu_count
from workbench.profiles.measure_timing import Measured


def profile_tables(rows: list[Measured], machine: dict[str, str], peer: str | None) -> dict[str, Any]:
    """The tables of `local.toml`: accelerator, cluster, machine, and every measured row.

    The accelerator is the GPU, or the processor taken as one where there is none. The cluster is one host; its network
    card is the path to the peer, or the loopback address where no peer was measured.

    Parameters:
        rows: what was measured.
        machine: date, processor and versions, for the source of every number.
        peer: the other host, or None.
    """
    found = {row.quantity: row for row in rows}
    described = f"workbench measure, {machine['date']}, {machine['processor']}, {machine['system']}"

    def number(*names: str) -> dict[str, Any] | None:
        row = next((found[name] for name in names if name in found), None)
        if row is None:
            return None
        return {"value": row.median, "status": "measured", "source": f"{row.quantity}: {row.how}; {described}"}

    def link(rate: dict[str, Any] | None, latency: dict[str, Any] | None = None, name: str = "") -> dict | None:
        return None if rate is None else {"name": name, "achievable_bytes_per_s": rate, "latency_s": latency}

    count = gpu_count()
    if count:
        speeds = {
            "flops_per_s": number("gpu_matrix_product_flops_per_s"),
            "memory_bytes_per_s": number("gpu_weight_stream_bytes_per_s"),
            "scale_up_bytes_per_s": number("gpu_device_to_device_bytes_per_s"),
            "host_bytes_per_s": number("gpu_host_to_device_pinned_bytes_per_s"),
        }
        label, memory = _gpu()
    else:
        speeds = {
            "flops_per_s": _fastest(found, number),
            "memory_bytes_per_s": number("weight_stream_bytes_per_s"),
            "host_bytes_per_s": number("memory_copy_bytes_per_s"),
        }
        label, memory = machine["processor"], psutil.virtual_memory().total

    speeds |= {name: number(name) for name in ("overlap_memory_slope", "overlap_compute_slope")}

    def counted(value: int, why: str) -> dict[str, Any]:
        return {"value": value, "status": "measured", "source": f"{why}; {described}"}

    to_all = number("gpu_host_to_all_devices_pinned_bytes_per_s", "memory_copy_bytes_per_s")
    group = {
        "hosts": counted(1, "this machine"),
        "accelerators": counted(max(1, count), "GPUs that torch sees, or the processor as one"),
        "accelerator": "local",
        "nics": counted(1, "the path that was measured"),
        "nic": link(
            number("peer_send_bytes_per_s", "loopback_bytes_per_s"),
            number("peer_latency_s", "loopback_latency_s"),
            f"TCP to {peer}" if peer else "TCP on the loopback address",
        ),
        "host_memory_bytes": counted(psutil.virtual_memory().total, "total memory"),
        "host_memory": link(to_all, name="host memory"),
        "ssd": link(number("disk_read_bytes_per_s"), name="disk"),
    }
    return {
        "accelerator": {
            "label": label,
            "memory_bytes": counted(memory, "total memory"),
            "achievable": {field: value for field, value in speeds.items() if value is not None},
            "note": "" if count else "The processor taken as an accelerator; matrix products in the fastest format.",
        },
        "cluster": {"label": f"this machine ({label})", "groups": [group]},
        "machine": machine,
        "measured": [row.model_dump() for row in rows],
    }


def _fastest(found: dict[str, Measured], number) -> dict[str, Any]:
    products = [row for row in found.values() if row.unit == "flop/s" and not row.quantity.startswith("gpu_")]
    return number(max(products, key=lambda row: row.median).quantity)


def _gpu() -> tuple[str, int]:
    import torch

    properties = torch.cuda.get_device_properties(0)
    return properties.name, properties.total_memory
