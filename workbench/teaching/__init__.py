"""Exercises that the workbench checks, and the grading of a folder of notebooks.

A question has numbers that follow from the student's name. No answer is stored anywhere: it is computed by the models
that the notebook is about, whenever a number or a function is checked.
"""

from workbench.teaching.exercise import Exercise, Mark, exercise

__all__ = ["Exercise", "Mark", "exercise"]
