"""The input of BlitzScale's load client: whole milliseconds, prefill and decode tokens.

Source: blitz-serving/blitz-scale, scripts/figure/process_dataset_v2.py; the files themselves are not published.
"""

from workbench.workloads.readers.mapping import Format, Mapping

BLITZSCALE = Format(
    name="blitzscale-client",
    matches=lambda head: head.kind == "csv" and head.columns == ("timestamp", "prefill", "decode"),
    mapping=Mapping(arrival="timestamp", unit="ms", prompt="prefill", output="decode"),
)
