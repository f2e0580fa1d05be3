"""An explorer and a figure need no nbformat, and whoever does need it gets all of it."""

import subprocess
import sys

CODE = """
import sys
import workbench as wb

wb.experiment("theory/schedule").explore()
figure = wb.experiment("theory/schedule").run("analytic").figure()
figure.show("plotly_mimetype")
print("loaded:", [name for name in ("nbformat", "jsonschema") if name in sys.modules])
import plotly.io
print("the same:", plotly.io._renderers.nbformat.v4.new_notebook()["nbformat"])
import nbformat
print("real:", plotly.io._renderers.nbformat.read is nbformat.read)
"""


def test_nbformat_is_imported_when_something_of_it_is_used():
    told = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True).stdout.splitlines()
    assert told[-3:] == ["loaded: []", "the same: 4", "real: True"]
