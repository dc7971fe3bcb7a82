"""Tables checked and joined once: a row per claim with its codes, label and what each evaluator said of it.

What `factaudit.tables.validate` refuses of tables in memory is refused here, with a row to look at. Of a claim are
kept: ``g0``, ``g1``, ... (its dataset, system and further columns as places among their sorted names; the number of
names where there is none), ``response`` (-1: none), ``cluster`` (as in `Judged.clusters`), ``label`` and, of evaluator
e, ``p<e>`` (prediction) and ``q<e>`` (without guesses; only where there are any): 0, 1, and 2 for missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.errors import InputError, Problem, hint
from factaudit.sql.engine import Engine, Kind, literal
from factaudit.sql.source import Tables
from factaudit.tables import STATUSES
from factaudit.tables.schema import DEFAULT_THRESHOLD, RESERVED

#: What every claim is grouped by.
GROUPED = ("dataset", "system")
_TRUE, _FALSE = "('1', '1.0', 'True', 'true')", "('0', '0.0', 'False', 'false')"


@dataclass(frozen=True)
class Check:
    """Rows that are refused: where the condition holds, the value of the column is not what was expected."""

    column: str
    expected: str
    wrong: str
    shown: str = "NULL"


@dataclass(frozen=True)
class Prepared:
    """names: of each grouping column its values, sorted; evaluators: per name its numbers of verdicts by status."""

    names: dict[str, list[Any]]
    evaluators: dict[str, dict[str, int]]
    guessed: tuple[bool, ...]
    n_claims: int
    n_verdicts: int


def prepare(engine: Engine, tables: Tables, by: Sequence[str] = ()) -> Prepared:
    """Check both tables and keep their join as the table ``claims``. by: columns of the claims beside `GROUPED`.

    Raises `InputError` naming the table, the column and a row.
    """
    claims = _Columns(engine, tables.claims, tables.claims_name, ("claim_id", "dataset"))
    for column in by:
        if column not in claims.kinds:
            message = f"no such column to group by{hint(column, list(claims.kinds))}"
            raise InputError(tables.claims_name, [Problem(message, column=column)])
        if not re.fullmatch(r"[A-Za-z_]\w*", column, re.ASCII):
            message = "expected a name of letters, digits and underscores to group by: engines quote others differently"
            raise InputError(tables.claims_name, [Problem(message, column=column)])
    verdicts = _Columns(engine, tables.verdicts, tables.verdicts_name, ("claim_id", "evaluator"))
    if not {"score", "prediction"} & set(verdicts.kinds):
        raise InputError(tables.verdicts_name, [Problem("expected a column 'score' or a column 'prediction'")])
    n_claims = _checked(engine, claims, _claim_checks(claims))
    evaluators, guessed = _evaluators(engine, verdicts)
    columns = [*GROUPED, *(column for column in by if column not in GROUPED)]
    names = {column: _names(engine, claims, at, column) for at, column in enumerate(columns)}
    _join(engine, claims, verdicts, columns, names, list(evaluators), guessed)
    _check_join(engine, claims, verdicts)
    return Prepared(names, evaluators, tuple(guessed), n_claims, sum(map(_total, evaluators.values())))


class _Columns:
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


def _claim_checks(claims: _Columns) -> list[Check]:
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


def _verdict_checks(verdicts: _Columns) -> list[Check]:
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
    nothing = f"{_status(verdicts)} = 'ok' AND {verdicts.share()} IS NULL AND {verdicts.binary('prediction')} IS NULL"
    return [*checks, Check("prediction", message, nothing)]


def _checked(engine: Engine, table: _Columns, checks: Sequence[Check]) -> int:
    """The number of rows; raises `InputError` with a row of each thing that is wrong."""
    counted = ", ".join(["COUNT(*) AS n", *(_sum(check.wrong, f"b{at}") for at, check in enumerate(checks))])
    found = engine.query(f"SELECT {counted} FROM {table.relation} AS t")
    if not found["n"][0]:
        raise InputError(table.name, [Problem("the table has no rows")])
    problems = []
    for at, check in enumerate(checks):
        if number := int(found[f"b{at}"][0] or 0):
            problems.append(_problem(engine, table, check, number))
    if problems:
        raise InputError(table.name, problems)
    return int(found["n"][0])


def _problem(engine: Engine, table: _Columns, check: Check, number: int) -> Problem:
    row = f"SELECT {table.text('claim_id')} AS id, CAST({check.shown} AS STRING) AS shown FROM {table.relation} AS t"
    found = engine.query(f"{row} WHERE {check.wrong} ORDER BY 1 LIMIT 1")
    shown = "" if found["shown"][0] is None else f", found {found['shown'][0]!r}"
    more = "" if number == 1 else f" and in {number - 1:,} more rows"
    return Problem(f"{check.expected}{shown}, in the row of claim_id {found['id'][0]!r}{more}", column=check.column)


def _evaluators(engine: Engine, verdicts: _Columns) -> tuple[dict[str, dict[str, int]], list[bool]]:
    """Per name, sorted, what became of its verdicts; and whether some are guessed. Checks all verdicts."""
    checks = _verdict_checks(verdicts)
    _checked(engine, verdicts, checks)
    first = f"FROM {verdicts.relation} AS t WHERE {_first(verdicts)}"
    told = [_sum(f"{_status(verdicts)} = {literal(name)}", f"n_{name}") for name in STATUSES]
    guess = f"{_status(verdicts)} <> 'ok' AND {verdicts.binary('prediction')} IS NOT NULL"
    sums = ", ".join([*told, _sum(guess, "n_guessed")])
    found = engine.query(f"SELECT {verdicts.text('evaluator')} AS name, {sums} {first} GROUP BY 1 ORDER BY 1")
    numbers = {
        str(name): {key: int(found[key][at]) for key in (*(f"n_{one}" for one in STATUSES), "n_guessed")}
        for at, name in enumerate(found["name"])
    }
    return numbers, [each["n_guessed"] > 0 for each in numbers.values()]


def _names(engine: Engine, claims: _Columns, at: int, column: str) -> list[Any]:
    """The distinct values of a column, sorted; kept as the table ``names<at>`` with their places."""
    value = claims.text(column) if column in GROUPED else claims.quoted(column)
    distinct = f"SELECT DISTINCT {value} AS name FROM {claims.relation} AS t WHERE {value} IS NOT NULL"
    if column not in claims.kinds:
        distinct += " AND FALSE"
    numbered = f"SELECT name, ROW_NUMBER() OVER (ORDER BY name) - 1 AS code FROM ({distinct}) AS d"
    engine.keep(f"names{at}", numbered)
    found = engine.query(f"SELECT name FROM names{at} ORDER BY code")["name"]
    return [name.item() if hasattr(name, "item") else name for name in found]


def _join(
    engine: Engine,
    claims: _Columns,
    verdicts: _Columns,
    columns: Sequence[str],
    names: dict[str, list[Any]],
    evaluators: Sequence[str],
    guessed: Sequence[bool],
) -> None:
    """Keep ``docs``, ``answers`` (responses) and ``claims``.

    Claims and verdicts are put under each other and grouped by claim: one pass in place of a join per evaluator, and
    the same pass sees ids that are there twice.
    """
    real = f"{claims.lacks('abstained')}" if "abstained" in claims.kinds else "TRUE"
    doc, response = claims.text("doc_id"), claims.text("response_id")
    code = [f"COALESCE(n{at}.code, {len(names[column])})" for at, column in enumerate(columns)]
    value = [claims.text(one) if one in GROUPED else claims.quoted(one) for one in columns]
    coded = " ".join(f"LEFT JOIN names{at} AS n{at} ON n{at}.name = {value[at]}" for at in range(len(columns)))
    each = f"SELECT DISTINCT n0.code AS g0, {doc} AS doc_id FROM {claims.relation} AS t"
    each += f" LEFT JOIN names0 AS n0 ON n0.name = {value[0]} WHERE {doc} IS NOT NULL AND {real}"
    engine.keep("docs", f"SELECT g0, doc_id, {engine.numbering} AS doc FROM ({each}) AS d")
    selected = ", ".join(f"{one} AS g{at}" for at, one in enumerate(code))
    plain = (
        f"SELECT {claims.text('claim_id')} AS claim_id, {selected}, {doc} AS doc_id, {response} AS response_id, "
        f"COALESCE({claims.binary('label')}, 2) AS label, {engine.numbering} AS own "
        f"FROM {claims.relation} AS t {coded} WHERE {real}"
    )
    of_doc = "LEFT JOIN docs AS d ON d.g0 = c.g0 AND d.doc_id = c.doc_id"
    answers = "SELECT c.g0, c.g1, c.response_id, MIN(d.doc) AS low, MAX(d.doc) AS high, COUNT(d.doc) AS n_docs, "
    answers += f"COUNT(*) AS n FROM ({plain}) AS c {of_doc} WHERE c.response_id IS NOT NULL GROUP BY 1, 2, 3"
    engine.keep("answers", f"SELECT a.*, {engine.numbering} AS response FROM ({answers}) AS a")
    grouping = [f"g{at}" for at in range(len(columns))]
    known = [*grouping, "label", "response", "cluster"]
    # A response that names several documents is one cluster (`Judged.clusters`).
    cluster = (
        "CASE WHEN d.doc IS NOT NULL AND (a.response IS NULL OR (a.low = a.high AND a.n_docs = a.n)) THEN 3 * d.doc "
        "WHEN a.response IS NOT NULL THEN 3 * a.response + 1 ELSE 3 * c.own + 2 END"
    )
    of_claims = (
        f"SELECT c.claim_id, {', '.join(f'c.{name}' for name in grouping)}, c.label, "
        f"COALESCE(a.response, -1) AS response, {cluster} AS cluster, "
        + ", ".join(f"CAST(NULL AS SMALLINT) AS v{at}" for at in range(len(evaluators)))
        + f" FROM ({plain}) AS c {of_doc} "
        "LEFT JOIN answers AS a ON a.g0 = c.g0 AND a.g1 = c.g1 AND a.response_id = c.response_id"
    )
    name = verdicts.text("evaluator")
    of_verdicts = (
        f"SELECT {verdicts.text('claim_id')} AS claim_id, {', '.join(f'NULL AS {one}' for one in known)}, "
        + ", ".join(
            f"CASE WHEN {name} = {literal(one)} THEN {_verdict(verdicts)} END AS v{at}"
            for at, one in enumerate(evaluators)
        )
        + f" FROM {verdicts.relation} AS t WHERE {_first(verdicts)}"
    )
    together = (
        f"SELECT claim_id, {', '.join(f'MAX({one}) AS {one}' for one in known)}, COUNT(label) AS n_claims, "
        f"COUNT(*) - COUNT(label) AS n_verdicts, {', '.join(f'MAX(v{at}) AS v{at}' for at in range(len(evaluators)))} "
        f"FROM ({of_claims} UNION ALL {of_verdicts}) AS u GROUP BY claim_id"
    )
    present = " + ".join(f"CASE WHEN v{at} IS NULL THEN 0 ELSE 1 END" for at in range(len(evaluators)))
    wrong = f"CASE WHEN n_claims = 0 THEN 1 WHEN n_claims > 1 THEN 2 WHEN n_verdicts > {present} THEN 3 ELSE 0 END"
    said = [f"CAST(MOD(COALESCE(v{at}, 2), 3) AS SMALLINT) AS p{at}" for at in range(len(evaluators))]
    # A guess is stored as 3 + what it says.
    said += [
        f"CAST(CASE WHEN v{at} < 3 THEN v{at} ELSE 2 END AS SMALLINT) AS q{at}"
        for at in range(len(evaluators))
        if guessed[at]
    ]
    kept = ", ".join([*(f"CAST({one} AS INT) AS {one}" for one in grouping), "CAST(label AS SMALLINT) AS label"])
    kept += f", response, cluster, CAST({wrong} AS SMALLINT) AS wrong, {', '.join(said)}"
    engine.keep("claims", f"SELECT {kept} FROM ({together}) AS w", order=("g0", "cluster"))


def _check_join(engine: Engine, claims: _Columns, verdicts: _Columns) -> None:
    found = engine.query("SELECT wrong, COUNT(*) AS n FROM claims GROUP BY wrong")
    wrong = dict(zip(found["wrong"].tolist(), found["n"].tolist(), strict=True))
    lone = f" AND {claims.lacks('abstained')}" if "abstained" in claims.kinds else ""
    if 2 in wrong or (lone and 1 in wrong):
        sql = f"SELECT {claims.text('claim_id')} AS id, COUNT(*) AS n FROM {claims.relation} AS t GROUP BY 1"
        twice = engine.query(f"{sql} HAVING COUNT(*) > 1 ORDER BY 1 LIMIT 1")
        if len(twice["id"]):
            message = f"expected unique ids, but {twice['id'][0]!r} is there {twice['n'][0]} times"
            raise InputError(claims.name, [Problem(message, column="claim_id")])
    if 1 in wrong:
        every = f"SELECT {claims.text('claim_id')} FROM {claims.relation} AS t WHERE t.claim_id IS NOT NULL{lone}"
        sql = f"SELECT MIN({verdicts.text('claim_id')}) AS id FROM {verdicts.relation} AS t WHERE {_first(verdicts)}"
        unknown = engine.query(f"{sql} AND {verdicts.text('claim_id')} NOT IN ({every})")["id"][0]
        message = f"expected the id of a claim, but {unknown!r} is none in {claims.name} ({wrong[1]:,} such ids)"
        raise InputError(verdicts.name, [Problem(message, column="claim_id")])
    if 3 in wrong:
        keys = f"{verdicts.text('claim_id')} AS id, {verdicts.text('evaluator')} AS name"
        sql = f"SELECT {keys}, COUNT(*) AS n FROM {verdicts.relation} AS t WHERE {_first(verdicts)} GROUP BY 1, 2"
        twice = engine.query(f"{sql} HAVING COUNT(*) > 1 ORDER BY 1, 2 LIMIT 1")
        message = f"expected one verdict per claim and evaluator, but {twice['name'][0]!r} has {twice['n'][0]} on "
        message += f"{twice['id'][0]!r} ({wrong[3]:,} such claims)"
        raise InputError(verdicts.name, [Problem(message, column="claim_id")])


def _first(verdicts: _Columns) -> str:
    """Whether a verdict is the first of its evaluator: audits of rates read no repeats."""
    return f"({verdicts.lacks('repeat')} OR {verdicts.quoted('repeat')} = 0)" if "repeat" in verdicts.kinds else "TRUE"


def _status(verdicts: _Columns) -> str:
    return f"COALESCE({verdicts.text('status')}, 'ok')" if "status" in verdicts.kinds else "'ok'"


def _verdict(verdicts: _Columns) -> str:
    """What is kept of a verdict: its prediction (2: none), and 3 more where it was guessed."""
    said, score, status = verdicts.binary("prediction"), verdicts.share(), _status(verdicts)
    derived = f"CASE WHEN {score} > {DEFAULT_THRESHOLD} THEN 1 ELSE 0 END"
    plain = f"WHEN {status} <> 'ok' THEN 2 WHEN {score} IS NOT NULL THEN {derived} ELSE 2"
    if said == "NULL":
        return f"CASE {plain} END"
    return f"CASE WHEN {said} IS NOT NULL THEN {said} + CASE WHEN {status} = 'ok' THEN 0 ELSE 3 END {plain} END"


def _sum(condition: str, name: str) -> str:
    return f"SUM(CASE WHEN {condition} THEN 1 ELSE 0 END) AS {name}"


def _total(numbers: dict[str, int]) -> int:
    return sum(numbers[f"n_{status}"] for status in STATUSES)
