"""grade: the exercises of a folder of students' notebooks, as a table."""

import argparse
import sys
from pathlib import Path

from workbench.errors import WorkbenchError


def add(commands: argparse._SubParsersAction) -> None:
    """Enter the command into the parser."""
    grade = commands.add_parser("grade", help="the exercises of a folder of students' notebooks, as a CSV table")
    grade.add_argument("folder", metavar="FOLDER", help="that holds the notebooks, in folders below it too")
    grade.add_argument("--out", metavar="CSV", help="the table (default grades.csv in FOLDER)")
    grade.set_defaults(run=_grade)


def _grade(options: argparse.Namespace) -> None:
    from workbench.cli.places import require_place
    from workbench.cli.tables import progress
    from workbench.paths import write_atomic
    from workbench.records import given_path
    from workbench.teaching.grading import MARKS, grade_folder

    out = given_path(options.out or options.folder, "path")
    if not options.out or out.is_dir():
        out /= "grades.csv"
    if options.out or Path(options.folder).is_dir():  # else refused below, where it is said what to name
        require_place(out, "give another --out")
    with progress() as tell:
        graded = grade_folder(options.folder, tell)
    write_atomic(out, graded.table.write_csv())
    counts = dict(graded.table["mark"].value_counts().rows())
    said = ", ".join(f"{counts[mark]} {mark}" for mark in MARKS[:-1] if mark in counts) or "none"
    print(f"{graded.table['file'].n_unique()} notebooks, exercises: {said}.\nTable: {out}")
    for why in graded.broken.values():
        print(why, file=sys.stderr)
    if graded.broken:
        names = ", ".join(graded.broken)
        raise WorkbenchError(f"{len(graded.broken)} notebooks could not be graded: {names}; the table says why.")
