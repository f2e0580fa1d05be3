"""The `workbench` command."""

import argparse
import os
import sys
from collections.abc import Sequence

from workbench.cli.stopping import heard, was_stopped
from workbench.errors import WorkbenchError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; exit code 0 is success, 2 what the user can mend, 1 what failed while running."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not hasattr(options, "run"):
        parser.print_help()
        return 0
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that has no α shows another sign
            stream.reconfigure(errors="replace")
    with heard():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        options.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except WorkbenchError as error:
        print(f"workbench: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("workbench: stopped.", file=sys.stderr)
        return 1
    except Exception as error:
        if was_stopped(error):
            print("workbench: stopped.", file=sys.stderr)
            return 1
        if os.environ.get("WORKBENCH_DEBUG"):
            raise
        text = " ".join(str(error).split()) or "no message"
        print(
            f"workbench: {type(error).__name__}: {text}; set WORKBENCH_DEBUG=1 to see where it happened.",
            file=sys.stderr,
        )
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    from workbench import __version__
    from workbench.cli import data, experiments, machine, operating, sweeping, teaching

    parser = argparse.ArgumentParser(
        prog="workbench", description="How large language models scale out fast and share GPUs well: experiments."
    )
    parser.add_argument("--version", action="version", version=f"workbench {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for module in (experiments, sweeping, operating, data, machine, teaching):
        module.add(commands)
    return parser
