"""Rows of one group that start together, and the rows that they read from."""

from workbench.serving.model.scaled import PIPED
from workbench.serving.simulated.links import Flow
from workbench.serving.simulated.load import Load
from workbench.serving.simulated.row import Row


class Operation:
    """The loads that are still on their way, and the sources that are still alive (of a multicast only)."""

    def __init__(self, number: int, group: int, sources: list[Row]):
        self.number, self.group, self.sources = number, group, list(sources)
        self.loads: list[Load] = []
        self.broken: set[int] = set()  # numbers of pipelines that lost a member
        self.flows: list[Flow] = []  # by which its weights are on their way
        for row in sources:
            row.uses += 1

    def members(self, pipeline: int | None = None) -> list[Row]:
        """The rows that serve in pipelines, or in one of them, by index."""
        rows = [load.row for load in self.loads if pipeline is None or load.pipeline == pipeline]
        return sorted((row for row in rows if row.state == PIPED), key=lambda row: row.index)

    def release(self) -> list[Row]:
        """The sources are read no more; returns them."""
        rows, self.sources = self.sources, []
        for row in rows:
            row.uses -= 1
        return rows

    def lose_source(self, row: Row) -> bool:
        """A row fails; True if that leaves loads without any source."""
        if row not in self.sources:
            return False
        self.sources.remove(row)
        row.uses -= 1
        return bool(self.loads) and not self.sources
