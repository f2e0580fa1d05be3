"""Students' notebooks, written as JupyterLab writes them."""

import json

import pytest


def notebook(*cells, outputs=()):
    """A notebook of code cells; `outputs` are the data of the last cell's."""
    made = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "source": cell,
            "outputs": [],
        }
        for number, cell in enumerate(cells)
    ]
    made[-1]["outputs"] = [{"output_type": "execute_result", "data": data, "metadata": {}} for data in outputs]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made})


@pytest.fixture
def hand_in(tmp_path):
    """Write a notebook into the folder that is graded."""
    folder = tmp_path / "handed in"
    folder.mkdir()

    def write(name, *cells, outputs=(), text=None):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if text is not None else notebook(*cells, outputs=outputs))
        return path

    write.folder = folder
    return write
