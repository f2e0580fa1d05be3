"""The example of the README runs as it stands there."""

import re
import textwrap
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_example_of_the_readme_runs(capsys):
    section = README.read_text().split("## Serve a trace\n")[1].split("\n## ")[0]
    example = re.search(r"(?:^(?:    .*)?\n)+?(?=^\S)", section[section.index("    import") :], re.MULTILINE).group()
    exec(compile(textwrap.dedent(example), "README.md", "exec"), {})
    said = capsys.readouterr().out.splitlines()
    assert len(said) == 3
    share, sentence = said[0].split(" ", 1)
    assert 0 < float(share) <= 1
    assert sentence.startswith("from fixed to fixed@half the same requests change ttft_s by +")
    assert "fixed@half bears " in said[1]
    assert "fixed for default takes " in said[2]
