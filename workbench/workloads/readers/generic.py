"""Any table with named columns: ours, somebody's log, or one whose names the user spells out."""

from workbench.errors import InputError
from workbench.workloads.clocks import name_and_unit, unit_of
from workbench.workloads.files.head import Head
from workbench.workloads.options import ReadOptions
from workbench.workloads.readers.mapping import Format, Mapping

SYNONYMS = {
    "arrival_s": (
        "arrival",
        "arrivaltime",
        "arrivedat",
        "arrivaltimestamp",
        "timestamp",
        "requesttime",
        "starttime",
        "submittime",
        "sendtime",
        "time",
        "datetime",
        "ts",
        "t",
    ),
    "prompt_tokens": (
        "prompttokens",
        "inputtokens",
        "contexttokens",
        "requesttokens",
        "numprompttokens",
        "numinputtokens",
        "prefilltokens",
        "promptlength",
        "inputlength",
        "promptlen",
        "inputlen",
        "promptsize",
        "inputtoks",
        "prefill",
        "prompt",
        "input",
        "isl",
    ),
    "output_tokens": (
        "outputtokens",
        "generatedtokens",
        "completiontokens",
        "responsetokens",
        "numoutputtokens",
        "decodetokens",
        "outputlength",
        "outputlen",
        "responselength",
        "completionlength",
        "tokensize",
        "outputtoks",
        "decode",
        "completion",
        "response",
        "output",
        "osl",
    ),
    "model": ("model", "modelname", "modelid"),
    "request_id": ("requestid", "id", "reqid"),
    "prefix_hashes": ("prefixhashes", "hashids"),
    "priority": ("priority",),
}
"""Names by which a column is recognised, letters and digits only, in the order they are tried."""

_REQUIRED = ("arrival_s", "prompt_tokens", "output_tokens")


def _found(head: Head, options: ReadOptions) -> dict[str, str]:
    given = options.columns or {}
    for target, column in given.items():
        if column not in head.columns:
            raise InputError(
                f"columns= asks for it as {target}", f"the file has {head.shown}", file=head.label, field=column
            )
    left = [name for name in head.columns if name not in given.values()]
    plain = {name_and_unit(name)[0]: name for name in reversed(left)}
    guessed = {
        target: next(plain[synonym] for synonym in synonyms if synonym in plain)
        for target, synonyms in SYNONYMS.items()
        if target not in given and any(synonym in plain for synonym in synonyms)
    }
    return given | guessed


def _mapping(head: Head, options: ReadOptions) -> Mapping:
    columns = _found(head, options)
    for target in _REQUIRED:
        if target not in columns:
            raise InputError(
                f"no column holds {target}; the columns are {head.shown}",
                f'name it with columns={{"{target}": ...}}',
                file=head.label,
                field=target,
            )
    arrival = columns["arrival_s"]
    unit = options.unit or unit_of(arrival, head.first.get(arrival))
    return Mapping(
        arrival=arrival,
        unit=unit,
        clock="utc" if unit == "datetime" else "relative",
        prompt=columns["prompt_tokens"],
        output=columns["output_tokens"],
        model=columns.get("model"),
        request_id=columns.get("request_id"),
        hashes=columns.get("prefix_hashes"),
        priority=columns.get("priority"),
        block_tokens=options.block_tokens,
    )


GENERIC = Format(
    name="generic",
    matches=lambda head: True,
    mapping=_mapping,
    options=("columns", "unit", "block_tokens"),
)
