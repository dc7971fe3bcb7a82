"""docs/audits.md, made from what the audits declare: ``make docs``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from factaudit.audit import load_builtin_audits
from factaudit.audit.core.audit_declaration import SHARED_COLUMNS, Audit, Column
from factaudit.audit.core.checks import Check
from factaudit.files import write_text

_PAGE_HEAD = """\
# The audits

<!-- Made by `make docs` from factaudit/audit/*.py: change it there. -->

An audit answers one question about evaluators. Begin with `rates`. Each section says how to read
the figures, what to do where they are bad, and what each key holds; [the glossary](../glossary.md)
explains words and papers.

Every audit gives flat rows, in `results.json` under `audits` and in `tables/NAME.csv`. Rates are
fractions in [0, 1] (the report shows percent), an undefined figure is null and `reason` says why,
and nothing leaves a denominator unseen. Where pairs of systems would fill more than 50,000 rows,
there are none: audit one data set, or fewer evaluators. *Bounds* and *interval* say which figures
have `KEY_min` and `KEY_max`, `KEY_low` and `KEY_high`, and how these are made; [keys that many
audits share](#keys-that-many-audits-share) stand at the end. The figures are of
`factaudit run demo`, of the invented texts of two
[experiments](../../experiments/README.md), quickstart and dfactscore_quickstart, and of simulated
judges (`judge-a`, `judge-b`) where no shipped data has what an audit asks for.
"""
_SHARED_KEYS_HEAD = """\
## Keys that many audits share

| key | |
|---|---|
"""

_BOUNDS_DESCRIPTION = (
    "the least and the greatest value that KEY could have, whatever the missing predictions had"
    " been; equal to it "
)
_BOUNDS_DESCRIPTION += "where none is missing. A guessed prediction counts as missing"
_INTERVAL_DESCRIPTION = (
    "the interval (95 % by default) over clusters: documents, else responses, else claims. Each"
    " figure says how it is made; the coverage is simulated in tests/validity"
)
_END_COLUMNS = {f"KEY_{end}": Column("", what=_BOUNDS_DESCRIPTION) for end in ("min", "max")}
_END_COLUMNS |= {f"KEY_{end}": Column("", what=_INTERVAL_DESCRIPTION) for end in ("low", "high")}

_FINDINGS_HEAD = """\
## Findings

`findings` in `results.json`: `{id, severity, evaluator, dataset, statement, evidence}`. `fail`:
significantly beyond a limit; `warn`: a lesser fault, or one that the unscored claims decide; `ok`:
significantly within the limit. `evidence` has every figure of the statement. Floors (`always-yes`,
`always-no`, `random`) have none.

A check warns in at most 5 % of the runs in which nothing is wrong (Holm over all rows that it looks
at); [methods](../methods.md) has how often each did.

| id | finds | nothing is wrong when |
|---|---|---|
"""


_WRITTEN_TABLES_HEAD = """\
## Tables that commands write

No audits: `estimate`, `factscore` and the experiments write these tables beside them.
"""


def render_audits_page(audits: Iterable[Audit], figure_folder: Path) -> str:
    """The whole page, in the order of the audits. figure_folder: beside the page, with figures as
    AUDIT.png."""
    figures = {path.stem for path in figure_folder.glob("*.png")}
    audits = sorted(audits, key=_is_about_responses)
    parts = [_PAGE_HEAD]
    computed = [audit for audit in audits if audit.compute is not None]
    parts += [_render_audit_section(audit, figure=audit.name in figures) for audit in computed]
    parts.append(
        _SHARED_KEYS_HEAD
        + "\n".join(_render_audit_column_lines(SHARED_COLUMNS | _END_COLUMNS))
        + "\n"
    )
    checks = [check for audit in audits for check in audit.checks]
    parts.append(_FINDINGS_HEAD + "\n".join(_render_check_line(check) for check in checks) + "\n")
    parts.append(_WRITTEN_TABLES_HEAD)
    written = [audit for audit in audits if audit.compute is None]
    parts += [
        _render_audit_section(audit, "###", figure=audit.name in figures) for audit in written
    ]
    return "\n".join(parts)


def _is_about_responses(audit: Audit) -> bool:
    """Whether an audit asks for scores of responses, or is a table that a command writes: such
    stand last."""
    return audit.compute is None or audit.name.startswith(("factscore", "dfactscore", "citations"))


def _render_check_line(check: Check) -> str:
    texts = [check.title, check.null or "– (it counts)"]
    return f"| `{check.id}` | {' | '.join(map(_escape_table_cell, texts))} |"


def _render_audit_section(audit: Audit, heading: str = "##", figure: bool = False) -> str:
    source = f" ({audit.source})" if audit.source else ""
    text = [f"{heading} `{audit.name}`\n", f"{audit.question}{source}\n"]
    if figure:
        text.append(f"![{audit.title}](../figures/{audit.name}.png)\n")
    for title, words in (
        ("How to read it", audit.text),
        ("Formula", audit.formula),
        ("Where it is bad", audit.remedy),
    ):
        if words:
            text.append(f"**{title}.** {words}\n")
    if audit.options:
        defaults = {key: field.default for key, field in audit.options_model().model_fields.items()}
        text.append("| option | |\n|---|---|")
        text += [
            f"| `{key}` |"
            f" {_escape_table_cell(words)}{_format_audit_option_default(defaults[key])} |"
            for key, words in audit.options.items()
        ]
        text.append("")
    text.append("| key | |\n|---|---|")
    known = [key for key, column in audit.columns.items() if SHARED_COLUMNS.get(key) is column]
    own = {key: column for key, column in audit.columns.items() if key not in known}
    if known:
        text.append(f"| {_format_keys(known)} | [shared](#keys-that-many-audits-share) |")
    text += _render_audit_column_lines(own)
    return "\n".join(text) + "\n"


def _render_audit_column_lines(columns: Mapping[str, Column]) -> list[str]:
    """A line for each column, one for neighbours with the same words."""
    lines: list[tuple[list[str], str]] = []
    for key, column in columns.items():
        method = f" ({column.interval})" if isinstance(column.interval, str) else ""
        beside = ", ".join(
            ["bounds"] * bool(column.bounds) + [f"interval{method}"] * bool(column.interval)
        )
        words = _escape_table_cell(column.what) + (f"; {beside}" if beside else "")
        if lines and lines[-1][1] == words:
            lines[-1][0].append(key)
        else:
            lines.append(([key], words))
    return [f"| {_format_keys(keys)} | {words} |" for keys, words in lines]


def _format_keys(keys: Iterable[str]) -> str:
    return ", ".join(f"`{key}`" for key in keys)


def _escape_table_cell(text: str) -> str:
    return text.replace("|", "\\|")


def _format_audit_option_default(value: object) -> str:
    if value is None:
        return ""
    values = value if isinstance(value, tuple | list) else [value]
    return f"; default {', '.join(f'`{each}`' for each in values)}"


if __name__ == "__main__":
    page = Path(sys.argv[1])
    write_text(page, render_audits_page(load_builtin_audits(), page.parent.parent / "figures"))
