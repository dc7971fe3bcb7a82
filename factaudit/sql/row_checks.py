"""What `factaudit.tables.validation` refuses of tables in memory, refused by queries, with a row to look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.errors import InputError, Problem
from factaudit.sql.sql_engine import ColumnKind, SqlEngine, quote_sql_literal
from factaudit.tables import STATUSES
from factaudit.tables.schema import RESERVED_NAMES

_TRUE_TEXTS, _FALSE_TEXTS = "('1', '1.0', 'True', 'true')", "('0', '0.0', 'False', 'false')"


@dataclass(frozen=True)
class SqlRowCheck:
    """Rows that are refused: where the condition holds, the value of the column is not what was expected."""

    column: str
    expected: str
    wrong_condition: str
    shown_expression: str = "NULL"


class SqlTable:
    """One table, and its columns in their standard form as SQL."""

    def __init__(self, engine: SqlEngine, relation: str, name: str, required: Sequence[str]) -> None:
        self.relation, self.name = relation, name
        self.from_clause = f"FROM {relation} AS t"
        self.column_kinds: dict[str, ColumnKind] = engine.read_column_kinds(relation)
        present = ", ".join(map(repr, self.column_kinds))
        lacking = [column for column in required if column not in self.column_kinds]
        problems = [Problem(f"the column is missing (columns found: {present})", column=column) for column in lacking]
        texts = ("claim_id", "dataset", "system", "response_id", "doc_id", "evaluator", "status")
        no_text = [column for column in texts if self.column_kinds.get(column) in ("other", "truth")]
        problems += [Problem("expected text", column=column) for column in no_text]
        if self.column_kinds.get("score", "number") not in ("number", "whole"):
            problems.append(Problem("expected numbers from 0 to 1", column="score"))
        no_number = [
            column for column in ("label", "abstained", "prediction") if self.column_kinds.get(column) == "other"
        ]
        no_number += ["repeat"] if self.column_kinds.get("repeat", "whole") not in ("whole", "number") else []
        problems += [Problem("expected whole numbers", column=column) for column in no_number]
        if problems:
            raise InputError(name, problems)

    def column_or_null(self, column: str) -> str:
        """The column, or null where the table lacks it. Names are ours: none needs quotes that dialects differ in."""
        return f"t.{column}" if column in self.column_kinds else "NULL"

    def text_sql(self, column: str) -> str:
        """As text; a whole number as its digits, as in `factaudit.tables.column_parsing.parse_text_column`."""
        value, kind = self.column_or_null(column), self.column_kinds.get(column)
        if kind == "whole":
            return f"CAST({value} AS STRING)"
        return f"CAST(CAST({value} AS BIGINT) AS STRING)" if kind == "number" else f"CAST({value} AS STRING)"

    def binary_sql(self, column: str) -> str:
        """1, 0 or null."""
        value, kind = self.column_or_null(column), self.column_kinds.get(column)
        if kind == "truth":
            return f"CASE WHEN {value} THEN 1 WHEN NOT {value} THEN 0 END"
        if kind == "text":
            return f"CASE WHEN {value} IN {_TRUE_TEXTS} THEN 1 WHEN {value} IN {_FALSE_TEXTS} THEN 0 END"
        return "NULL" if kind is None else f"CASE WHEN {value} = 1 THEN 1 WHEN {value} = 0 THEN 0 END"

    def missing_condition(self, column: str) -> str:
        """Whether there is no value: null, or what pandas writes for one."""
        value = self.column_or_null(column)
        if self.column_kinds.get(column) != "number":
            return f"({value} IS NULL)"
        return f"({value} IS NULL OR LOWER(CAST({value} AS STRING)) = 'nan')"

    def score_sql(self) -> str:
        """The score, null where there is none."""
        value = self.column_or_null("score")
        return "NULL" if value == "NULL" else f"CASE WHEN {value} >= 0 AND {value} <= 1 THEN {value} END"

    def list_binary_checks(self, column: str, expected: str) -> list[SqlRowCheck]:
        if column not in self.column_kinds:
            return []
        wrong = f"NOT {self.missing_condition(column)} AND {self.binary_sql(column)} IS NULL"
        return [SqlRowCheck(column, f"expected 1{expected}, 0 or nothing", wrong, self.column_or_null(column))]

    def list_name_checks(self, column: str, is_required: bool) -> list[SqlRowCheck]:
        """Checks of text that becomes a name in results."""
        if column not in self.column_kinds:
            return []
        value = self.text_sql(column)
        reserved = ", ".join(map(quote_sql_literal, RESERVED_NAMES))
        checks = [
            SqlRowCheck(column, "expected another name: results have this one", f"{value} IN ({reserved})", value)
        ]
        if is_required:
            checks.append(SqlRowCheck(column, "expected text, found none", f"{value} IS NULL OR TRIM({value}) = ''"))
        if self.column_kinds[column] == "number":
            whole = f"{self.column_or_null(column)} <> FLOOR({self.column_or_null(column)})"
            checks.append(SqlRowCheck(column, "expected text", whole, self.column_or_null(column)))
        return checks


def list_sql_claim_checks(claims: SqlTable) -> list[SqlRowCheck]:
    identity = claims.text_sql("claim_id")
    checks = [SqlRowCheck("claim_id", "expected an id, found none", f"{identity} IS NULL OR {identity} = ''")]
    checks += [*claims.list_name_checks("dataset", True), *claims.list_name_checks("system", False)]
    checks += claims.list_binary_checks("label", " (attributable)") + claims.list_binary_checks(
        "abstained", " (the response abstained)"
    )
    if "abstained" in claims.column_kinds:
        lone = f"NOT {claims.missing_condition('abstained')}"
        labelled = f"{lone} AND NOT {claims.missing_condition('label')}"
        checks.append(
            SqlRowCheck("label", "expected nothing where abstained is set", labelled, claims.column_or_null("label"))
        )
        nowhere = f"{lone} AND {claims.column_or_null('response_id')} IS NULL"
        checks.append(SqlRowCheck("response_id", "expected text where abstained is set", nowhere))
    if "variant_of" in claims.column_kinds:
        varied = f"NOT {claims.missing_condition('variant_of')}"
        checks.append(SqlRowCheck("variant_of", "expected nothing: variants are audited in memory alone", varied))
    return checks


def list_sql_verdict_checks(verdicts: SqlTable) -> list[SqlRowCheck]:
    identity, name = verdicts.text_sql("claim_id"), verdicts.text_sql("evaluator")
    checks = [SqlRowCheck("claim_id", "expected text, found none", f"{identity} IS NULL OR {identity} = ''")]
    checks += verdicts.list_name_checks("evaluator", False)
    checks.append(SqlRowCheck("evaluator", "expected text, found none", f"{name} IS NULL OR {name} = ''"))
    if "score" in verdicts.column_kinds:
        outside = f"NOT {verdicts.missing_condition('score')} AND {verdicts.score_sql()} IS NULL"
        checks.append(
            SqlRowCheck("score", "expected a number from 0 to 1, or nothing", outside, verdicts.column_or_null("score"))
        )
    checks += verdicts.list_binary_checks("prediction", "")
    if "status" in verdicts.column_kinds:
        known = ", ".join(map(quote_sql_literal, STATUSES))
        value = verdicts.text_sql("status")
        checks.append(
            SqlRowCheck("status", f"expected one of {', '.join(STATUSES)}", f"{value} NOT IN ({known})", value)
        )
    if "repeat" in verdicts.column_kinds:
        value = verdicts.column_or_null("repeat")
        wrong = f"NOT {verdicts.missing_condition('repeat')} AND (NOT {value} >= 0 OR {value} <> FLOOR({value}))"
        checks.append(SqlRowCheck("repeat", "expected a whole number from 0 on, or nothing", wrong, value))
    message = "no score and no prediction: expected one of them, or a status of unparsed, refused, error or skipped"
    nothing = f"{status_expression(verdicts)} = 'ok' AND {verdicts.score_sql()} IS NULL"
    nothing += f" AND {verdicts.binary_sql('prediction')} IS NULL"
    return [*checks, SqlRowCheck("prediction", message, nothing)]


def check_sql_table_rows(
    sql_engine: SqlEngine,
    table: SqlTable,
    row_checks: Sequence[SqlRowCheck],
    *more: str,
    group_expression: str | None = None,
) -> dict[str, np.ndarray]:
    """Numbers of rows as ``n``, and what ``more`` aggregates say; by the expression ``group_expression`` (as ``name``),
    or of all.

    Raises `InputError` with a row of each thing that is wrong.
    """
    sums = ", ".join(
        [
            "COUNT(*) AS n",
            *(count_where_expression(check.wrong_condition, f"b{at}") for at, check in enumerate(row_checks)),
            *more,
        ]
    )
    of = f"{table.from_clause}"
    found = sql_engine.query(
        f"SELECT {sums} {of}"
        if group_expression is None
        else f"SELECT {group_expression} AS name, {sums} {of} GROUP BY 1"
    )
    if not found["n"].sum():
        raise InputError(table.name, [Problem("the table has no rows")])
    wrong = [(check, int(found[f"b{at}"].sum())) for at, check in enumerate(row_checks)]
    problems = [_describe_refused_sql_row(sql_engine, table, check, number) for check, number in wrong if number]
    if problems:
        raise InputError(table.name, problems)
    return found


def _describe_refused_sql_row(
    sql_engine: SqlEngine, table: SqlTable, row_check: SqlRowCheck, n_refused: int
) -> Problem:
    row = f"SELECT {table.text_sql('claim_id')} AS id, CAST({row_check.shown_expression} AS STRING) AS shown"
    found = sql_engine.query(f"{row} {table.from_clause} WHERE {row_check.wrong_condition} ORDER BY 1 LIMIT 1")
    shown = "" if found["shown"][0] is None else f", found {found['shown'][0]!r}"
    more = "" if n_refused == 1 else f" and in {n_refused - 1:,} more rows"
    return Problem(
        f"{row_check.expected}{shown}, in the row of claim_id {found['id'][0]!r}{more}", column=row_check.column
    )


def build_first_repeat_sql_condition(verdicts: SqlTable) -> str:
    """Whether a verdict is the first of its evaluator: audits of rates read no repeats."""
    if "repeat" not in verdicts.column_kinds:
        return "TRUE"
    return f"({verdicts.missing_condition('repeat')} OR {verdicts.column_or_null('repeat')} = 0)"


def status_expression(verdicts: SqlTable) -> str:
    """A verdict's status, which is ``ok`` where none is said."""
    return f"COALESCE({verdicts.text_sql('status')}, 'ok')" if "status" in verdicts.column_kinds else "'ok'"


def count_where_expression(condition: str, name: str) -> str:
    """How many rows a condition holds for."""
    return f"COUNT(CASE WHEN {condition} THEN 1 END) AS {name}"
