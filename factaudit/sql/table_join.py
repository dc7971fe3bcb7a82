"""Tables checked and joined once: a row per claim with its codes, label and what each evaluator said of it.

What `factaudit.tables.validation` refuses of tables in memory is refused here, with a row to look at. Of a claim are
kept: ``g0``, ``g1``, ... (its dataset, system and further columns as places among their sorted names; the number of
names where there is none), ``response`` (< 0: none), ``cluster`` (as in `Judgements.cluster_codes`), ``label`` and, of
evaluator e, ``p<e>`` (prediction), ``q<e>`` (without guesses; only where there are any) and ``s<e>`` (score; only where
there are any, and they are asked for): 2 for missing. Numbers of responses and clusters rise with their names in each
dataset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.errors import InputError, Problem, suggest_known_name
from factaudit.sql.row_checks import (
    SqlTable,
    build_first_repeat_sql_condition,
    check_sql_table_rows,
    count_where_expression,
    list_sql_claim_checks,
    list_sql_verdict_checks,
    status_expression,
)
from factaudit.sql.source_tables import SourceTables
from factaudit.sql.sql_engine import SqlEngine, quote_sql_literal
from factaudit.tables import STATUSES
from factaudit.tables.schema import DEFAULT_THRESHOLD

#: What every claim is grouped by.
GROUPING_COLUMNS = ("dataset", "system")
#: Clusters are numbered by kind (a document, a response, a claim of its own), and within a kind by name.
_CLUSTER_KIND_OFFSET = 1 << 40


@dataclass(frozen=True)
class SqlJoinSummary:
    """column_values: of each grouping column its values, sorted; verdict_counts: per name its numbers of verdicts by
    status.

    has_guesses: whether some of an evaluator's predictions are guesses; has_scores: whether its scores are kept.
    """

    column_values: dict[str, list[Any]]
    verdict_counts: dict[str, dict[str, int]]
    has_guesses: tuple[bool, ...]
    has_scores: tuple[bool, ...]
    n_claims: int
    n_verdicts: int


def join_source_tables(
    sql_engine: SqlEngine,
    source_tables: SourceTables,
    grouping_columns: Sequence[str] = (),
    with_scores: bool = False,
    with_ids: bool = False,
) -> SqlJoinSummary:
    """Check both tables and keep their join as the table ``claims``.

    grouping_columns: columns of the claims beside `GROUPING_COLUMNS`; with_scores: whether scores are kept; with_ids:
    whether ``claim_id`` and ``own``, its place in its dataset, are.

    Raises `InputError` naming the table, the column and a row.
    """
    claims = SqlTable(sql_engine, source_tables.claims, source_tables.claims_name, ("claim_id", "dataset"))
    for column in grouping_columns:
        if column not in claims.column_kinds:
            message = f"no such column to group by{suggest_known_name(column, list(claims.column_kinds))}"
            raise InputError(source_tables.claims_name, [Problem(message, column=column)])
        if not re.fullmatch(r"[A-Za-z_]\w*", column, re.ASCII):
            message = "expected a name of letters, digits and underscores to group by: engines quote others differently"
            raise InputError(source_tables.claims_name, [Problem(message, column=column)])
    verdicts = SqlTable(sql_engine, source_tables.verdicts, source_tables.verdicts_name, ("claim_id", "evaluator"))
    if not {"score", "prediction"} & set(verdicts.column_kinds):
        raise InputError(source_tables.verdicts_name, [Problem("expected a column 'score' or a column 'prediction'")])
    n_claims = int(check_sql_table_rows(sql_engine, claims, list_sql_claim_checks(claims))["n"][0])
    evaluators = _count_sql_evaluator_verdicts(sql_engine, verdicts)
    columns = [*GROUPING_COLUMNS, *(column for column in grouping_columns if column not in GROUPING_COLUMNS)]
    names = {column: _store_distinct_column_values(sql_engine, claims, at, column) for at, column in enumerate(columns)}
    prepared = SqlJoinSummary(
        column_values=names,
        verdict_counts={name: {k: n for k, n in each.items() if k != "n_scores"} for name, each in evaluators.items()},
        has_guesses=tuple(each["n_guessed"] > 0 for each in evaluators.values()),
        has_scores=tuple(with_scores and each["n_scores"] > 0 for each in evaluators.values()),
        n_claims=n_claims,
        n_verdicts=sum(each[f"n_{status}"] for each in evaluators.values() for status in STATUSES),
    )
    _store_claims_with_integer_codes(sql_engine, claims, names, with_ids)
    _store_sql_joined_claims(sql_engine, claims, verdicts, prepared, with_ids)
    return prepared


def _count_sql_evaluator_verdicts(sql_engine: SqlEngine, verdicts: SqlTable) -> dict[str, dict[str, int]]:
    """Per name, sorted, what became of its verdicts, how many are guessed and have a score. Checks all verdicts."""
    guess = f"{status_expression(verdicts)} <> 'ok' AND {verdicts.binary_sql('prediction')} IS NOT NULL"
    wanted = {f"n_{name}": f"{status_expression(verdicts)} = {quote_sql_literal(name)}" for name in STATUSES}
    wanted |= {"n_guessed": guess, "n_scores": f"{verdicts.score_sql()} IS NOT NULL"}
    more = [
        count_where_expression(f"{build_first_repeat_sql_condition(verdicts)} AND {condition}", name)
        for name, condition in wanted.items()
    ]
    found = check_sql_table_rows(
        sql_engine, verdicts, list_sql_verdict_checks(verdicts), *more, group_expression=verdicts.text_sql("evaluator")
    )
    numbers = {str(name): {key: int(found[key][at]) for key in wanted} for at, name in enumerate(found["name"])}
    # One that was only asked again has said nothing that is read.
    return {name: each for name, each in sorted(numbers.items()) if any(each[f"n_{one}"] for one in STATUSES)}


def _store_distinct_column_values(sql_engine: SqlEngine, claims: SqlTable, position: int, column: str) -> list[Any]:
    """The distinct values of a column, sorted; kept as the table ``names<at>`` with their places."""
    value = claims.text_sql(column) if column in GROUPING_COLUMNS else claims.column_or_null(column)
    distinct = f"SELECT DISTINCT {value} AS name {claims.from_clause} WHERE {value} IS NOT NULL"
    if column not in claims.column_kinds:
        distinct += " AND FALSE"
    numbered = f"SELECT name, ROW_NUMBER() OVER (ORDER BY name) - 1 AS code FROM ({distinct}) AS d"
    sql_engine.store_table(f"names{position}", numbered)
    found = sql_engine.query(f"SELECT name FROM names{position} ORDER BY code")["name"]
    return [name.item() if hasattr(name, "item") else name for name in found]


def _document_sql(claims: SqlTable) -> str:
    """As `factaudit.arrays.judgements.name_documents`: the doc_id, else a hash of the text."""
    if "doc" not in claims.column_kinds:
        return claims.text_sql("doc_id")
    text = claims.text_sql("doc")
    by_text = f"CASE WHEN TRIM({text}) <> '' THEN CONCAT('text ', MD5({text})) END"
    return f"COALESCE({claims.text_sql('doc_id')}, {by_text})"


def _store_claims_with_integer_codes(
    sql_engine: SqlEngine, claims: SqlTable, column_values: dict[str, list[Any]], with_ids: bool
) -> None:
    """Keep ``coded``: claims by their ids with numbers in the place of names, response and cluster."""
    real = f"{claims.missing_condition('abstained')}" if "abstained" in claims.column_kinds else "TRUE"
    doc, response = _document_sql(claims), claims.text_sql("response_id")
    value = [claims.text_sql(one) if one in GROUPING_COLUMNS else claims.column_or_null(one) for one in column_values]
    coded = " ".join(f"LEFT JOIN names{at} AS n{at} ON n{at}.name = {value[at]}" for at in range(len(column_values)))
    code = [f"COALESCE(n{at}.code, {len(each)}) AS g{at}" for at, each in enumerate(column_values.values())]
    plain = (
        f"SELECT {claims.text_sql('claim_id')} AS claim_id, {', '.join(code)}, {doc} AS doc_id, "
        f"{response} AS response_id, {claims.text_sql('fact_id')} AS fact_id, "
        f"COALESCE({claims.binary_sql('label')}, 2) AS label {claims.from_clause} {coded} WHERE {real}"
    )

    def numbered(of: str, by: str) -> str:
        """Numbers of rows that rise with names in each dataset, and are no other dataset's."""
        return (
            f"{len(column_values['dataset'])} * (ROW_NUMBER() OVER (PARTITION BY {of}.g0 ORDER BY {by}) - 1) + {of}.g0"
        )

    each = f"SELECT DISTINCT g0, doc_id FROM ({plain}) AS p WHERE doc_id IS NOT NULL"
    sql_engine.store_table("docs", f"SELECT g0, doc_id, {numbered('e', 'e.doc_id')} AS doc FROM ({each}) AS e")
    of_doc = "LEFT JOIN docs AS d ON d.g0 = c.g0 AND d.doc_id = c.doc_id"
    answers = "SELECT c.g0, c.g1, c.response_id, MIN(d.doc) AS low, MAX(d.doc) AS high, COUNT(d.doc) AS n_docs, "
    answers += "COUNT(c.fact_id) > COUNT(DISTINCT c.fact_id) AS repeats_facts, "
    answers += f"COUNT(*) AS n FROM ({plain}) AS c {of_doc} WHERE c.response_id IS NOT NULL GROUP BY 1, 2, 3"
    order = numbered("a", "a.g1, a.response_id")
    sql_engine.store_table("answers", f"SELECT a.*, {order} AS response FROM ({answers}) AS a")
    alone = f"SELECT g0, claim_id FROM ({plain}) AS p WHERE doc_id IS NULL AND response_id IS NULL"
    sql_engine.store_table("alone", f"SELECT e.claim_id, {numbered('e', 'e.claim_id')} AS own FROM ({alone}) AS e")
    known = [f"CAST(c.g{at} AS INT) AS g{at}" for at in range(len(column_values))]
    # A response that names several documents is one cluster (`Judgements.cluster_codes`).
    cluster = (
        "CASE WHEN d.doc IS NOT NULL AND (a.response IS NULL OR (a.low = a.high AND a.n_docs = a.n)) THEN d.doc "
        f"WHEN a.response IS NOT NULL THEN {_CLUSTER_KIND_OFFSET} + a.response "
        f"ELSE {2 * _CLUSTER_KIND_OFFSET} + o.own END"
    )
    # Below -1: the claims are of a response, and no parts of it (`find_claims_in_responses`).
    answer = "CASE WHEN a.repeats_facts THEN -2 - a.response ELSE COALESCE(a.response, -1) END"
    if with_ids:
        known.append("ROW_NUMBER() OVER (PARTITION BY c.g0 ORDER BY c.claim_id) AS own")
    sql_engine.store_table(
        "coded",
        f"SELECT c.claim_id, {', '.join(known)}, CAST(c.label AS SMALLINT) AS label, "
        f"{answer} AS response, {cluster} AS cluster FROM ({plain}) AS c {of_doc} "
        "LEFT JOIN answers AS a ON a.g0 = c.g0 AND a.g1 = c.g1 AND a.response_id = c.response_id "
        "LEFT JOIN alone AS o ON o.claim_id = c.claim_id",
    )


def _store_sql_joined_claims(
    sql_engine: SqlEngine, claims: SqlTable, verdicts: SqlTable, join_summary: SqlJoinSummary, with_ids: bool
) -> None:
    """Keep ``claims``: what is coded of them with what each evaluator said.

    In parts by claim_id, so that what is joined stays in memory: one part reads little of tables that are in the order
    of their claims, and of others the ids.
    """
    kind = claims.column_kinds["claim_id"]
    alike = kind == verdicts.column_kinds["claim_id"] and kind in ("text", "whole")
    n_rows = join_summary.n_claims + join_summary.n_verdicts
    cuts = sql_engine.find_part_bounds(f"(SELECT t.claim_id {claims.from_clause})", "claim_id", n_rows) if alike else []
    parts = [_range_condition("t.claim_id", low, high) for low, high in zip([None, *cuts], [*cuts, None], strict=True)]
    twice = f"SELECT {claims.text_sql('claim_id')} AS id {claims.from_clause} WHERE {{}} GROUP BY 1 HAVING COUNT(*) > 1"
    if any(len(sql_engine.query(f"{twice.format(part)} LIMIT 1")["id"]) for part in parts):
        _raise_duplicate_sql_claim(sql_engine, claims)
    known = [
        *(f"g{at}" for at in range(len(join_summary.column_values))),
        "label",
        "response",
        "cluster",
        *(("claim_id", "own") if with_ids else ()),
    ]
    said, joined, there = list[str](), list[str](), list[str]()
    for at, name in enumerate(join_summary.verdict_counts):
        mine = f"SELECT claim_id, v, score FROM said WHERE evaluator = {quote_sql_literal(name)}"
        joined.append(f"LEFT JOIN ({mine}) AS e{at} ON e{at}.claim_id = c.claim_id")
        there.append(f"CASE WHEN e{at}.v IS NULL THEN 0 ELSE 1 END")
        said.append(f"CAST(MOD(COALESCE(e{at}.v, 2), 3) AS SMALLINT) AS p{at}")
        if join_summary.has_guesses[at]:  # a guess is 3 + what it says
            said.append(f"CAST(CASE WHEN e{at}.v < 3 THEN e{at}.v ELSE 2 END AS SMALLINT) AS q{at}")
        if join_summary.has_scores[at]:
            said.append(f"COALESCE(e{at}.score, 2) AS s{at}")
    selected = ", ".join([*(f"c.{one}" for one in known), *said, f"CAST({' + '.join(there)} AS SMALLINT) AS n_said"])
    score = f"CAST({verdicts.score_sql()} AS DOUBLE)" if any(join_summary.has_scores) else "NULL"
    of_verdicts = (
        f"SELECT {verdicts.text_sql('claim_id')} AS claim_id, {verdicts.text_sql('evaluator')} AS evaluator, "
        f"{_build_sql_verdict_code_expression(verdicts)} AS v, {score} AS score {verdicts.from_clause} "
        f"WHERE {build_first_repeat_sql_condition(verdicts)} AND "
    )
    coded_id = "CAST(t.claim_id AS BIGINT)" if kind == "whole" else "t.claim_id"
    queries = [
        f"WITH said AS ({of_verdicts}{part}) SELECT {selected} FROM "
        f"(SELECT * FROM coded AS t WHERE {part.replace('t.claim_id', coded_id)}) AS c {' '.join(joined)}"
        for part in parts
    ]
    sql_engine.store_table("claims", *queries, order=("g0", "cluster"))
    found = sql_engine.query("SELECT COUNT(*) AS n, SUM(n_said) AS n_said FROM claims")
    n_coded = sql_engine.query("SELECT COUNT(*) AS n FROM coded")["n"][0]
    if found["n"][0] != n_coded or int(found["n_said"][0] or 0) != join_summary.n_verdicts:
        _raise_unjoined_sql_verdict(sql_engine, claims, verdicts)
    for table in ("coded", "docs", "answers", "alone"):
        sql_engine.drop_table(table)


def _range_condition(column: str, low: Any, high: Any) -> str:
    ends = [f"{column} {sign} {quote_sql_literal(end)}" for sign, end in ((">=", low), ("<", high)) if end is not None]
    return " AND ".join(ends) or "TRUE"


def _raise_duplicate_sql_claim(sql_engine: SqlEngine, claims: SqlTable) -> None:
    sql = f"SELECT {claims.text_sql('claim_id')} AS id, COUNT(*) AS n {claims.from_clause} GROUP BY 1"
    twice = sql_engine.query(f"{sql} HAVING COUNT(*) > 1 ORDER BY 1 LIMIT 1")
    message = f"expected unique ids, but {twice['id'][0]!r} is there {twice['n'][0]} times"
    raise InputError(claims.name, [Problem(message, column="claim_id")])


def _raise_unjoined_sql_verdict(sql_engine: SqlEngine, claims: SqlTable, verdicts: SqlTable) -> None:
    """Say which verdict is of no claim, or there twice."""
    real = f" AND {claims.missing_condition('abstained')}" if "abstained" in claims.column_kinds else ""
    every = f"SELECT {claims.text_sql('claim_id')} {claims.from_clause} WHERE t.claim_id IS NOT NULL{real}"
    own, of_first = (
        verdicts.text_sql("claim_id"),
        f"{verdicts.from_clause} WHERE {build_first_repeat_sql_condition(verdicts)}",
    )
    sql = f"SELECT MIN({own}) AS id, COUNT(DISTINCT {own}) AS n {of_first}"
    unknown = sql_engine.query(f"{sql} AND {own} NOT IN ({every})")
    if unknown["n"][0]:
        message = f"expected the id of a claim, but {unknown['id'][0]!r} is none in {claims.name} "
        message += f"({unknown['n'][0]:,} such ids)"
        raise InputError(verdicts.name, [Problem(message, column="claim_id")])
    keys = f"{own} AS id, {verdicts.text_sql('evaluator')} AS name"
    sql = f"SELECT {keys}, COUNT(*) AS n {of_first} GROUP BY 1, 2"
    twice = sql_engine.query(f"{sql} HAVING COUNT(*) > 1 ORDER BY 1, 2 LIMIT 1")
    n = sql_engine.query(f"SELECT COUNT(*) AS n FROM ({sql} HAVING COUNT(*) > 1) AS d")["n"][0]
    message = f"expected one verdict per claim and evaluator, but {twice['name'][0]!r} has {twice['n'][0]} on "
    raise InputError(verdicts.name, [Problem(f"{message}{twice['id'][0]!r} ({n:,} such claims)", column="claim_id")])


def _build_sql_verdict_code_expression(verdicts: SqlTable) -> str:
    """What is kept of a verdict: its prediction (2: none), and 3 more where it was guessed."""
    said, score, status = (verdicts.binary_sql("prediction"), verdicts.score_sql(), status_expression(verdicts))
    derived = f"CASE WHEN {score} > {DEFAULT_THRESHOLD} THEN 1 ELSE 0 END"
    plain = f"WHEN {status} <> 'ok' THEN 2 WHEN {score} IS NOT NULL THEN {derived} ELSE 2"
    if said == "NULL":
        return f"CASE {plain} END"
    return f"CASE WHEN {said} IS NOT NULL THEN {said} + CASE WHEN {status} = 'ok' THEN 0 ELSE 3 END {plain} END"
