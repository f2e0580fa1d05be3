"""The public trace formats, recognised by what a file holds and never by its name."""

from workbench.errors import UnknownName, UserError
from workbench.workloads.files.head import Head
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.azure_2023 import AZURE_2023
from workbench.workloads.readers.azure_2024 import AZURE_2024
from workbench.workloads.readers.azure_multimodal import AZURE_MULTIMODAL
from workbench.workloads.readers.azure_window import AZURE_WINDOW
from workbench.workloads.readers.blitzscale import BLITZSCALE
from workbench.workloads.readers.burstgpt import BURSTGPT
from workbench.workloads.readers.generic import GENERIC
from workbench.workloads.readers.llmservingsim import LLMSERVINGSIM, LLMSERVINGSIM_RUN
from workbench.workloads.readers.mapping import Format
from workbench.workloads.readers.mooncake import MOONCAKE
from workbench.workloads.readers.qwen import QWEN
from workbench.workloads.readers.sharegpt import SHAREGPT
from workbench.workloads.readers.splitwise_sim import SPLITWISE_SIM
from workbench.workloads.readers.vidur import VIDUR

FORMATS: tuple[Format, ...] = (
    AZURE_MULTIMODAL,
    AZURE_2024,
    AZURE_2023,
    AZURE_WINDOW,
    BURSTGPT,
    QWEN,
    MOONCAKE,
    VIDUR,
    SPLITWISE_SIM,
    BLITZSCALE,
    LLMSERVINGSIM_RUN,
    LLMSERVINGSIM,
    SHAREGPT,
    GENERIC,
)
"""In the order they are tried: a format that asks for more columns comes before one that asks for fewer."""

_OWN = ("columns", "unit", "log_type", "block_tokens", "count_tokens")


def recognised(head: Head, options: ReadOptions) -> Format:
    """The format of a file: the one asked for, the generic one when columns are named, else the first that matches.

    Raises:
        UnknownName: for a format that there is not.
        UserError: for an option that the format does not understand.
    """
    if options.format is not None:
        chosen = next((entry for entry in FORMATS if entry.name == options.format), None)
        if chosen is None:
            raise UnknownName("trace format", options.format, [entry.name for entry in FORMATS])
        if not chosen.matches(head):
            raise UserError(f"{head.label} does not have the columns of format {chosen.name}: {head.shown}.")
    elif options.columns or options.unit:
        chosen = GENERIC
    else:
        chosen = next(entry for entry in FORMATS if entry.matches(head))
    for name in _OWN:
        if getattr(options, name) is not None and name not in chosen.options:
            raise UserError(f"{head.label} is read as {chosen.name}, which has no option {name!r}; leave it out.")
    return chosen
