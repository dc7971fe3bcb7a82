"""Tables checked and joined once: a row per claim with its codes, label and what each evaluator said of it.

What `factaudit.tables.validate` refuses of tables in memory is refused here, with a row to look at. Of a claim are
kept: ``g0``, ``g1``, ... (its dataset, system and further columns as places among their sorted names; the number of
names where there is none), ``response`` (-1: none), ``cluster`` (as in `Judged.clusters`), ``label`` and, of evaluator
e, ``p<e>`` (prediction), ``q<e>`` (without guesses; only where there are any) and ``s<e>`` (score; only where there are
any, and they are asked for): 2 for missing. Numbers of responses and clusters rise with their names in each dataset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.errors import InputError, Problem, hint
from factaudit.sql.checks import Columns, checked, claim_checks, counted, is_first, status_of, verdict_checks
from factaudit.sql.engine import Engine, literal
from factaudit.sql.source import Tables
from factaudit.tables import STATUSES
from factaudit.tables.schema import DEFAULT_THRESHOLD

#: What every claim is grouped by.
GROUPED = ("dataset", "system")
#: Clusters are numbered by kind (a document, a response, a claim of its own), and within a kind by name.
_KIND = 1 << 40


@dataclass(frozen=True)
class Prepared:
    """names: of each grouping column its values, sorted; evaluators: per name its numbers of verdicts by status.

    guessed: whether some of an evaluator's predictions are guesses; scored: whether its scores are kept.
    """

    names: dict[str, list[Any]]
    evaluators: dict[str, dict[str, int]]
    guessed: tuple[bool, ...]
    scored: tuple[bool, ...]
    n_claims: int
    n_verdicts: int


def prepare(
    engine: Engine, tables: Tables, by: Sequence[str] = (), scores: bool = False, ids: bool = False
) -> Prepared:
    """Check both tables and keep their join as the table ``claims``.

    by: columns of the claims beside `GROUPED`; scores: whether scores are kept; ids: whether ``claim_id`` and ``own``,
    its place in its dataset, are.

    Raises `InputError` naming the table, the column and a row.
    """
    claims = Columns(engine, tables.claims, tables.claims_name, ("claim_id", "dataset"))
    for column in by:
        if column not in claims.kinds:
            message = f"no such column to group by{hint(column, list(claims.kinds))}"
            raise InputError(tables.claims_name, [Problem(message, column=column)])
        if not re.fullmatch(r"[A-Za-z_]\w*", column, re.ASCII):
            message = "expected a name of letters, digits and underscores to group by: engines quote others differently"
            raise InputError(tables.claims_name, [Problem(message, column=column)])
    verdicts = Columns(engine, tables.verdicts, tables.verdicts_name, ("claim_id", "evaluator"))
    if not {"score", "prediction"} & set(verdicts.kinds):
        raise InputError(tables.verdicts_name, [Problem("expected a column 'score' or a column 'prediction'")])
    n_claims = int(checked(engine, claims, claim_checks(claims))["n"][0])
    evaluators = _evaluators(engine, verdicts)
    columns = [*GROUPED, *(column for column in by if column not in GROUPED)]
    names = {column: _names(engine, claims, at, column) for at, column in enumerate(columns)}
    prepared = Prepared(
        names=names,
        evaluators={name: {k: n for k, n in each.items() if k != "n_scores"} for name, each in evaluators.items()},
        guessed=tuple(each["n_guessed"] > 0 for each in evaluators.values()),
        scored=tuple(scores and each["n_scores"] > 0 for each in evaluators.values()),
        n_claims=n_claims,
        n_verdicts=sum(each[f"n_{status}"] for each in evaluators.values() for status in STATUSES),
    )
    _code(engine, claims, names, ids)
    _join(engine, claims, verdicts, prepared, ids)
    return prepared


def _evaluators(engine: Engine, verdicts: Columns) -> dict[str, dict[str, int]]:
    """Per name, sorted, what became of its verdicts, how many are guessed and have a score. Checks all verdicts."""
    guess = f"{status_of(verdicts)} <> 'ok' AND {verdicts.binary('prediction')} IS NOT NULL"
    wanted = {f"n_{name}": f"{status_of(verdicts)} = {literal(name)}" for name in STATUSES}
    wanted |= {"n_guessed": guess, "n_scores": f"{verdicts.share()} IS NOT NULL"}
    more = [counted(f"{is_first(verdicts)} AND {condition}", name) for name, condition in wanted.items()]
    found = checked(engine, verdicts, verdict_checks(verdicts), *more, by=verdicts.text("evaluator"))
    numbers = {str(name): {key: int(found[key][at]) for key in wanted} for at, name in enumerate(found["name"])}
    # One that was only asked again has said nothing that is read.
    return {name: each for name, each in sorted(numbers.items()) if any(each[f"n_{one}"] for one in STATUSES)}


def _names(engine: Engine, claims: Columns, at: int, column: str) -> list[Any]:
    """The distinct values of a column, sorted; kept as the table ``names<at>`` with their places."""
    value = claims.text(column) if column in GROUPED else claims.quoted(column)
    distinct = f"SELECT DISTINCT {value} AS name FROM {claims.relation} AS t WHERE {value} IS NOT NULL"
    if column not in claims.kinds:
        distinct += " AND FALSE"
    numbered = f"SELECT name, ROW_NUMBER() OVER (ORDER BY name) - 1 AS code FROM ({distinct}) AS d"
    engine.keep(f"names{at}", numbered)
    found = engine.query(f"SELECT name FROM names{at} ORDER BY code")["name"]
    return [name.item() if hasattr(name, "item") else name for name in found]


def _code(engine: Engine, claims: Columns, names: dict[str, list[Any]], ids: bool) -> None:
    """Keep ``coded``: claims by their ids with numbers in the place of names, response and cluster."""
    real = f"{claims.lacks('abstained')}" if "abstained" in claims.kinds else "TRUE"
    doc, response = claims.text("doc_id"), claims.text("response_id")
    value = [claims.text(one) if one in GROUPED else claims.quoted(one) for one in names]
    coded = " ".join(f"LEFT JOIN names{at} AS n{at} ON n{at}.name = {value[at]}" for at in range(len(names)))
    code = [f"COALESCE(n{at}.code, {len(each)}) AS g{at}" for at, each in enumerate(names.values())]
    plain = (
        f"SELECT {claims.text('claim_id')} AS claim_id, {', '.join(code)}, {doc} AS doc_id, {response} AS response_id, "
        f"COALESCE({claims.binary('label')}, 2) AS label FROM {claims.relation} AS t {coded} WHERE {real}"
    )

    def numbered(of: str, by: str) -> str:
        """Numbers of rows that rise with names in each dataset, and are no other dataset's."""
        return f"{len(names['dataset'])} * (ROW_NUMBER() OVER (PARTITION BY {of}.g0 ORDER BY {by}) - 1) + {of}.g0"

    each = f"SELECT DISTINCT g0, doc_id FROM ({plain}) AS p WHERE doc_id IS NOT NULL"
    engine.keep("docs", f"SELECT g0, doc_id, {numbered('e', 'e.doc_id')} AS doc FROM ({each}) AS e")
    of_doc = "LEFT JOIN docs AS d ON d.g0 = c.g0 AND d.doc_id = c.doc_id"
    answers = "SELECT c.g0, c.g1, c.response_id, MIN(d.doc) AS low, MAX(d.doc) AS high, COUNT(d.doc) AS n_docs, "
    answers += f"COUNT(*) AS n FROM ({plain}) AS c {of_doc} WHERE c.response_id IS NOT NULL GROUP BY 1, 2, 3"
    order = numbered("a", "a.g1, a.response_id")
    engine.keep("answers", f"SELECT a.*, {order} AS response FROM ({answers}) AS a")
    alone = f"SELECT g0, claim_id FROM ({plain}) AS p WHERE doc_id IS NULL AND response_id IS NULL"
    engine.keep("alone", f"SELECT e.claim_id, {numbered('e', 'e.claim_id')} AS own FROM ({alone}) AS e")
    known = [f"CAST(c.g{at} AS INT) AS g{at}" for at in range(len(names))]
    # A response that names several documents is one cluster (`Judged.clusters`).
    cluster = (
        "CASE WHEN d.doc IS NOT NULL AND (a.response IS NULL OR (a.low = a.high AND a.n_docs = a.n)) THEN d.doc "
        f"WHEN a.response IS NOT NULL THEN {_KIND} + a.response ELSE {2 * _KIND} + o.own END"
    )
    if ids:
        known.append("ROW_NUMBER() OVER (PARTITION BY c.g0 ORDER BY c.claim_id) AS own")
    engine.keep(
        "coded",
        f"SELECT c.claim_id, {', '.join(known)}, CAST(c.label AS SMALLINT) AS label, "
        f"COALESCE(a.response, -1) AS response, {cluster} AS cluster FROM ({plain}) AS c {of_doc} "
        "LEFT JOIN answers AS a ON a.g0 = c.g0 AND a.g1 = c.g1 AND a.response_id = c.response_id "
        "LEFT JOIN alone AS o ON o.claim_id = c.claim_id",
    )


def _join(engine: Engine, claims: Columns, verdicts: Columns, prepared: Prepared, ids: bool) -> None:
    """Keep ``claims``: what is coded of them with what each evaluator said.

    In parts by claim_id, so that what is joined stays in memory: one part reads little of tables that are in the order
    of their claims, and of others the ids.
    """
    kind = claims.kinds["claim_id"]
    alike = kind == verdicts.kinds["claim_id"] and kind in ("text", "whole")
    n_rows = prepared.n_claims + prepared.n_verdicts
    cuts = engine.cuts(f"(SELECT t.claim_id FROM {claims.relation} AS t)", "claim_id", n_rows) if alike else []
    parts = [_between("t.claim_id", low, high) for low, high in zip([None, *cuts], [*cuts, None], strict=True)]
    twice = (
        f"SELECT {claims.text('claim_id')} AS id FROM {claims.relation} AS t WHERE {{}} GROUP BY 1 HAVING COUNT(*) > 1"
    )
    if any(len(engine.query(f"{twice.format(part)} LIMIT 1")["id"]) for part in parts):
        _claims_twice(engine, claims)
    known = [
        *(f"g{at}" for at in range(len(prepared.names))),
        "label",
        "response",
        "cluster",
        *(("claim_id", "own") if ids else ()),
    ]
    said, joined, there = list[str](), list[str](), list[str]()
    for at, name in enumerate(prepared.evaluators):
        mine = f"SELECT claim_id, v, score FROM said WHERE evaluator = {literal(name)}"
        joined.append(f"LEFT JOIN ({mine}) AS e{at} ON e{at}.claim_id = c.claim_id")
        there.append(f"CASE WHEN e{at}.v IS NULL THEN 0 ELSE 1 END")
        said.append(f"CAST(MOD(COALESCE(e{at}.v, 2), 3) AS SMALLINT) AS p{at}")
        if prepared.guessed[at]:  # a guess is 3 + what it says
            said.append(f"CAST(CASE WHEN e{at}.v < 3 THEN e{at}.v ELSE 2 END AS SMALLINT) AS q{at}")
        if prepared.scored[at]:
            said.append(f"COALESCE(e{at}.score, 2) AS s{at}")
    selected = ", ".join([*(f"c.{one}" for one in known), *said, f"CAST({' + '.join(there)} AS SMALLINT) AS n_said"])
    score = f"CAST({verdicts.share()} AS DOUBLE)" if any(prepared.scored) else "NULL"
    of_verdicts = (
        f"SELECT {verdicts.text('claim_id')} AS claim_id, {verdicts.text('evaluator')} AS evaluator, "
        f"{_verdict(verdicts)} AS v, {score} AS score FROM {verdicts.relation} AS t WHERE {is_first(verdicts)} AND "
    )
    coded_id = "CAST(t.claim_id AS BIGINT)" if kind == "whole" else "t.claim_id"
    queries = [
        f"WITH said AS ({of_verdicts}{part}) SELECT {selected} FROM "
        f"(SELECT * FROM coded AS t WHERE {part.replace('t.claim_id', coded_id)}) AS c {' '.join(joined)}"
        for part in parts
    ]
    engine.keep("claims", *queries, order=("g0", "cluster"))
    found = engine.query("SELECT COUNT(*) AS n, SUM(n_said) AS n_said FROM claims")
    n_coded = engine.query("SELECT COUNT(*) AS n FROM coded")["n"][0]
    if found["n"][0] != n_coded or int(found["n_said"][0] or 0) != prepared.n_verdicts:
        _unjoined(engine, claims, verdicts)
    for table in ("coded", "docs", "answers", "alone"):
        engine.drop(table)


def _between(column: str, low: Any, high: Any) -> str:
    ends = [f"{column} {sign} {literal(end)}" for sign, end in ((">=", low), ("<", high)) if end is not None]
    return " AND ".join(ends) or "TRUE"


def _claims_twice(engine: Engine, claims: Columns) -> None:
    sql = f"SELECT {claims.text('claim_id')} AS id, COUNT(*) AS n FROM {claims.relation} AS t GROUP BY 1"
    twice = engine.query(f"{sql} HAVING COUNT(*) > 1 ORDER BY 1 LIMIT 1")
    message = f"expected unique ids, but {twice['id'][0]!r} is there {twice['n'][0]} times"
    raise InputError(claims.name, [Problem(message, column="claim_id")])


def _unjoined(engine: Engine, claims: Columns, verdicts: Columns) -> None:
    """Say which verdict is of no claim, or there twice."""
    real = f" AND {claims.lacks('abstained')}" if "abstained" in claims.kinds else ""
    every = f"SELECT {claims.text('claim_id')} FROM {claims.relation} AS t WHERE t.claim_id IS NOT NULL{real}"
    own = verdicts.text("claim_id")
    sql = (
        f"SELECT MIN({own}) AS id, COUNT(DISTINCT {own}) AS n FROM {verdicts.relation} AS t WHERE {is_first(verdicts)}"
    )
    unknown = engine.query(f"{sql} AND {own} NOT IN ({every})")
    if unknown["n"][0]:
        message = f"expected the id of a claim, but {unknown['id'][0]!r} is none in {claims.name} "
        message += f"({unknown['n'][0]:,} such ids)"
        raise InputError(verdicts.name, [Problem(message, column="claim_id")])
    keys = f"{own} AS id, {verdicts.text('evaluator')} AS name"
    sql = f"SELECT {keys}, COUNT(*) AS n FROM {verdicts.relation} AS t WHERE {is_first(verdicts)} GROUP BY 1, 2"
    twice = engine.query(f"{sql} HAVING COUNT(*) > 1 ORDER BY 1, 2 LIMIT 1")
    n = engine.query(f"SELECT COUNT(*) AS n FROM ({sql} HAVING COUNT(*) > 1) AS d")["n"][0]
    message = f"expected one verdict per claim and evaluator, but {twice['name'][0]!r} has {twice['n'][0]} on "
    raise InputError(verdicts.name, [Problem(f"{message}{twice['id'][0]!r} ({n:,} such claims)", column="claim_id")])


def _verdict(verdicts: Columns) -> str:
    """What is kept of a verdict: its prediction (2: none), and 3 more where it was guessed."""
    said, score, status = verdicts.binary("prediction"), verdicts.share(), status_of(verdicts)
    derived = f"CASE WHEN {score} > {DEFAULT_THRESHOLD} THEN 1 ELSE 0 END"
    plain = f"WHEN {status} <> 'ok' THEN 2 WHEN {score} IS NOT NULL THEN {derived} ELSE 2"
    if said == "NULL":
        return f"CASE {plain} END"
    return f"CASE WHEN {said} IS NOT NULL THEN {said} + CASE WHEN {status} = 'ok' THEN 0 ELSE 3 END {plain} END"
