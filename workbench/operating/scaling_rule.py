"""How many instances a model gets: a rule by name, with the parameters that are not told by model and engine."""

from collections.abc import Mapping
from typing import Any

from pydantic import field_validator, model_validator

from workbench.errors import InputError, UnknownName
from workbench.records import LARGEST, Asked, AtLeastOne, Positive
from workbench.serving.policy import SCALERS
from workbench.serving.policy.scalers import PARAMETERS

WINDOWS = ("up_ticks", "down_ticks", "down_step")

RULES: dict[str, str] = {
    "none": "the number that there is at first",
    "queue": "one more for each `waiting` requests at the router, and none idle while nobody waits (λScale's artifact)",
    "backlog": "as many as prefill what waits within `lower_s` to `upper_s`, and hold the KV in use within "
    "`lower_share` to `upper_share` of `blocks` (BlitzScale's artifact)",
    "concurrency": "one for each `requests` that are there (Knative)",
    "rate": "one for each `requests_per_s` that arrive",
    "roles": "as backlog, for prompts and decoding apart, and as many to decode as take the KV that is to move "
    "(BlitzScale's artifact)",
}


class Rule(Asked):
    """An autoscaling rule; what it leaves out is worked out for each model, see `workbench.operating.growing`.

    A text such as `"queue:waiting=4,down_ticks=10"` stands for one too, and so does a mapping such as
    `{"policy": "queue", "waiting": 4}`.

    Attributes:
        policy: a name of `RULES`.
        parameters: its own, by name, see `workbench.serving.policy.scalers.PARAMETERS`.
        up_ticks, down_ticks: decisions in a row that must want more, or fewer, before anything is done.
        down_step: most instances drained at one decision.

    >>> str(rule_of("queue:waiting=4,down_ticks=10"))
    'queue:waiting=4,down_ticks=10'
    """

    policy: str = "none"
    parameters: Mapping[str, Positive] = {}
    up_ticks: AtLeastOne = 1
    down_ticks: AtLeastOne = 1
    down_step: AtLeastOne = LARGEST

    @model_validator(mode="before")
    @classmethod
    def _gathered(cls, given: Any) -> Any:
        fields = _fields_of(given) if isinstance(given, str) else given
        if not isinstance(fields, Mapping):
            return fields
        own = {name: value for name, value in fields.items() if name in cls.model_fields}
        rest = {name: value for name, value in fields.items() if name not in own}
        return {**own, "parameters": {**own.get("parameters", {}), **rest}} if rest else own

    @field_validator("policy")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in SCALERS:
            raise UnknownName("autoscaling rule", name, SCALERS)
        return name

    @model_validator(mode="after")
    def _takes_them(self):
        names = PARAMETERS[SCALERS[self.policy]]
        for name in self.parameters:
            if name not in names:
                raise UnknownName(f"parameter of rule {self.policy!r}", name, (*names, *WINDOWS))
        return self

    def __str__(self) -> str:
        usual = Rule()
        settings = {name: f"{value:g}" for name, value in self.parameters.items()}
        settings |= {name: str(getattr(self, name)) for name in WINDOWS if getattr(self, name) != getattr(usual, name)}
        text = ",".join(f"{name}={value}" for name, value in settings.items())
        return f"{self.policy}:{text}" if text else self.policy


def rule_of(given: Any) -> Rule:
    """A rule from its text, a mapping with the key `policy`, or a `Rule`.

    Raises:
        UnknownName, InputError: no such rule or parameter, or a value that cannot be.
    """
    if isinstance(given, Rule):
        return given
    fields = _fields_of(given) if isinstance(given, str) else given
    if not isinstance(fields, Mapping) or "policy" not in fields:
        raise InputError(
            f"is {given!r:.60}",
            'give a name of wb.policies(), a text such as "queue:waiting=4", or {"policy": "queue", "waiting": 4}',
            field="autoscaler",
        )
    return Rule(**fields)


def _fields_of(text: str) -> dict[str, Any]:
    """policy -> name and parameter -> number, from a text."""
    policy, _, settings = (part.strip() for part in text.partition(":"))
    fields: dict[str, Any] = {"policy": policy, "parameters": {}}
    for setting in filter(None, (part.strip() for part in settings.split(","))):
        name, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or not value:
            raise InputError(f"has {setting!r}", "write name=number, as in queue:waiting=4", field="autoscaler")
        if name in WINDOWS:
            fields[name] = value
        else:
            fields["parameters"][name] = value
    return fields
