"""The public face: lazily imported, complete, and never shadowed by a module of the same name."""

import json
import pkgutil
import subprocess
import sys

import polars as pl
import pytest

import workbench as wb
from workbench.errors import UnknownName


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_nothing_heavy():
    heavy = ("torch", "numba", "plotly", "ipywidgets", "scipy", "polars")
    code = f"import sys, workbench; print([name for name in {heavy} if name in sys.modules])"
    assert run_python(code).strip() == "[]"


def test_one_paper_is_asked_for_and_no_other_is_loaded():
    code = """
import sys, workbench
before = workbench.experiment('theory/schedule').id
print([name for name in ('scipy.optimize', 'workbench.operating', 'workbench.catalogue.chains') if name in sys.modules])
from workbench.catalogue.spec import all_specs
print(before, ' '.join(dict.fromkeys(id.split('/')[0] for id in all_specs())))
"""
    first, second = run_python(code).splitlines()
    assert first == "[]"
    assert second == "theory/schedule lambdascale blitzscale aegaeon chains blendserve serving theory showdown"


def test_all_modules_then_all_names():
    """No module of the package takes the place of a public function."""
    code = """
import importlib, json, pkgutil, workbench
for module in pkgutil.walk_packages(workbench.__path__, 'workbench.'):
    if module.name != 'workbench.__main__':
        importlib.import_module(module.name)
print(json.dumps({name: callable(getattr(workbench, name)) for name in workbench.__all__}))
"""
    found = json.loads(run_python(code))
    assert set(found) == set(wb.__all__)
    assert all(found.values()), found
    top = {module.name for module in pkgutil.iter_modules(wb.__path__)}
    assert not top & set(wb.__all__)


def test_every_name_of_the_face_has_a_docstring():
    for name in wb.__all__:
        assert (getattr(wb, name).__doc__ or "").strip(), name


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="has no attribute 'simulat'"):
        wb.simulat  # noqa: B018


@pytest.mark.parametrize("table", ["experiments", "models", "clusters", "accelerators", "traces"])
def test_tables_are_polars_frames_with_rows(table):
    assert isinstance(getattr(wb, table)(), pl.DataFrame)
    assert len(getattr(wb, table)()) > 5


@pytest.mark.parametrize(
    ("function", "name", "near"),
    [
        ("experiment", "lambdascale/fig77", "lambdascale/fig7"),
        ("accelerator", "h100-80gb-smx", "h100-80gb-sxm"),
        ("model", "lama-2-7b", "llama-2-7b"),
        ("cluster", "blitzscale", "blitzscale-a"),
        ("trace", "azure-code", "azure-code-2023"),
        ("browse", "lamdascale", "lambdascale"),
    ],
)
def test_an_unknown_name_lists_near_ones(function, name, near):
    with pytest.raises(UnknownName) as caught:
        getattr(wb, function)(name)
    assert near in caught.value.near


def test_a_result_round_trips_and_draws_the_same(tmp_path):
    result = wb.experiment("lambdascale/fig5").run()
    loaded = wb.load(result.save(tmp_path / "fig5"))
    assert loaded.figure().to_json() == result.figure().to_json()
    assert loaded.verdicts().equals(result.verdicts())
    assert loaded.sources().equals(result.sources())
    assert loaded.agreement().equals(result.agreement())
    assert repr(loaded) == repr(result)


def test_results_show_themselves_in_a_notebook():
    shown = wb.experiment("lambdascale/fig5").run("analytic")._repr_html_()
    assert "Verdicts: 1 reproduced, 3 computed" in shown
    assert "<script" not in shown


def test_an_experiment_describes_itself():
    entry = wb.experiment("lambdascale/fig7")
    assert "fig7" in repr(entry)
    assert entry.seconds["analytic"] < 1
    assert entry.parameters.filter(pl.col("parameter") == "blocks")["default"][0] == "16"
    assert entry.published["kind"].is_in(["recorded in the artifact", "published", "computed"]).all()


@pytest.mark.parametrize("paper", [3, "lambda"])
def test_claims_of_what_is_no_paper_are_refused_by_name(paper):
    with pytest.raises(UnknownName, match="no paper named"):
        wb.claims(paper)
