"""Tables 1 and 2: what the profiles of the paper's clusters and of the vendors' machines say, and what follows."""

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl

from workbench.catalogue.context import Context
from workbench.catalogue.headline import headline
from workbench.catalogue.parameters import Par, name_of
from workbench.catalogue.spec import ALL, Match, experiment
from workbench.profiles import Cluster

PAPERS = {"cluster A (A800 80 GB)": "blitzscale-a", "cluster B (A100 80 GB)": "blitzscale-b"}
VENDORS = {
    "a2-ultragpu-8g (A100)": "a2-ultragpu-8g",
    "p4d.24xlarge (A100)": "p4d.24xlarge",
    "ml.hpcpni2.28xlarge (A100)": "ml.hpcpni2.28xlarge",
    "p4de.24xlarge (A100)": "p4de.24xlarge",
    "a3-highgpu-8g (H100)": "a3-highgpu-8g",
    "a3-megagpu-8g (H100)": "a3-megagpu-8g",
    "p5.48xlarge (H100)": "p5.48xlarge",
}
LINKS = {
    "local SSD": ("ssd", "ssds"),
    "remote SSD": ("remote_store", "remote_stores"),
    "host to GPU (PCIe)": ("pcie", "accelerators"),
    "network": ("nic", "nics"),
    "GPU to GPU inside a host": ("scale_up", "accelerators"),
}
"""Name in the tables -> link of a host, and how many there are of it; rates are per accelerator."""

TAKEN = "the profile was filled in from this table; the entry guards it against slips"

Model = Annotated[str, Par("Model that is loaded", profile="model", source="OSDI'25 paper §1: 16 GB")]


def _say(tables: Mapping[str, pl.DataFrame], parameters: Mapping[str, Any]) -> str:
    table = tables["links"].drop_nulls("load_s")
    slow, fast = table.sort("load_s").row(-1, named=True), table.sort("load_s").row(0, named=True)
    text = f"{name_of(parameters['model'])} is on a GPU after {fast['load_s']:.3g} s over {fast['link']} of"
    return f"{text} {fast['cluster']}, and after {slow['load_s']:.3g} s over {slow['link']} of {slow['cluster']}."


@experiment(
    "blitzscale/tab1",
    title="The two clusters",
    question="How fast are the links of the paper's clusters, and how long does each take to bring the weights?",
    backends=("analytic",),
    seconds={"analytic": 0.02},
    draw="copies.links",
    say=_say,
    matches=(Match(series=("load of 16 GB from the SSD",)), Match(fitted=ALL, note=TAKEN)),
)
def tab1(context: Context, *, model: Model = "llama-3-8b") -> dict[str, pl.DataFrame]:
    """Nominal rates by link and accelerator, and seconds of loading a model over each, on clusters A and B."""
    size = context.model(model).weight_bytes
    known = [("load of 16 GB from the SSD", "10 Gbps", 16e9 / 1.25e9, "s")]
    rows = []
    for label, name in PAPERS.items():
        cluster = context.cluster(name)
        rows += _links(context, label, cluster, size)
        host = cluster.host
        known += [("hosts", label, cluster.hosts, "1"), ("GPUs per host", label, host.accelerators, "1")]
        for series, link in (
            ("GPU to GPU inside a host", host.scale_up),
            ("GPU to GPU between hosts (RDMA)", host.nic),
            ("host to GPU (PCIe)", host.pcie),
            ("SSD to GPU", host.ssd),
        ):
            if link is not None and link.nominal_bytes_per_s is not None:
                known.append((series, label, float(link.nominal_bytes_per_s), "bytes/s"))
    return {"links": pl.DataFrame(rows), "headline": headline(known)}


@experiment(
    "blitzscale/tab2",
    title="What clouds offer",
    question="Is the network of rented machines faster than their disks, and by how much?",
    backends=("analytic",),
    seconds={"analytic": 0.05},
    draw="copies.links",
    say=_say,
    matches=(Match(fitted=ALL, note=TAKEN),),
)
def tab2(context: Context, *, model: Model = "llama-3-8b") -> dict[str, pl.DataFrame]:
    """Nominal rates by link and accelerator, and seconds of loading a model over each, on seven machines."""
    size = context.model(model).weight_bytes
    rows, known = [], []
    for label, name in VENDORS.items():
        cluster = context.cluster(name)
        found = _links(context, label, cluster, size)
        rows += found
        known += [
            (row["link"], label, row["bytes_per_s"], "bytes/s") for row in found if row["bytes_per_s"] is not None
        ]
        known.append(("has NVLink (1 yes, 0 no)", label, float(cluster.host.scale_up is not None), "1"))
        known += [
            ("list price of the machine", label, float(other.value), "currency/h")
            for other in cluster.alternates
            if (other.preset, other.quantity) == ("list-price", "price_per_hour")
        ]
    return {"links": pl.DataFrame(rows), "headline": headline(known)}


def _links(context: Context, label: str, cluster: Cluster, size: float) -> list[dict[str, Any]]:
    """Rate per accelerator of every link that a source states, and seconds of loading over it."""
    host, rows = cluster.host, []
    for name, (field, counted) in LINKS.items():
        link = getattr(host, field)
        if link is None or link.nominal_bytes_per_s is None:
            rate = None
        else:
            rate = float(link.nominal_bytes_per_s) * getattr(host, counted) / host.accelerators
            context.cite(f"{label}: {name}, per accelerator", link.nominal_bytes_per_s)
        rows.append({"cluster": label, "link": name, "bytes_per_s": rate, "load_s": size / rate if rate else None})
    return rows
