"""The project's own files agree with each other, and keep the house rules that no linter knows."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "workbench"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MODULES = sorted(PACKAGE.rglob("*.py"))


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return {line.split("==")[0].lower().replace("_", "-"): line.split("==")[1] for line in lines if "==" in line}


def names(requirements: list[str]) -> set[str]:
    found = {re.split(r"[<>=!\[ ]", requirement)[0].lower() for requirement in requirements}
    return found - {PROJECT["project"]["name"]}


def test_every_requirement_is_pinned_to_an_exact_version_that_it_admits():
    from packaging.requirements import Requirement

    project = PROJECT["project"]
    every = [*project["dependencies"], *(item for extra in project["optional-dependencies"].values() for item in extra)]
    exact = pins()
    for text in every:
        requirement = Requirement(text)
        if requirement.name == project["name"]:
            continue
        assert requirement.name.lower() in exact, f"{requirement.name} is not in constraints.txt"
        assert exact[requirement.name.lower()] in requirement.specifier, text


def test_constraints_hold_exact_versions_only():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.]+", line), line


def test_the_conda_environment_installs_the_same_thing():
    text = (ROOT / "environment.yml").read_text()
    python = re.search(r"python=(3\.\d+)", text).group(1)
    assert PROJECT["project"]["requires-python"] == f">={python}"
    assert "- conda-forge" in text
    assert "- -c constraints.txt" in text
    extras = re.search(r"-e \.\[([a-z,]+)\]", text).group(1).split(",")
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])


def test_the_extras_are_those_the_readme_names():
    assert set(PROJECT["project"]["optional-dependencies"]) == {"lab", "torch", "cluster", "dev"}
    readme = (ROOT / "README.md").read_text()
    for command in ("make reproduce", "make test", "make lab", "pip install"):
        assert command in readme


def test_the_top_level_holds_what_the_design_says():
    folders = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert folders - {"dist", "build", "workbench-notebooks"} == {"notebooks", "workbench", "data", "figures", "tests"}


def test_no_module_outgrows_400_lines_and_the_median_is_small():
    sizes = sorted(len(path.read_text().splitlines()) for path in MODULES)
    assert sizes[-1] <= 400
    assert sizes[len(sizes) // 2] < 100


@pytest.mark.parametrize(
    ("word", "why"),
    [
        (r"get_context\(['\"]fork['\"]\)|set_start_method\(['\"]fork['\"]", "the fork start method kills or hangs"),
        (r"\bpickle\b|\bmarshal\b|\bshelve\b", "data never carries code"),
        (r"(?<![\w.])eval\(|(?<![\w.])exec\(", "data never carries code"),
        (r"np\.random\.(seed|rand|randint|normal|choice)\(|random\.seed\(", "randomness belongs to a run"),
        (
            r"(?m)\.read_text\(\)|\.write_text\((?!.*encoding=).*\)$",
            "without encoding= other systems read other letters",
        ),
        (r"yaml\.load\b|torch\.load\b", "data never carries code"),
        (r"fastmath=True|parallel=True", "NaN carries meaning, and widgets call kernels from threads"),
    ],
)
def test_nothing_forbidden_is_written(word, why):
    found = [f"{path.relative_to(ROOT)}" for path in MODULES if re.search(word, path.read_text())]
    assert found == [], why


def test_every_module_and_public_function_has_a_docstring():
    import ast

    bare = []
    for path in MODULES:
        tree = ast.parse(path.read_text())
        if not ast.get_docstring(tree) and tree.body:
            bare.append(str(path.relative_to(ROOT)))
        for node in tree.body:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and not ast.get_docstring(node):
                bare.append(f"{path.relative_to(ROOT)}: {node.name}")
    assert bare == []


def test_the_gallery_stays_small():
    kept = [path for path in (ROOT / "figures").rglob("*") if path.is_file() and "out" not in path.parts]
    pages = [path for path in kept if "explorers" in path.parts]
    assert sum(path.stat().st_size for path in pages) < 10e6
    assert sum(path.stat().st_size for path in kept if path not in pages) < 10e6


def test_the_report_links_a_page_with_sliders_for_each_paper():
    from workbench.catalogue import spec

    text = (ROOT / "figures" / "REPORT.md").read_text()
    linked = dict(re.findall(r"^- \[[^]]+\]\((explorers/[^)]+\.html)\) \(`([^`]+)`\)$", text, flags=re.MULTILINE))
    papers = {entry.paper for entry in spec.all_specs().values()} - {"theory", "serving"}
    assert {id.split("/")[0] for id in linked.values()} == papers
    assert len(linked) <= 7
    folder = ROOT / "figures" / "explorers"
    assert {ROOT / "figures" / page for page in linked} == set(folder.glob("*.html"))
    for page in linked:
        assert f"[The same with sliders, without Python]({page})" in text
        (library,) = re.findall(r'<script src="([^"]+)">', (ROOT / "figures" / page).read_text())
        assert [library] == [path.name for path in folder.glob("*.js")]
