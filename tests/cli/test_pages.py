"""Pages that work offline, each with the library it was drawn for."""

import re

from plotly.offline import get_plotlyjs_version

from workbench.catalogue import running, spec
from workbench.cli import pages
from workbench.explore import library


def test_after_an_upgrade_new_pages_use_the_new_library_and_old_ones_keep_theirs(tmp_path, monkeypatch):
    outcome = running.run(spec.find("lambdascale/fig5"), {}, backends="analytic")
    monkeypatch.setattr(library, "get_plotlyjs", lambda: "the old library")
    monkeypatch.setattr(library, "get_plotlyjs_version", lambda: "0.0.1")
    before = pages.write_page(outcome, "A title", "A question?", tmp_path).read_text()
    monkeypatch.undo()
    after = pages.write_page(outcome, "A title", "A question?", tmp_path).read_text()
    wanted = [re.search(r'<script src="([^"]+)">', page).group(1) for page in (before, after)]
    assert wanted == ["plotly-0.0.1.min.js", f"plotly-{get_plotlyjs_version()}.min.js"]
    assert (tmp_path / wanted[0]).read_text() == "the old library"
    assert f"plotly.js v{get_plotlyjs_version()}" in (tmp_path / wanted[1]).read_text()[:2000]
