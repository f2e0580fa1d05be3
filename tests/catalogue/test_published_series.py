"""Names of published series in verdicts: one that no row of the facts bears judges nothing, unnoticed."""

import pytest

from workbench.catalogue import published, spec

IDS = [id for id in spec.all_specs() if len(published.published(id))]


@pytest.mark.parametrize("id", IDS)
def test_verdicts_name_series_that_exist(id):
    points = published.published(id)
    for match in spec.find(id).matches:
        assert set(match.series) <= set(points["series"])
        assert match.fitted == spec.ALL or set(match.fitted) <= set(points["x"])
        assert set(match.incomparable) <= set(points["x"])
