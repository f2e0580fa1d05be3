"""A window of the Azure 2024 code trace with request ids, as bundled by riskywindow/FissionSpec.

Its `arrival_ms` repeats `source_timestamp` relative to the first row; the stamps are read, so the absolute start is
known.
"""

from workbench.workloads.readers.mapping import Format, Mapping

AZURE_WINDOW = Format(
    name="azure-2024-window",
    matches=lambda head: head.has("request_id", "arrival_ms", "prompt_tokens", "output_tokens", "source_timestamp"),
    mapping=Mapping(
        arrival="source_timestamp",
        unit="datetime",
        clock="utc",
        prompt="prompt_tokens",
        output="output_tokens",
        request_id="request_id",
    ),
)
