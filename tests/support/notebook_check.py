"""Execute a notebook and find the errors that a green run can hide."""

import tempfile

import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from traitlets import default
from traitlets.config import Config

STATE = "application/vnd.jupyter.widget-state+json"


class LocalKernels(AsyncKernelManager):
    """Kernels that are spoken to through files, so that they do not warn of an open network port."""

    @default("transport")
    def _files(self) -> str:
        return "ipc"


def hidden_errors(nb) -> list[str]:
    """Errors that nbclient does not raise: in Output widgets, in threads, or shown by an explorer as an alert."""
    models = nb.metadata.get("widgets", {}).get(STATE, {}).get("state", {}).values()
    found = []
    for model in models:
        state = model["state"]
        found += [str(output) for output in state.get("outputs", []) if output.get("output_type") == "error"]
        if 'role="alert"' in str(state.get("value", "")):
            found.append(state["value"])
    for cell in nb.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stderr" and "Traceback" in output.text:
                found.append(output.text)
    return found


def check(path, timeout_s: float = 300) -> nbformat.NotebookNode:
    """Execute a notebook, raise for any error, hidden or not, and hand the executed notebook back.

    The files that its kernel is spoken to through lie in a folder of this run alone, gone when it ends.
    """
    nb = nbformat.read(path, as_version=4)
    if nb.metadata.get("widgets") or any(cell.get("outputs") for cell in nb.cells):
        raise AssertionError(f"{path}: stored outputs or widget state; run nbstripout")
    with tempfile.TemporaryDirectory(prefix="kernel-") as folder:
        config = Config({"LocalKernels": {"ip": f"{folder}/kernel"}})
        client = {"kernel_name": "python3", "kernel_manager_class": LocalKernels, "config": config}
        NotebookClient(nb, timeout=timeout_s, **client).execute()
    if errors := hidden_errors(nb):
        raise AssertionError(f"{path}: {errors[0]}")
    return nb
