"""Files are written whole or not at all, and folders are where the environment says."""

import os

import pytest

from workbench import paths
from workbench.errors import UserError


def test_write_atomic_replaces_and_leaves_nothing_beside(tmp_path):
    target = paths.write_atomic(tmp_path / "deep" / "a.txt", "one")
    paths.write_atomic(target, b"two")
    assert target.read_text() == "two"
    assert [path.name for path in target.parent.iterdir()] == ["a.txt"]


def test_what_is_no_file_stays_what_it_is(tmp_path):
    """A rename puts a file in the place of a device as well, where the user may do that."""
    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    for place in (folder, pipe):
        with pytest.raises(UserError, match=f"{place.name} is no file that can be replaced; name another"):
            paths.write_atomic(place, "text")
    assert folder.is_dir()
    assert pipe.is_fifo()
    assert len(list(tmp_path.iterdir())) == 2


def test_a_failing_writer_keeps_the_old_file(tmp_path):
    target = paths.write_atomic(tmp_path / "a.txt", "old")

    def fails(path):
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        paths.write_atomic(target, fails)
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_files_get_the_usual_permissions(tmp_path, monkeypatch, mask, mode):
    """Without touching the umask, which belongs to all threads of the process."""
    before = os.umask(mask)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", lambda _: pytest.fail("the umask was changed"))
            written = paths.write_atomic(tmp_path / "a", "x")
            filled = paths.write_atomic(tmp_path / "b", lambda path: path.write_text("x"))
        assert [path.stat().st_mode & 0o777 for path in (written, filled)] == [mode, mode]
    finally:
        os.umask(before)


@pytest.mark.parametrize("folder", ["/dev/null", "/dev/null/below", "/proc/nothing-can-be-made-here"])
def test_a_folder_that_cannot_be_written_gets_one_sentence(folder):
    import workbench as wb

    result = wb.experiment("lambdascale/fig5").run("analytic")
    sentence = rf"{folder} cannot be written to \([^)]+\); choose another folder\.$"
    with pytest.raises(UserError, match=sentence):
        paths.write_atomic(f"{folder}/a.txt", "text")
    with pytest.raises(UserError, match=sentence):
        result.save(f"{folder}/run")
    with pytest.raises(UserError, match=sentence):
        wb.sweep("lambdascale/fig5", grid={"nodes": [4]}, folder=folder)


def test_folders_follow_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path / "data"))
    assert paths.user_data_folder() == tmp_path / "home"
    assert paths.cache_folder() == tmp_path / "cache"
    assert paths.trace_folders()[0] == tmp_path / "data" / "traces"
    assert paths.measured_folder() is None
    (tmp_path / "data" / "measured").mkdir(parents=True)
    assert paths.measured_folder() == tmp_path / "data" / "measured"


def test_facts_and_notebooks_are_found():
    assert (paths.facts_folder() / "claims.csv").is_file()
    assert (paths.notebooks_folder() / "00-start.ipynb").is_file()
