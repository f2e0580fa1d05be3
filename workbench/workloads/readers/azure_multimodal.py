"""Azure multimodal inference trace 2025: the columns of 2023 and the number of images, gzip-compressed.

How many tokens an image makes depends on the model, so images are not turned into tokens; rows that have some are
counted. Source: Azure/AzurePublicDataset, AzureLMMInferenceDataset2025.md.
"""

import polars as pl

from workbench.workloads.cells import whole
from workbench.workloads.files.head import ROW
from workbench.workloads.files.rows import Rows
from workbench.workloads.ledger import Ledger
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.azure_2023 import COLUMNS, MAPPING
from workbench.workloads.readers.mapping import Format

_IMAGES = "NumImages"


def _count_images(frame: pl.LazyFrame, rows: Rows, options: ReadOptions, ledger: Ledger) -> pl.LazyFrame:
    dtype = frame.collect_schema()[_IMAGES]
    with_images = frame.filter(whole(_IMAGES, dtype) > 0).select(pl.len(), pl.col(ROW).min())
    count, first = rows.collect(with_images).row(0)
    ledger.note("requests with images", count, "kept; their images add no tokens", example_row=first)
    return frame


AZURE_MULTIMODAL = Format(
    name="azure-multimodal",
    matches=lambda head: head.has(*COLUMNS, _IMAGES),
    mapping=MAPPING.model_copy(update={"extra": (_IMAGES,)}),
    prepare=_count_images,
)
