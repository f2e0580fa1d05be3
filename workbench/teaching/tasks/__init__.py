"""Every exercise by id, in the order of the notebooks."""

from workbench.teaching.task import Task
from workbench.teaching.tasks import aegaeon, blendserve, blitzscale, chains, lambdascale, showdown

TASKS: dict[str, Task] = {
    task.id: task
    for paper in (blitzscale, aegaeon, lambdascale, chains, blendserve, showdown)
    for task in paper.EXERCISES
}
"""Exercises by id."""
