"""What `factaudit.tables.validate` refuses of tables in memory, refused by queries, with a row to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.errors import InputError, Problem
from factaudit.sql.engine import Engine, Kind, literal
from factaudit.tables import STATUSES
from factaudit.tables.schema import RESERVED

_TRUE, _FALSE = "('1', '1.0', 'True', 'true')", "('0', '0.0', 'False', 'false')"


@dataclass(frozen=True)
class Check:
    """Rows that are refused: where the condition holds, the value of the column is not what was expected."""

    column: str
    expected: str
    wrong: str
    shown: str = "NULL"


class Columns:
    """One table, and its columns in their standard form as SQL."""

    def __init__(self, engine: Engine, relation: str, name: str, required: Sequence[str]) -> None:
        self.relation, self.name = relation, name
        self.kinds: dict[str, Kind] = engine.columns(relation)
        present = ", ".join(map(repr, self.kinds))
        lacking = [column for column in required if column not in self.kinds]
        problems = [Problem(f"the column is missing (columns found: {present})", column=column) for column in lacking]
        texts = ("claim_id", "dataset", "system", "response_id", "doc_id", "evaluator", "status")
        no_text = [column for column in texts if self.kinds.get(column) in ("other", "truth")]
        problems += [Problem("expected text", column=column) for column in no_text]
        if self.kinds.get("score", "number") not in ("number", "whole"):
            problems.append(Problem("expected numbers from 0 to 1", column="score"))
        no_number = [column for column in ("label", "abstained", "prediction") if self.kinds.get(column) == "other"]
        no_number += ["repeat"] if self.kinds.get("repeat", "whole") not in ("whole", "number") else []
        problems += [Problem("expected whole numbers", column=column) for column in no_number]
        if problems:
            raise InputError(name, problems)

    def quoted(self, column: str) -> str:
        """The column, or null where the table lacks it. Names are ours: none needs quotes that dialects differ in."""
        return f"t.{column}" if column in self.kinds else "NULL"

    def text(self, column: str) -> str:
        """As text; a whole number as its digits, as in `factaudit.tables.columns.text`."""
        value, kind = self.quoted(column), self.kinds.get(column)
        if kind == "whole":
            return f"CAST({value} AS STRING)"
        return f"CAST(CAST({value} AS BIGINT) AS STRING)" if kind == "number" else f"CAST({value} AS STRING)"

    def binary(self, column: str) -> str:
        """1, 0 or null."""
        value, kind = self.quoted(column), self.kinds.get(column)
        if kind == "truth":
            return f"CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END"
        if kind == "text":
            return f"CASE WHEN {value} IN {_TRUE} THEN 1 WHEN {value} IN {_FALSE} THEN 0 END"
        return "NULL" if kind is None else f"CASE WHEN {value} = 1 THEN 1 WHEN {value} = 0 THEN 0 END"

    def lacks(self, column: str) -> str:
        """Whether there is no value: null, or what pandas writes for one."""
        value = self.quoted(column)
        if self.kinds.get(column) != "number":
            return f"({value} IS NULL)"
        return f"({value} IS NULL OR LOWER(CAST({value} AS STRING)) = 'nan')"

    def share(self) -> str:
        """The score, null where there is none."""
        value = self.quoted("score")
        return "NULL" if value == "NULL" else f"CASE WHEN {value} >= 0 AND {value} <= 1 THEN {value} END"

    def not_binary(self, column: str, expected: str) -> list[Check]:
        if column not in self.kinds:
            return []
        wrong = f"NOT {self.lacks(column)} AND {self.binary(column)} IS NULL"
        return [Check(column, f"expected 1{expected}, 0 or nothing", wrong, self.quoted(column))]

    def names(self, column: str, required: bool) -> list[Check]:
        """Checks of text that becomes a name in results."""
        if column not in self.kinds:
            return []
        value = self.text(column)
        reserved = ", ".join(map(literal, RESERVED))
        checks = [Check(column, "expected another name: results have this one", f"{value} IN ({reserved})", value)]
        if required:
            checks.append(Check(column, "expected text, found none", f"{value} IS NULL OR TRIM({value}) = ''"))
        if self.kinds[column] == "number":
            whole = f"{self.quoted(column)} <> FLOOR({self.quoted(column)})"
            checks.append(Check(column, "expected text", whole, self.quoted(column)))
        return checks


def claim_checks(claims: Columns) -> list[Check]:
    identity = claims.text("claim_id")
    checks = [Check("claim_id", "expected an id, found none", f"{identity} IS NULL OR {identity} = ''")]
    checks += [*claims.names("dataset", True), *claims.names("system", False)]
    checks += claims.not_binary("label", " (attributable)") + claims.not_binary(
        "abstained", " (the response abstained)"
    )
    if "abstained" in claims.kinds:
        lone = f"NOT {claims.lacks('abstained')}"
        labelled = f"{lone} AND NOT {claims.lacks('label')}"
        checks.append(Check("label", "expected nothing where abstained is set", labelled, claims.quoted("label")))
        nowhere = f"{lone} AND {claims.quoted('response_id')} IS NULL"
        checks.append(Check("response_id", "expected text where abstained is set", nowhere))
    return checks


def verdict_checks(verdicts: Columns) -> list[Check]:
    identity, name = verdicts.text("claim_id"), verdicts.text("evaluator")
    checks = [Check("claim_id", "expected text, found none", f"{identity} IS NULL OR {identity} = ''")]
    checks += verdicts.names("evaluator", False)
    checks.append(Check("evaluator", "expected text, found none", f"{name} IS NULL OR {name} = ''"))
    if "score" in verdicts.kinds:
        outside = f"NOT {verdicts.lacks('score')} AND {verdicts.share()} IS NULL"
        checks.append(Check("score", "expected a number from 0 to 1, or nothing", outside, verdicts.quoted("score")))
    checks += verdicts.not_binary("prediction", "")
    if "status" in verdicts.kinds:
        known = ", ".join(map(literal, STATUSES))
        value = verdicts.text("status")
        checks.append(Check("status", f"expected one of {', '.join(STATUSES)}", f"{value} NOT IN ({known})", value))
    if "repeat" in verdicts.kinds:
        value = verdicts.quoted("repeat")
        wrong = f"NOT {verdicts.lacks('repeat')} AND (NOT {value} >= 0 OR {value} <> FLOOR({value}))"
        checks.append(Check("repeat", "expected a whole number from 0 on, or nothing", wrong, value))
    message = "no score and no prediction: expected one of them, or a status of unparsed, refused, error or skipped"
    nothing = f"{status_of(verdicts)} = 'ok' AND {verdicts.share()} IS NULL AND {verdicts.binary('prediction')} IS NULL"
    return [*checks, Check("prediction", message, nothing)]


def checked(
    engine: Engine, table: Columns, checks: Sequence[Check], *more: str, by: str | None = None
) -> dict[str, np.ndarray]:
    """Numbers of rows as ``n``, and what ``more`` aggregates say; by the expression ``by`` (as ``name``), or of all.

    Raises `InputError` with a row of each thing that is wrong.
    """
    sums = ", ".join(["COUNT(*) AS n", *(counted(check.wrong, f"b{at}") for at, check in enumerate(checks)), *more])
    of = f"FROM {table.relation} AS t"
    found = engine.query(f"SELECT {sums} {of}" if by is None else f"SELECT {by} AS name, {sums} {of} GROUP BY 1")
    if not found["n"].sum():
        raise InputError(table.name, [Problem("the table has no rows")])
    wrong = [(check, int(found[f"b{at}"].sum())) for at, check in enumerate(checks)]
    problems = [_problem(engine, table, check, number) for check, number in wrong if number]
    if problems:
        raise InputError(table.name, problems)
    return found


def _problem(engine: Engine, table: Columns, check: Check, number: int) -> Problem:
    row = f"SELECT {table.text('claim_id')} AS id, CAST({check.shown} AS STRING) AS shown FROM {table.relation} AS t"
    found = engine.query(f"{row} WHERE {check.wrong} ORDER BY 1 LIMIT 1")
    shown = "" if found["shown"][0] is None else f", found {found['shown'][0]!r}"
    more = "" if number == 1 else f" and in {number - 1:,} more rows"
    return Problem(f"{check.expected}{shown}, in the row of claim_id {found['id'][0]!r}{more}", column=check.column)


def is_first(verdicts: Columns) -> str:
    """Whether a verdict is the first of its evaluator: audits of rates read no repeats."""
    return f"({verdicts.lacks('repeat')} OR {verdicts.quoted('repeat')} = 0)" if "repeat" in verdicts.kinds else "TRUE"


def status_of(verdicts: Columns) -> str:
    """A verdict's status, which is ``ok`` where none is said."""
    return f"COALESCE({verdicts.text('status')}, 'ok')" if "status" in verdicts.kinds else "'ok'"


def counted(condition: str, name: str) -> str:
    """How many rows a condition holds for."""
    return f"COUNT(CASE WHEN {condition} THEN 1 END) AS {name}"
