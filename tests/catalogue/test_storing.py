"""A saved run comes back equal, and a broken one is refused."""

import json
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from workbench.catalogue import running, storing
from workbench.errors import InputError, UserError


@pytest.fixture
def outcome(toy, points):
    return running.run(toy, {}, points=points)


def test_round_trip(outcome, tmp_path):
    loaded = storing.load(storing.save(outcome, tmp_path / "kept"))
    for name, table in outcome.tables.items():
        assert_frame_equal(loaded.tables[name], table)
    assert_frame_equal(loaded.published, outcome.published)
    assert loaded.verdicts == outcome.verdicts
    assert loaded.agreement == outcome.agreement
    assert loaded.parameters == outcome.parameters
    assert loaded.sources == outcome.sources


def test_saving_again_replaces_and_leaves_nothing_beside(outcome, tmp_path):
    storing.save(outcome, tmp_path / "kept")
    storing.save(outcome, tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".csv"] == ["kept"]


def test_a_failing_save_keeps_the_old_result(outcome, tmp_path, monkeypatch):
    storing.save(outcome, tmp_path / "kept")
    monkeypatch.setattr(pl.DataFrame, "write_parquet", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        storing.save(outcome, tmp_path / "kept")
    assert storing.load(tmp_path / "kept").verdicts == outcome.verdicts
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".csv"] == ["kept"]


def test_a_rename_that_fails_puts_the_old_result_back(outcome, tmp_path, monkeypatch):
    storing.save(outcome, tmp_path / "kept")
    real = Path.rename

    def rename(path, target):
        if Path(target) == tmp_path / "kept" and not path.name.endswith(".old"):
            raise OSError("device busy")
        return real(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError, match="device busy"):
        storing.save(outcome, tmp_path / "kept")
    assert storing.load(tmp_path / "kept").verdicts == outcome.verdicts
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".csv"] == ["kept"]


def test_a_save_that_was_killed_between_its_renames_says_where_the_old_result_is(outcome, tmp_path):
    storing.save(outcome, tmp_path / "kept")
    (tmp_path / "kept").rename(tmp_path / ".kept.old")
    with pytest.raises(InputError, match=r"rename \.kept\.old to it"):
        storing.load(tmp_path / "kept")
    storing.save(outcome, tmp_path / "kept")  # saving again is possible, and nothing of the old one is in the way
    storing.save(outcome, tmp_path / "kept")
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".csv"] == ["kept"]


def test_a_profile_made_in_code_comes_back_as_its_name(tmp_path):
    import workbench as wb

    mine = wb.cluster(hosts=4, accelerators=1, accelerator="h100-80gb-sxm", nic_bytes_per_s=25e9, nics=1, name="mine")
    model = wb.model("llama-2-7b").model_copy(update={"name": "own-7b"})
    result = wb.experiment("lambdascale/block-count").run("analytic", cluster=mine, model=model)
    loaded = wb.load(result.save(tmp_path / "kept"))
    assert loaded.outcome.parameters["cluster"] == "mine"
    assert loaded.figure().layout.title.text == result.figure().layout.title.text
    assert result.figure().layout.title.text.startswith("own-7b to 8 nodes")
    kept = json.loads((tmp_path / "kept" / "result.json").read_text())["profiles"]["cluster"]
    assert kept["name"] == "mine"


@pytest.mark.parametrize("path", [3, None, b"kept"])
def test_what_is_no_path_is_refused(outcome, path):
    with pytest.raises(UserError, match="is not a path"):
        storing.save(outcome, path)
    with pytest.raises(UserError, match="is not a path"):
        storing.load(path)


def test_a_foreign_folder_is_not_overwritten(outcome, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("dear")
    with pytest.raises(UserError, match="is not a saved result"):
        storing.save(outcome, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "dear"


def test_broken_results_are_refused(outcome, tmp_path):
    with pytest.raises(InputError, match="no saved result here"):
        storing.load(tmp_path / "nowhere")
    path = storing.save(outcome, tmp_path / "kept")
    facts = json.loads((path / "result.json").read_text())
    for broken, words in (
        ("{", "a broken saved result"),
        (json.dumps({**facts, "format": "other/1"}), "not a saved result of this format"),
        (json.dumps({**facts, "tables": ["../../etc/passwd"]}), "not a plain name"),
        (json.dumps({**facts, "surprise": 1}), "a broken saved result"),
        (json.dumps({**facts, "tables": ["absent"]}), "a broken saved result"),
    ):
        (path / "result.json").write_text(broken)
        with pytest.raises(InputError, match=words):
            storing.load(path)
