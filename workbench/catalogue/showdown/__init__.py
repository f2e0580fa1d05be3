"""Systems of several papers on one question: same requests, cluster, engine and seeds. One module an experiment."""

from importlib import import_module

for _name in ("burst", "savings", "pool", "two_bursts", "pool_multicast", "valleys", "pipelines_in_chains"):
    import_module(f"{__name__}.{_name}")
