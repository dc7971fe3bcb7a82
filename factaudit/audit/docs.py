"""docs/audits.md, made from what the audits declare: ``python -m factaudit.audit.docs docs/audits.md``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from factaudit.audit import own
from factaudit.audit.core.declare import SHARED, Audit, Column
from factaudit.files import write_text

_HEAD = """\
# The audits, key by key

<!-- Made by `python -m factaudit.audit.docs docs/audits.md` from factaudit/audit/*.py: change it there. -->

Every audit gives flat rows, in `results.json` under `audits` and in `tables/NAME.csv`. Rates are fractions in [0, 1]
(the report shows percent), an undefined figure is null and `reason` says why, and nothing leaves a denominator unseen.

Keys that many audits share:

| key | |
|---|---|
{shared}

In the tables below, *bounds* and *interval* say which figures have the last two pairs of keys.
"""

_BOUNDS = (
    "the least and the greatest value that KEY could have, whatever the missing predictions had been; equal to it "
)
_BOUNDS += "where none is missing. A guessed prediction counts as missing"
_INTERVAL = (
    "the interval (95 % by default) over clusters: documents, else responses, else claims. Shares have Wilson's, with "
    "t, on the effective number of claims; sums of shares MOVER; paired differences one from discordant claims; AUC "
    "and average precision one from each claim's influence; slopes a jackknife; corrected rates, and the orders that τ "
    "is made of, a bootstrap. Their coverage is simulated in tests/validity"
)
_ENDS = {f"KEY_{end}": Column("", what=_BOUNDS) for end in ("min", "max")}
_ENDS |= {f"KEY_{end}": Column("", what=_INTERVAL) for end in ("low", "high")}

_FINDINGS = """\
## Findings

`findings` in `results.json`: `{id, severity, evaluator, dataset, statement, evidence}`. `fail`: the interval leaves no
doubt; `warn`: the figure says so, its interval leaves doubt (or there is none); `ok`: looked at, and nothing found.
Floors (`always-yes`, `always-no`, `random`) have none.

| id | says |
|---|---|
"""


def page(audits: Iterable[Audit]) -> str:
    """The whole page, in the order of the audits."""
    audits = list(audits)
    parts = [_HEAD.format(shared="\n".join(_lines(SHARED | _ENDS)))]
    parts += [_section(audit) for audit in audits]
    checks = [check for audit in audits for check in audit.checks]
    parts.append(_FINDINGS + "\n".join(f"| `{check.id}` | {check.says} |" for check in checks) + "\n")
    return "\n".join(parts)


def _section(audit: Audit) -> str:
    source = f" ({audit.source})" if audit.source else ""
    text = [f"## `{audit.name}`\n", f"{audit.question}{source}\n"]
    if audit.options:
        defaults = {key: field.default for key, field in audit.options_model().model_fields.items()}
        text.append("| option | |\n|---|---|")
        text += [f"| `{key}` | {_escape(words)}{_default(defaults[key])} |" for key, words in audit.options.items()]
        text.append("")
    text.append("| key | |\n|---|---|")
    known = [key for key, column in audit.columns.items() if SHARED.get(key) is column]
    own = {key: column for key, column in audit.columns.items() if key not in known}
    if known:
        text.append(f"| {_names(known)} | as above |")
    text += _lines(own)
    return "\n".join(text) + "\n"


def _lines(columns: Mapping[str, Column]) -> list[str]:
    """A line for each column, one for neighbours with the same words."""
    lines: list[tuple[list[str], str]] = []
    for key, column in columns.items():
        beside = ", ".join(["bounds"] * column.bounds + ["interval"] * column.interval)
        words = _escape(column.what) + (f"; {beside}" if beside else "")
        if lines and lines[-1][1] == words:
            lines[-1][0].append(key)
        else:
            lines.append(([key], words))
    return [f"| {_names(keys)} | {words} |" for keys, words in lines]


def _names(keys: Iterable[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def _escape(text: str) -> str:
    return text.replace("|", "\\|")


def _default(value: object) -> str:
    if value is None:
        return ""
    values = value if isinstance(value, tuple | list) else [value]
    return f"; default {', '.join(f'`{each}`' for each in values)}"


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), page(audit for audit in own() if audit.compute is not None))
