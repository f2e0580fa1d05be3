"""Every fact file loads, and every number in it says where it comes from."""

import json
import tomllib

import pytest

from workbench.paths import facts_folder
from workbench.profiles import (
    AchievableSpeeds,
    Speeds,
    accelerator,
    accelerators,
    cluster,
    clusters,
    link,
    links,
    model,
    slo,
)
from workbench.profiles.naming import names_in

FACTS = facts_folder()
ACCELERATORS, MODELS, CLUSTERS = (names_in(folder) for folder in ("hardware", "models", "clusters"))
LINKS = links()["name"].to_list()
SLOS = sorted(tomllib.loads((FACTS / "slos.toml").read_text()).keys() - {"sources"})
EVERYTHING = (
    [pytest.param(accelerator, name, id=f"accelerator-{name}") for name in ACCELERATORS]
    + [pytest.param(model, name, id=f"model-{name}") for name in MODELS]
    + [pytest.param(cluster, name, id=f"cluster-{name}") for name in CLUSTERS]
    + [pytest.param(link, name, id=f"link-{name}") for name in LINKS]
    + [pytest.param(slo, name, id=f"slo-{name}") for name in SLOS]
)


@pytest.mark.parametrize(("load", "name"), EVERYTHING)
def test_every_number_has_a_status_and_a_source_of_its_own(load, name):
    one = load(name)
    assert one.name == name
    sources = one.sources(alternates=True)
    assert sources
    for number in sources:
        assert len(number.source) > 8, number  # words, not a key of [sources] that nobody resolved
        assert number.status != "user", number


@pytest.mark.parametrize(("load", "name"), EVERYTHING)
def test_no_default_is_merely_mentioned(load, name):
    mentioned = [number.quantity for number in load(name).sources(alternates=True) if number.status == "mentioned"]
    if (load, name) == (link, "object-storage"):  # nobody measured it; nothing uses it by default
        assert mentioned == ["achievable_bytes_per_s"]
    else:
        assert all("alternates." in path or "overrides." in path for path in mentioned)


FILES = [path for folder in ("hardware", "models", "clusters") for path in sorted((FACTS / folder).glob("*.toml"))]


@pytest.mark.parametrize("path", [*FILES, FACTS / "slos.toml"], ids=lambda path: path.name)
def test_every_source_of_a_file_is_used(path):
    text = path.read_text(encoding="utf-8")
    for key in tomllib.loads(text).get("sources", {}):
        assert f'source = "{key}"' in text, f"{key} is listed and unused"


def test_no_cluster_uses_a_link_that_is_merely_mentioned():
    for name in CLUSTERS:
        assert all(number.status != "mentioned" for number in cluster(name).sources())


@pytest.mark.parametrize("folder", ["hardware", "models", "clusters"])
def test_names_and_aliases_are_unique_and_in_lower_case(folder):
    load = {"hardware": accelerator, "models": model, "clusters": cluster}[folder]
    seen: dict[str, str] = {}
    for name in names_in(folder):
        for known in (name, *load(name).aliases):
            assert known == known.lower()
            assert known not in seen, f"{known} names {name} and {seen[known]}"
            seen[known] = name
            assert load(known).name == name


@pytest.mark.parametrize("name", ACCELERATORS)
def test_an_accelerator_has_its_rates_nominally_and_in_practice(name):
    one = accelerator(name)
    for field in Speeds.model_fields:
        nominal, achievable = getattr(one.nominal, field), getattr(one.achievable, field)
        assert (nominal is None) == (achievable is None), field
        if nominal is not None:
            # The RTX 4090 was measured at boost clock, 0.5 % above its nominal rate.
            assert 0 < float(achievable) <= 1.01 * float(nominal), field
    assert one.achievable.flops_per_s.status in ("measured", "inferred")


def test_an_inferred_rate_says_from_what():
    h800, h100 = accelerator("h800-80gb-sxm"), accelerator("h100-80gb-sxm")
    rate = h800.achievable.flops_per_s
    assert rate.status == "inferred"
    assert "h100-80gb-sxm" in rate.source
    assert float(rate) == pytest.approx(float(h100.achievable.flops_per_s))  # same nominal rate, same share
    h20 = accelerator("h20")
    share = float(h20.achievable.memory_bytes_per_s) / float(h20.nominal.memory_bytes_per_s)
    assert share == pytest.approx(2858 / 3350)


def test_disagreements_stand_side_by_side():
    # Data guide §6: MIG compute 121 by SM count, 156 in the server-chain simulator, 120 in the paper; B200 7.7 and 8.0.
    slice_ = accelerator("a100-80gb-mig-3g.40gb")
    assert float(slice_.nominal.flops_per_s) == 121.3e12
    assert float(slice_.alternate("server-chains-artifact", "flops_per_s")) == 156e12
    paper = slice_.under("server-chains")
    assert float(paper.speed("flops_per_s")) == 120e12
    assert float(paper.speed("memory_bytes_per_s")) == 1.02e12
    assert paper.nominal.host_bytes_per_s == slice_.nominal.host_bytes_per_s
    b200 = accelerator("b200")
    assert float(b200.nominal.memory_bytes_per_s) == 7.7e12
    assert float(b200.under("other-tables").nominal.memory_bytes_per_s) == 8e12
    assert float(b200.under("other-tables").memory_bytes) == 192e9


def test_the_server_chain_paper_numbers_give_its_block_times():
    # Server chains notes §2.2: t_o 1 ms, F 5 GFLOP, 2,000 tokens in, 20 out, s_m 1.32 GB: 108.92 and 175.18 ms.
    for name, expected_s in (("a100-80gb-mig-3g.40gb", 0.10892), ("a100-80gb-mig-2g.20gb", 0.17518)):
        paper = accelerator(name).under("server-chains")
        prefill = 5e9 / float(paper.speed("flops_per_s")) * 2000
        decode = 1.32e9 / float(paper.speed("memory_bytes_per_s")) * 19
        assert 1e-3 + prefill + decode == pytest.approx(expected_s, rel=1e-4)


def test_hardware_agrees_with_the_shared_table(shared_profiles):
    rows = json.loads((shared_profiles / "hardware.json").read_text())["accelerators"]
    names = {"H200-SXM": "h200-sxm", "B200-SXM": "b200-sxm", "L40S": "l40s", "RTX-4090": "rtx-4090"}
    measured = {
        "gemm_TFLOPS_large": ("flops_per_s", 1e12),
        "gemv_GBps": ("memory_bytes_per_s", 1e9),
        "decode_attention_GBps": ("decode_attention_bytes_per_s", 1e9),
        "min_kernel_us": ("kernel_s", 1e-6),
        "nccl_allgather8_busbw_GBps": ("all_gather_bytes_per_s", 1e9),
        "nccl_allreduce8_busbw_GBps": ("all_reduce_bytes_per_s", 1e9),
        "nccl_allreduce8_small_us": ("all_reduce_latency_s", 1e-6),
        "p2p_send_recv_GBps": ("scale_up_bytes_per_s", 1e9),
        "p2p_small_us": ("scale_up_latency_s", 1e-6),
    }
    for row in rows:
        one = accelerator(names.get(row["name"], row["name"].lower().replace("80gb mig ", "80gb-mig-")))
        nominal = one.nominal
        assert float(one.memory_bytes) == row["memory_GB"] * 1e9
        assert float(nominal.flops_per_s) == pytest.approx(row["fp16_dense_tflops"] * 1e12)
        assert float(nominal.memory_bytes_per_s) == pytest.approx(row["hbm_GBps"] * 1e9)
        for field, key in (
            ("scale_up_bytes_per_s", "nvlink_GBps_per_direction"),
            ("host_bytes_per_s", "pcie_GBps_per_direction"),
        ):
            ours = getattr(nominal, field)
            assert (None if ours is None else float(ours)) == (row[key] and row[key] * 1e9), (one.name, field)
        for key, (field, unit) in measured.items():
            if key in row["measured"]:
                number = getattr(one.achievable, field)
                assert float(number) == pytest.approx(row["measured"][key] * unit), (one.name, field)
                assert number.status == "measured"


def test_links_agree_with_the_shared_table(shared_profiles):
    rows = json.loads((shared_profiles / "hardware.json").read_text())["links"]
    found = {(row["nominal_bytes_per_s"], row["achievable_bytes_per_s"]) for row in links().iter_rows(named=True)}
    found |= {
        (float(one.nominal_bytes_per_s), float(row.value))
        for one in map(link, LINKS)
        for row in one.alternates
        if one.nominal_bytes_per_s is not None
    }
    for row in rows:
        if row["measured_GBps"] is not None:
            nominal = row["peak_GBps"] and row["peak_GBps"] * 1e9
            measured = pytest.approx(row["measured_GBps"] * 1e9)
            assert any(pair[0] == nominal and pair[1] == measured for pair in found), row["name"]


@pytest.mark.parametrize("table", [accelerators, links, clusters])
def test_tables_have_a_source_beside_every_number(table):
    frame = table()
    assert frame["name"].is_unique().all()
    rates = [column for column in frame.columns if column.endswith(("bytes_per_s", "flops_per_s", "memory_bytes"))]
    assert len(rates) >= 2
    for column in rates:
        assert (frame[column].is_null() == frame[f"{column}_source"].is_null()).all(), column


def test_an_unknown_rate_and_an_absent_one_are_told_apart():
    with pytest.raises(Exception, match="There is no rate of an accelerator named 'flops'"):
        accelerator("h100").speed("flops")
    with pytest.raises(Exception, match="accelerator l40s-48gb has no scale_up_bytes_per_s"):
        accelerator("l40s").speed("scale_up_bytes_per_s")
    assert float(accelerator("h100").speed("flops_per_s", "nominal")) == 989e12
    assert set(Speeds.model_fields) < set(AchievableSpeeds.model_fields)
