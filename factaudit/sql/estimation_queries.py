"""One dataset's claims or responses, whole, from an engine: what error rates are estimated of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factaudit.arrays.estimation_units import EstimationUnits
from factaudit.errors import FactauditError, UsageError
from factaudit.sql.sql_engine import SqlEngine, quote_sql_literal
from factaudit.sql.table_join import SqlJoinSummary

#: The most numbers (of 8 bytes) that the scores of one dataset, and what is computed of them, may come to.
_MAX_UNIT_NUMBERS = 80_000_000
#: Labels that one statement holds.
_LABELS_PER_STATEMENT = 500


def store_annotated_labels_in_sql(sql_engine: SqlEngine, labels: Mapping[str, int | None]) -> None:
    """Keep ``labels``: claim_id and label (2: none). Raises `UsageError` for a claim that is not there."""
    rows = [
        f"SELECT {quote_sql_literal(name)} AS claim_id, {2 if value is None else int(value)} AS label"
        for name, value in labels.items()
    ]
    parts = [
        " UNION ALL ".join(rows[at : at + _LABELS_PER_STATEMENT]) for at in range(0, len(rows), _LABELS_PER_STATEMENT)
    ]
    sql_engine.store_table("labels", *(parts or ["SELECT '' AS claim_id, 2 AS label WHERE FALSE"]))
    sql = "FROM labels AS l LEFT JOIN claims AS c ON c.claim_id = l.claim_id WHERE c.claim_id IS NULL"
    unknown = sql_engine.query(f"SELECT COUNT(*) AS n, MIN(l.claim_id) AS id {sql}")
    if unknown["n"][0]:
        raise UsageError(f"{unknown['n'][0]} annotated claims are not in the claims table ({unknown['id'][0]!r})")


def query_sql_estimation_units(
    sql_engine: SqlEngine,
    join_summary: SqlJoinSummary,
    dataset: str,
    level: str,
    evaluators: Sequence[int],
    strata: Sequence[str],
    has_annotated_labels: bool,
) -> EstimationUnits:
    """`factaudit.arrays.estimation_units.EstimationUnitsInDatabase.units` of the table ``claims``."""
    known, scored = join_summary.column_values, join_summary.has_scores
    of = f"FROM claims AS c WHERE c.g0 = {known['dataset'].index(dataset)}"
    if level == "response":
        of += " AND c.response >= 0"
    lone = len(known["system"])
    sizes = sql_engine.query(f"SELECT c.g1, COUNT(*) AS n, COUNT(DISTINCT c.response) AS n_responses {of} GROUP BY 1")
    without = sizes["g1"] == lone
    named = bool((~without).any())
    size = int(sizes["n" if level == "claim" else "n_responses"].sum())
    per_unit = 3 * len(evaluators) + 10
    if size * per_unit > _MAX_UNIT_NUMBERS:
        raise FactauditError(
            f"{size:,} {level}s of {dataset} under {len(evaluators)} evaluators are too many to estimate from in "
            f"memory (more than {_MAX_UNIT_NUMBERS // per_unit:,}): name fewer covariates, or estimate from a part"
        )
    left_out = int(sizes["n"][without].sum()) if named else 0
    if level == "response":
        all_claims = f"SELECT COUNT(*) AS n {of.replace(' AND c.response >= 0', ' AND c.response < 0')}"
        left_out = int(sql_engine.query(all_claims)["n"][0])
    code = "0"
    for column in strata:
        if column in known:
            code = f"{len(known[column]) + 1} * ({code}) + c.g{list(known).index(column)}"
    label = "COALESCE(l.label, 2)" if has_annotated_labels else "c.label"
    if has_annotated_labels:
        of = of.replace("FROM claims AS c", "FROM claims AS c LEFT JOIN labels AS l ON l.claim_id = c.claim_id")
    of += f" AND c.g1 < {lone}" if named else ""
    places = range(len(evaluators))
    score = [f"c.s{e}" if scored[e] else "2" for e in evaluators]
    if level == "claim":
        told = ["c.g1 AS system", "c.response AS response", "c.cluster AS cluster", f"{label} AS label"]
        told += [f"{code} AS stratum", "0 AS partial", *(f"c.p{e} AS p{at}" for at, e in enumerate(evaluators))]
        sql = f"SELECT {', '.join([*told, *(f'{one} AS s{at}' for at, one in enumerate(score))])} {of} ORDER BY c.own"
    else:
        labelled = f"CASE WHEN {label} < 2 THEN 1 ELSE 0 END"
        told = ["MIN(c.g1) AS system", "c.response AS response", "MIN(c.cluster) AS cluster"]
        told += [f"MOD(2 * MIN(MOD(2 * {label}, 3)), 3) AS label"]
        told += [f"CASE WHEN MIN({code}) = MAX({code}) THEN MIN({code}) ELSE -1 END AS stratum"]
        told += [f"CASE WHEN MIN({labelled}) < MAX({labelled}) THEN 1 ELSE 0 END AS partial"]
        told += [f"MOD(2 * MIN(MOD(2 * c.p{e}, 3)), 3) AS p{at}" for at, e in enumerate(evaluators)]
        told += [f"CASE WHEN MAX({one}) > 1 THEN 2 ELSE MIN({one}) END AS s{at}" for at, one in enumerate(score)]
        sql = f"SELECT {', '.join(told)} {of} GROUP BY c.response ORDER BY c.response"
    found = sql_engine.query(sql)
    system, place = np.unique(found.pop("system"), return_inverse=True)
    partial = found.pop("partial") > 0
    label_of = found.pop("label")
    said, scores = np.empty((len(places), len(place)), dtype=np.int8), np.empty((len(places), len(place)))
    for at in places:
        said[at], scores[at] = found.pop(f"p{at}"), found.pop(f"s{at}")
    scores[scores > 1] = np.nan
    return EstimationUnits(
        systems=tuple(known["system"][at] for at in system) if named else (None,),
        system=place,
        score=scores,
        prediction=np.where(said > 1, -1, said).astype(np.int8),
        label=np.where((label_of > 1) | partial, -1, label_of).astype(np.int8),
        cluster=found["cluster"],
        response=found["response"],
        stratum=found["stratum"].astype(np.int64) if strata else None,
        n_left_out=left_out,
        n_partial=int(partial.sum()),
    )
