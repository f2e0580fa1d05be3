"""Azure LLM inference trace 2023: stamps without an offset, seven fractional digits, CRLF, no last newline.

The publisher's description says the requests were collected on 11 November; the stamps say 16 November, and the stamps
are what is shown. Source: Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md and data/.
"""

from workbench.workloads.clocks import has_offset
from workbench.workloads.readers.mapping import Format, Mapping
from workbench.workloads.readers.stamps import counting_stamps

COLUMNS = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
MAPPING = Mapping(arrival="TIMESTAMP", unit="datetime", clock="utc", prompt="ContextTokens", output="GeneratedTokens")

AZURE_2023 = Format(
    name="azure-2023",
    matches=lambda head: (
        head.has(*COLUMNS) and not head.has("NumImages") and not has_offset(head.first.get("TIMESTAMP"))
    ),
    mapping=MAPPING,
    prepare=counting_stamps("TIMESTAMP"),
)
