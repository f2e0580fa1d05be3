"""All statistics of one trace, and their table."""

import numpy as np
import polars as pl

from workbench.records import Record
from workbench.workloads.statistics.arrivals import ArrivalStatistics, arrival_statistics
from workbench.workloads.statistics.lengths import LengthStatistics, length_statistics, rank_correlation
from workbench.workloads.statistics.prefixes import PrefixStatistics, prefix_statistics


class TraceStatistics(Record):
    """What one trace looks like.

    Attributes:
        rows: requests.
        prompt, output: lengths of the two sides in tokens.
        length_rank_correlation: Spearman's correlation between them.
        arrivals: the arrival process, None where there are no times.
        prefixes: prefix reuse, None where there are no hashes.
    """

    rows: int
    prompt: LengthStatistics
    output: LengthStatistics
    length_rank_correlation: float
    arrivals: ArrivalStatistics | None
    prefixes: PrefixStatistics | None

    def table(self) -> pl.DataFrame:
        """One row a number: group, quantity, value."""
        rows: list[tuple[str, str, float]] = [("trace", "rows", float(self.rows))]
        for group, record in (("prompt_tokens", self.prompt), ("output_tokens", self.output)):
            rows += [(group, name, float(value)) for name, value in record.model_dump().items()]
        rows.append(("lengths", "rank_correlation", self.length_rank_correlation))
        if self.arrivals is not None:
            flat = self.arrivals.model_dump(exclude={"windows"})
            rows += [("arrivals", name, float(value)) for name, value in flat.items()]
            for window in self.arrivals.windows:
                values = window.model_dump(exclude={"window_s"})
                rows += [(f"arrivals in {window.window_s:g} s", name, float(value)) for name, value in values.items()]
        if self.prefixes is not None:
            rows += [("prefixes", name, float(value)) for name, value in self.prefixes.model_dump().items()]
        return pl.DataFrame(rows, schema={"group": pl.String, "quantity": pl.String, "value": pl.Float64}, orient="row")


def trace_statistics(requests: pl.DataFrame) -> TraceStatistics:
    """Statistics of a request table."""
    prompt, output = requests["prompt_tokens"].to_numpy(), requests["output_tokens"].to_numpy()
    return TraceStatistics(
        rows=requests.height,
        prompt=length_statistics(prompt),
        output=length_statistics(output),
        length_rank_correlation=rank_correlation(np.asarray(prompt), np.asarray(output)),
        arrivals=arrival_statistics(requests["arrival_s"].to_numpy()),
        prefixes=prefix_statistics(requests["prefix_hashes"]) if "prefix_hashes" in requests.columns else None,
    )
