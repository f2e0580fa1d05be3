"""Every code block of README.md and CONTRIBUTING.md runs as it stands there."""

import ast
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from workbench.cli import _parser

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(?:^(?:    .*)?\n)+", re.MULTILINE)
LOCAL = """
[accelerator]
label = "this machine"
memory_bytes = 24e9
[accelerator.nominal]
flops_per_s = 1e11
memory_bytes_per_s = 1e10
host_bytes_per_s = 1e10
[cluster]
label = "this machine"
[[cluster.groups]]
hosts = 1
accelerators = 1
accelerator = "local"
nics = 1
nic = { achievable_bytes_per_s = 1e9, latency_s = 1e-5 }
"""


def blocks(name):
    """The indented blocks of a document, each as (text, whether it is Python)."""
    found = [textwrap.dedent(text).strip() for text in BLOCK.findall((ROOT / name).read_text())]
    return [(text, is_python(text)) for text in found if text]


def is_python(text):
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def python_of(name, marks):
    """All Python blocks of a document as one program, a line of marks before what each says."""
    parts = [text for text, python in blocks(name) if python]
    return parts, "\n".join(f"print({marks!r})\n{text}" for text in parts)


def executed(name, folder, marks="~~~"):
    """What each Python block of a document prints, in an empty folder and a home of its own."""
    parts, program = python_of(name, marks)
    environment = os.environ | {"WORKBENCH_HOME": str(folder / "home"), "WORKBENCH_CACHE": str(folder / "cache")}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    said = done.stdout.split(f"{marks}\n")[1:]
    assert len(said) == len(parts)
    return [text.strip().splitlines() for text in said]


def test_there_is_something_to_run():
    assert sum(python for _, python in blocks("README.md")) == 3
    assert sum(python for _, python in blocks("CONTRIBUTING.md")) == 4


def test_a_contributor_brings_a_policy_a_gpu_a_model_and_a_trace(tmp_path):
    policy, gpu, model, trace = executed("CONTRIBUTING.md", tmp_path)
    assert policy[0].startswith(
        "from fixed@half to fixed@half, dispatch by fewest_tokens the same requests change ttft_s by -"
    )
    assert "on 2 x 4 my-gpu " in gpu[0]
    assert " by 4 instances of TP 1;" in gpu[0]  # half of eight
    parameters, weight_bytes = map(int, model[0].split())
    assert parameters == 1_235_814_400  # Llama-3.2-1B, as its checkpoint says
    assert weight_bytes == 2 * parameters
    assert trace[-1].endswith("1.0")
    for text in (text for text, python in blocks("CONTRIBUTING.md") if python):
        assert len([line for line in text.splitlines() if line]) <= 10


def test_the_readme_runs(tmp_path):
    (tmp_path / "home" / "profiles").mkdir(parents=True)
    (tmp_path / "home" / "profiles" / "local.toml").write_text(LOCAL)
    (tmp_path / "mine.csv").write_text("series,x,value\nbinomial_pipeline,8,1.0\n")
    _, usual, grown = executed("README.md", tmp_path)
    share, sentence = usual[0].split(" ", 1)
    assert 0 < float(share) <= 1
    assert sentence.startswith("from fixed to fixed@half the same requests change ttft_s by +")
    assert "fixed@half bears " in usual[1]
    assert "fixed for default takes " in usual[2]
    assert any("keep_s" in line for line in grown)


def test_the_picture_of_the_readme_is_there():
    places = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert len(places) == 1
    assert (ROOT / places[0]).read_text().startswith("<svg")


def commands():
    """Every line of a block that is not Python: what a reader types into a shell."""
    for name in ("README.md", "CONTRIBUTING.md"):
        for text, python in blocks(name):
            for line in () if python else text.splitlines():
                yield from (part.strip() for part in line.split("#")[0].split("&&"))


@pytest.mark.parametrize("command", sorted({command for command in commands() if command}))
def test_commands_are_those_there_are(command):
    """What they do takes minutes and is tested elsewhere; here they are only looked up."""
    program, *rest = command.split()
    if program == "make":
        done = subprocess.run(["make", "-n", *rest], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    elif program == "workbench":
        assert _parser().parse_args(rest).run
    elif program == "pip":
        assert (ROOT / rest[rest.index("-c") + 1]).is_file()
    elif program == "python":
        script = (ROOT / rest[0]).read_text()
        assert f".venv/bin/{command}" in ast.get_docstring(ast.parse(script)).splitlines()
    else:
        assert command in ("python3 -m venv .venv", ". .venv/bin/activate")
