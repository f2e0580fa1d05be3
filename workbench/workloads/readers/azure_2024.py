"""Azure LLM inference trace 2024: the columns of 2023, stamps with an offset, the fraction left out on whole seconds.

Source: Azure/AzurePublicDataset, AzureLLMInferenceDataset2024.md.
"""

from workbench.workloads.clocks import has_offset
from workbench.workloads.readers.azure_2023 import COLUMNS, MAPPING
from workbench.workloads.readers.mapping import Format
from workbench.workloads.readers.stamps import counting_stamps

AZURE_2024 = Format(
    name="azure-2024",
    matches=lambda head: head.has(*COLUMNS) and not head.has("NumImages") and has_offset(head.first.get("TIMESTAMP")),
    mapping=MAPPING,
    prepare=counting_stamps("TIMESTAMP"),
)
