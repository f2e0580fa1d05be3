"""Facts about traces: complete, consistent, each with its source."""

import pytest

from workbench.workloads.downloads.transport import safe
from workbench.workloads.facts import all_facts, same_data
from workbench.workloads.readers import FORMATS

FACTS = all_facts()


@pytest.mark.parametrize("name", FACTS)
def test_a_trace_is_fully_described(name):
    facts = FACTS[name]
    assert facts.name == name
    assert facts.licence
    assert facts.citation
    assert facts.format in {form.name for form in FORMATS}
    assert not facts.url or (safe(facts.url) and facts.url.endswith(facts.files[0]))
    assert facts.sha256 is None or (len(facts.sha256) == 64 and facts.checksum_source)
    assert all(other in FACTS for other in facts.same_data_as)
    assert all(group.source and group.values for group in facts.published)
    if facts.stand_in:
        assert facts.stand_in.name == f"{name}-like"
        assert facts.stand_in.basis


def test_no_two_traces_share_a_file_or_checksum():
    files = [file for facts in FACTS.values() for file in facts.files]
    sums = [facts.sha256 for facts in FACTS.values() if facts.sha256]
    assert len(files) == len(set(files))
    assert len(sums) == len(set(sums))


def test_the_same_requests_under_two_names():
    assert same_data("azure-code-2023", "vidur-splitwise-code")
    assert same_data("mooncake-arxiv", "mooncake-toolagent")
    assert not same_data("azure-code-2023", "azure-conv-2023")


def test_burstgpt_day_counts_add_up():
    """The 61 published daily counts sum to the row count; the stand-in leaves the 25,443 failures out."""
    per_day = FACTS["burstgpt-1"].stand_in.arrivals.per_day
    assert len(per_day) == 61
    assert sum(per_day) == pytest.approx(1_429_737 - 25_443, rel=1e-5)


def test_official_sizes():
    """Sizes and rows of the assets as the notes on data lists them (section 3)."""
    listed = {
        "azure-code-2024": (691_989_454, 16_803_695),
        "burstgpt-1": (52_283_111, 1_429_737),
        "burstgpt-2": (144_819_209, None),
        "burstgpt-3": (231_682_327, 5_344_021),
        "burstgpt-1-without-fails": (51_429_517, 1_404_294),
        "burstgpt-2-without-fails": (142_376_815, 3_784_213),
        "burstgpt-3-without-fails": (217_312_026, None),
        "qwen-coder": (132_054_902, 43_011),
        "qwen-thinking": (27_901_454, 10_812),
    }
    assert {name: (FACTS[name].bytes, FACTS[name].rows) for name in listed} == listed
