"""Drive a private JupyterLab in Debian's Chromium: start it, open a notebook, run it, read its figures."""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

CHROMIUM = os.environ.get("UI_CHROMIUM", "/usr/bin/chromium")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TOKEN = "ui-test-token"

READY = """async () => {
  const app = window.jupyterapp;
  if (!app) return false;
  await app.restored;
  const panel = app.shell.currentWidget;
  if (!panel || !panel.context || !panel.content || !panel.content.model) return false;
  await panel.context.ready;
  await panel.sessionContext.ready;
  const kernel = panel.sessionContext.session && panel.sessionContext.session.kernel;
  if (!kernel) return false;
  await kernel.info;
  return kernel.connectionStatus === 'connected' && kernel.status === 'idle';
}"""

RUN_ALL = """() => {
  window.__ran = false;
  window.jupyterapp.commands.execute('notebook:run-all-cells').then(() => { window.__ran = true; });
  return null;
}"""

OUTPUTS = """() => {
  const found = [];
  for (const cell of window.jupyterapp.shell.currentWidget.content.model.cells) {
    if (cell.type !== 'code') continue;
    for (let i = 0; i < cell.outputs.length; i++) {
      const o = cell.outputs.get(i).toJSON();
      found.push({type: o.output_type, ename: o.ename || null, evalue: o.evalue || null});
    }
  }
  return found;
}"""

FIGURE = """index => {
  const gd = document.querySelectorAll('.js-plotly-plot')[index];
  const text = t => (t && t.text) || null;
  return {
    title: text(gd.layout.title),
    traces: gd.data.map(t => ({type: t.type, name: t.name || null,
      x: Array.from(t.x || []), y: Array.from(t.y || [])})),
    box: gd.getBoundingClientRect().width, drawn: gd.querySelector('.main-svg').getBoundingClientRect().width,
    drawing: gd.querySelector('.plot-container').innerHTML.length + ':' +
      Array.from(gd.querySelectorAll('path.js-line, .point path, .bars path'))
        .map(p => p.getAttribute('d')).join('|').slice(0, 4000),
  };
}"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def lab(root, start_timeout_s=60):
    """Yield the base URL of a JupyterLab with settings of its own, and stop its whole process group."""
    with tempfile.TemporaryDirectory(prefix="ui-lab-", ignore_cleanup_errors=True) as name:
        home = pathlib.Path(name)
        quiet = home / "settings" / "@jupyterlab" / "apputils-extension"
        quiet.mkdir(parents=True)
        (quiet / "notification.jupyterlab-settings").write_text(
            json.dumps({"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True})
        )
        with open(home / "lab.log", "w") as log:
            port = free_port()
            process = subprocess.Popen(
                _command(root, port), env=_environment(home), stdout=log, stderr=log, start_new_session=True
            )
            try:
                yield _answering(f"http://127.0.0.1:{port}", process, home / "lab.log", start_timeout_s)
            finally:
                _end(process)


def _command(root, port):
    return [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
    ]


def _environment(home):
    return dict(
        os.environ,
        JUPYTER_CONFIG_DIR=str(home / "config"),
        JUPYTER_DATA_DIR=str(home / "data"),
        JUPYTER_RUNTIME_DIR=str(home / "runtime"),
        IPYTHONDIR=str(home / "ipython"),
        JUPYTER_PREFER_ENV_PATH="1",
        JUPYTERLAB_SETTINGS_DIR=str(home / "settings"),
        JUPYTERLAB_WORKSPACES_DIR=str(home / "workspaces"),
    )


def _answering(base, process, log, timeout_s):
    """The same address, once the server answers there."""
    deadline = time.monotonic() + timeout_s
    while True:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"JupyterLab did not start:\n{log.read_text()}")
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{base}/api/status?token={TOKEN}", timeout=2).read()
            return base
        time.sleep(0.2)


def _end(process):
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def open_notebook(page, base, name, timeout_ms=120_000):
    page.goto(f"{base}/lab/tree/{name}?token={TOKEN}&reset")
    page.wait_for_selector(".jp-NotebookPanel .jp-Cell", timeout=timeout_ms)
    page.wait_for_function(READY, timeout=timeout_ms)


def run_all(page, timeout_ms=120_000):
    """Run every cell and return the error outputs (empty when the notebook is sound)."""
    page.evaluate(RUN_ALL)
    page.wait_for_function("() => window.__ran === true", timeout=timeout_ms)
    return [o for o in page.evaluate(OUTPUTS) if o["type"] == "error"]


def figure(page, index=0, timeout_ms=120_000):
    page.wait_for_function(
        "i => document.querySelectorAll('.js-plotly-plot .main-svg').length > i", arg=index, timeout=timeout_ms
    )
    return page.evaluate(FIGURE, index)


def wait_redrawn(page, before, index=0, timeout_ms=60_000):
    """Return the figure once what is drawn differs from `before`; time out (and fail) if nothing changes."""
    deadline = time.monotonic() + timeout_ms / 1000
    while time.monotonic() < deadline:
        now = figure(page, index)
        if now["drawing"] != before["drawing"]:
            return now
        page.wait_for_timeout(50)
    raise AssertionError(f"figure {index} did not change within {timeout_ms} ms; title {before['title']!r}")


def slider(page, description):
    """The handle of the slider below the visible label `description`."""
    box = page.locator(".workbench-control").filter(has=page.locator(".workbench-label", has_text=description)).first
    return box.locator(".noUi-handle").first


def press(handle, key, times=1):
    handle.focus()
    for _ in range(times):
        handle.press(key)


def drag(page, handle, fraction):
    """Drag a horizontal slider's handle to `fraction` (0..1) of its track."""
    handle.scroll_into_view_if_needed()
    knob = handle.bounding_box()
    track = handle.locator("xpath=ancestor::*[contains(@class,'noUi-target')]").first.bounding_box()
    page.mouse.move(knob["x"] + knob["width"] / 2, knob["y"] + knob["height"] / 2)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] * fraction, track["y"] + track["height"] / 2, steps=8)
    page.mouse.up()
