"""Prints how long simulate, capacity and plan take on the Azure conversation hour; run with `pytest -s`."""

import time

import workbench as wb

HOSTS = {"hosts": 2, "accelerators": 8, "accelerator": "h100-80gb-sxm", "nic_bytes_per_s": 50e9}


def test_conversation_hour_on_two_hosts_of_eight(shared_data, capsys):
    """19,366 requests, 16 instances of an 8B model; a first run compiles and fits, the second is timed."""
    trace, promise = wb.trace("azure-conv-2023"), wb.slo(ttft_s=1.0, tbt_s=0.1)
    given = {"cluster": wb.cluster(**HOSTS), "models": "llama-3-8b", "slo": promise}
    calls = {
        "simulate, with its sentence": lambda: wb.simulate("fixed", trace=trace, **given).sentence,
        "capacity": lambda: wb.capacity("fixed", trace=trace, **given),
        "plan": lambda: wb.plan(trace, **given),
    }
    taken = {}
    for name, call in calls.items():
        call()
        begun = time.perf_counter()
        call()
        taken[name] = time.perf_counter() - begun
    with capsys.disabled():
        print("\n" + "\n".join(f"{name}: {seconds:.2f} s" for name, seconds in taken.items()))
    assert taken["plan"] <= 60
