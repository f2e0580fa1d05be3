"""Every command and option says what it is for."""

import argparse

from workbench.cli import _parser


def actions(parser, name="workbench"):
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for choice in action._choices_actions:
                yield f"{name} {choice.dest}", choice
            for command, below in action.choices.items():
                yield from actions(below, f"{name} {command}")
        else:
            yield f"{name} {' '.join(action.option_strings) or action.dest}", action


def test_every_option_has_a_help_text():
    found = dict(actions(_parser()))
    assert "workbench run --seed" in found
    assert "workbench data fetch" in found
    assert [name for name, action in found.items() if not action.help] == []


def test_defaults_that_are_paths_are_shown():
    parser = _parser()
    (commands,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    for command in ("run", "reproduce"):
        assert "figures/out" in commands.choices[command].format_help()
