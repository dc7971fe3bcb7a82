"""Brings tables into the standard form, puts them together and matches them. Raises `InputError`
with all that is wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from factaudit.signature import hash_texts
from factaudit.tables.claim_keys import join_passages_into_document
from factaudit.tables.column_parsing import (
    TEXT_DTYPE,
    infer_column_type,
    make_arrow_text,
    make_empty_text_column,
    parse_binary_column,
    parse_chunk_scores_column,
    parse_grade_column,
    parse_number_column,
    parse_repeat_column,
    parse_score_column,
    parse_text_column,
)
from factaudit.tables.documents import encode_distinct_documents, share_documents
from factaudit.tables.problems import TableProblemCollector, list_table_parts
from factaudit.tables.schema import (
    CLAIM_COLUMNS,
    DEFAULT_THRESHOLD,
    GRADE_COLUMN,
    NAME_COLUMNS,
    POSITIONS_KEY,
    RESERVED_NAMES,
    STATUSES,
    VARIANT_COLUMNS,
    VERDICT_COLUMNS,
    VERDICT_KEY,
    strip_dataset,
)

_REQUIRED_CLAIM_COLUMNS = ("dataset", "claim")
#: What the owner of a table can do about repeated ids.
REPEATED_ID_REMEDY = (
    ": if they are ids of documents, say --columns doc_id=COLUMN; to leave them out, say --ignore"
    " COLUMN"
)
_CLAIM_TEXT_COLUMNS = tuple(
    column for column in CLAIM_COLUMNS if column not in ("label", "abstained")
)
_EXPECTED_VALUES = {
    "label": "expected 1 (attributable), 0 (unattributable) or nothing",
    "abstained": "expected 1 (the response abstained), 0 (it holds no claim) or nothing",
    "prediction": "expected 1, 0 or nothing",
}


def validate_claims(
    table: pd.DataFrame,
    source: str = "claims",
    unit: str = "row",
    has_own_dataset: bool = True,
    remedy: str = "",
) -> pd.DataFrame:
    """Check a table of claims and bring it into the standard form (a new DataFrame, index 0..n-1).

    If ``claim_id`` is missing, `make_claim_ids` makes ids. A data set that is only named after its
    file (not ``has_own_dataset``) is no part of them. LLM-AggreFact's own columns are read as they
    are. remedy: what to do about ids that repeat.
    """
    problems = TableProblemCollector(source, unit, table.attrs.get(POSITIONS_KEY))
    table = _reset_table_row_index(table)
    problems.add_missing_columns(table, _REQUIRED_CLAIM_COLUMNS)
    problems.add_if_empty(table)
    problems.raise_if_any()

    standard: dict[str, Any] = {}
    for column in _CLAIM_TEXT_COLUMNS:
        values = table[column] if column in table else make_empty_text_column(table.index)
        if column == "doc":
            standard[column] = _parse_document_column(values, problems)
        else:
            standard[column] = parse_text_column(values, column, problems)
    for column in ("label", "abstained"):
        standard[column] = parse_binary_column(
            table.get(column), table.index, column, _EXPECTED_VALUES[column], problems
        )
    _report_reserved_name_values(problems, standard)
    lone = standard["abstained"].notna()  # rows that stand for a response without claims
    for column in _REQUIRED_CLAIM_COLUMNS:
        empty = table[column].isna() | (standard[column].str.strip() == "")
        problems.add_where(
            empty & ~lone if column == "claim" else empty, column, "expected text, found none"
        )
    for column in ("claim", "label"):
        wrong = lone & standard[column].notna()
        problems.add_where(
            wrong, column, "expected nothing where abstained is set", standard[column]
        )
    problems.add_where(
        lone & standard["response_id"].isna(), "response_id", "expected text where abstained is set"
    )
    problems.raise_if_any()

    claims = pd.DataFrame({column: standard[column] for column in CLAIM_COLUMNS})
    for column in table.columns:
        if column not in claims:
            claims[column] = infer_column_type(table[column])
    if GRADE_COLUMN in claims:  # numbers in CSV files are text; words stay words
        numbers = parse_number_column(claims[GRADE_COLUMN])
        if (np.isfinite(numbers) | claims[GRADE_COLUMN].isna()).all():
            claims[GRADE_COLUMN] = numbers
    if "claim_id" not in table:
        claims["claim_id"] = make_claim_ids(claims, has_own_dataset)
    else:
        empty = claims["claim_id"].isna() | (claims["claim_id"] == "")
        problems.add_where(empty, "claim_id", "expected an id, found none")
        problems.add_duplicates(claims["claim_id"], "claim_id", "unique ids", remedy)
    problems.raise_if_any()
    return claims


def _parse_document_column(values: pd.Series, problems: TableProblemCollector) -> pd.Series:
    """Documents as texts, with one object for equal texts. Several passages are one document."""
    if pd.api.types.infer_dtype(values, skipna=True) != "string":
        passages = values.map(join_passages_into_document, na_action=None)
        values = parse_text_column(passages, "doc", problems)
    return share_documents(values)


def make_empty_verdicts() -> pd.DataFrame:
    """A table of verdicts without rows, for claims that no evaluator judged."""
    one = pd.DataFrame({"claim_id": ["c"], "evaluator": ["e"], "prediction": [1]})
    return validate_verdicts(one).iloc[:0]


def validate_verdicts(
    table: pd.DataFrame,
    claims: pd.DataFrame | None = None,
    source: str = "verdicts",
    unit: str = "row",
) -> pd.DataFrame:
    """Check a table of verdicts and bring it into the standard form (a new DataFrame, index
    0..n-1).

    A missing prediction is ``score > 0.5`` if there is a score and the status is ok. A missing
    repeat is 0. With ``claims``, it is an error if a verdict is about an unknown claim, or about a
    row that stands for a response without claims. A claim without a verdict is no error: it is
    *unscored* in every audit.
    """
    problems = TableProblemCollector(source, unit, table.attrs.get(POSITIONS_KEY))
    table = _reset_table_row_index(table)
    problems.add_missing_columns(table, ("claim_id", "evaluator"))
    if "score" not in table and "prediction" not in table:
        problems.add("expected a column 'score' or a column 'prediction'")
    problems.add_if_empty(table)
    problems.raise_if_any()

    ids = parse_text_column(table["claim_id"], "claim_id", problems)
    evaluators = parse_text_column(table["evaluator"], "evaluator", problems)
    for column, values in (("claim_id", ids), ("evaluator", evaluators)):
        problems.add_where(
            table[column].isna() | (values == ""), column, "expected text, found none"
        )
    _report_reserved_name_values(problems, {"evaluator": evaluators})
    repeat = parse_repeat_column(table.get("repeat"), table.index, problems)
    score = parse_score_column(table.get("score"), table.index, problems)
    prediction = parse_binary_column(
        table.get("prediction"), table.index, "prediction", _EXPECTED_VALUES["prediction"], problems
    )
    if "status" in table:
        status = parse_text_column(table["status"], "status", problems).fillna("ok")
        problems.add_where(
            ~status.isin(STATUSES),
            "status",
            f"expected one of {', '.join(STATUSES)}",
            table["status"],
        )
    else:
        status = pd.Series("ok", index=table.index, dtype=TEXT_DTYPE)
    problems.raise_if_any()

    derive = prediction.isna() & score.notna() & (status == "ok")
    prediction = prediction.mask(derive, (score > DEFAULT_THRESHOLD).astype("Int8"))
    problems.add_where(
        prediction.isna() & (status == "ok"),
        "prediction",
        "no score and no prediction: expected one of them, or a status of unparsed, refused, error"
        " or skipped",
    )
    verdicts = pd.DataFrame(
        {
            "claim_id": ids,
            "evaluator": evaluators,
            "repeat": repeat,
            "score": score,
            "prediction": prediction,
            "status": status,
            "raw": (
                parse_text_column(table["raw"], "raw", problems)
                if "raw" in table
                else make_empty_text_column(table.index)
            ),
            "chunk_scores": parse_chunk_scores_column(
                table.get("chunk_scores"), table.index, problems
            ),
        }
    )
    if GRADE_COLUMN in table:
        verdicts[GRADE_COLUMN] = parse_grade_column(table[GRADE_COLUMN], problems)
    # Two copies of millions of rows are too many.
    del table, score, prediction, status, evaluators, repeat
    positions = None if claims is None else find_claim_positions(claims, ids)
    _report_duplicate_verdicts(problems, verdicts, positions)
    if claims is not None and positions is not None:
        problems.add_where(
            positions < 0, "claim_id", "expected the id of a claim, but no claim has it", ids
        )
        lone = claims["abstained"].notna().to_numpy()
        if lone.any():
            of_none = (positions >= 0) & lone[positions]
            problems.add_where(
                of_none,
                "claim_id",
                "expected the id of a claim, but it is a response without claims",
                ids,
            )
    problems.raise_if_any()
    return verdicts


def merge_claim_tables(tables: Sequence[pd.DataFrame], sources: Sequence[str] = ()) -> pd.DataFrame:
    """Put validated claims under each other. Raises `InputError` that names the ``sources`` if an
    id repeats."""
    if len(tables) == 1:
        return tables[0]
    claims = pd.concat(tables, ignore_index=True)
    problems = TableProblemCollector("claims", parts=list_table_parts(tables, sources))
    problems.add_duplicates(
        claims["claim_id"], "claim_id", "ids that are unique over all the sources"
    )
    problems.raise_if_any()
    return claims


def merge_verdict_tables(
    tables: Sequence[pd.DataFrame], sources: Sequence[str] = ()
) -> pd.DataFrame:
    """Put validated verdicts under each other. Raises `InputError` if a `VERDICT_KEY` repeats."""
    if len(tables) == 1:
        return tables[0]
    verdicts = pd.concat(tables, ignore_index=True)
    names = [set(table["evaluator"].unique()) for table in tables]
    # otherwise no two tables can have the same key
    if len(set().union(*names)) < sum(map(len, names)):
        problems = TableProblemCollector("verdicts", parts=list_table_parts(tables, sources))
        _report_duplicate_verdicts(problems, verdicts)
        problems.raise_if_any()
    return verdicts


def find_claim_positions(claims: pd.DataFrame, claim_ids: pd.Series) -> np.ndarray:
    """The row number in ``claims`` of each id, -1 if there is none (int64 array of len(ids))."""
    wanted, known = make_arrow_text(claim_ids), make_arrow_text(claims["claim_id"])
    size = len(known)
    # Verdicts are mostly in the order of the claims, one evaluator after the other; comparing is
    # then faster than looking up.
    if (
        size
        and len(wanted) % size == 0
        and all(wanted[at : at + size].equals(known) for at in range(0, len(wanted), size))
    ):
        return np.tile(np.arange(size), len(wanted) // size)
    found = pc.index_in(wanted, value_set=known)
    return np.asarray(pc.fill_null(found, -1).to_numpy(zero_copy_only=False), dtype=np.int64)


def find_claim_variants(claims: pd.DataFrame) -> np.ndarray:
    """bool (n,): the claims that were made of another one in ``claims`` that is no variant
    itself."""
    column = VARIANT_COLUMNS[0]
    if column not in claims or not claims[column].notna().any():
        return np.zeros(len(claims), dtype=bool)
    originals = set(claims["claim_id"][claims[column].isna()])
    return claims[column].isin(originals).to_numpy(dtype=bool)


def make_claim_ids(claims: pd.DataFrame, has_own_dataset: bool = True) -> pd.Series:
    """Stable ids: a hash of (dataset, system, response_id, doc, claim, position among equals), 16
    hex digits.

    has_own_dataset: if False, the data set is named after its file and identifies no claim, so that
    the same claims in another file have the same ids.
    """
    columns = ["dataset", "system", "response_id", "claim"]
    rows = zip(
        *(claims[c].astype(object).where(claims[c].notna(), None) for c in columns), strict=True
    )
    # Documents are long and shared by many claims, so each is hashed once.
    numbers, documents = encode_distinct_documents(claims["doc"])
    hashed = [*(hash_texts(text, length=64) for text in documents), None]
    seen: dict[str, int] = {}
    ids = []
    for (dataset, system, response, claim), number in zip(rows, numbers.tolist(), strict=True):
        if not has_own_dataset:
            claim = strip_dataset(claim)
            dataset = None
        key = hash_texts(dataset, system, response, hashed[number], claim, length=64)
        position = seen.get(key, 0)
        seen[key] = position + 1
        ids.append(hash_texts(key, str(position)))
    return pd.Series(ids, index=claims.index, dtype=TEXT_DTYPE)


def _report_duplicate_verdicts(
    problems: TableProblemCollector,
    verdicts: pd.DataFrame,
    claim_codes: np.ndarray | None = None,
) -> None:
    """Report verdicts with the same key. claim_codes: the number of the claim of each row, if it is
    known."""
    if claim_codes is None or (claim_codes < 0).any():
        claim_codes = pc.dictionary_encode(make_arrow_text(verdicts["claim_id"])).indices.to_numpy(
            zero_copy_only=False
        )
    names = pc.dictionary_encode(make_arrow_text(verdicts["evaluator"]))
    key = claim_codes.astype(np.int64)
    key *= max(1, len(names.dictionary))
    key += names.indices.to_numpy(zero_copy_only=False)
    repeat = verdicts["repeat"].to_numpy()
    most = int(key.max(initial=0))
    # Mostly there are none, which a table of all keys shows at once.
    if not repeat.any() and most < 4 * len(key):
        seen = np.zeros(most + 1, dtype=bool)
        seen[key] = True
        if np.count_nonzero(seen) == len(key):
            return
    both = pd.DataFrame({"key": key, "repeat": repeat}) if repeat.any() else pd.Series(key)

    def said(row: int) -> str:
        claim, evaluator, again = (verdicts[column].iloc[row] for column in VERDICT_KEY)
        of = f" of repeat {again}" if again else ""
        again_hint = "where it was asked again, say which time (--columns repeat=COLUMN)"
        what = (
            f"expected one verdict per claim and evaluator, but {evaluator!r} has another on"
            f" {claim!r}{of}"
        )
        return f"{what}: {again_hint}"

    problems.add_rows(np.flatnonzero(both.duplicated().to_numpy()), "claim_id", said)


def _report_reserved_name_values(
    problems: TableProblemCollector, columns: Mapping[str, pd.Series]
) -> None:
    for column in NAME_COLUMNS:
        if column in columns:
            values = columns[column]
            problems.add_where(
                values.isin(RESERVED_NAMES),
                column,
                "expected another name: results have this one",
                values,
            )


def _reset_table_row_index(table: pd.DataFrame) -> pd.DataFrame:
    """The rows as 0..n-1. An index that is named like one of factaudit's columns becomes that
    column."""
    named = [
        name
        for name in table.index.names
        if name in (*CLAIM_COLUMNS, *VERDICT_COLUMNS) and name not in table
    ]
    table = table.reset_index(level=named) if named else table
    table = table.reset_index(drop=True)
    table.attrs = {}  # pandas copies attrs with every column
    return table
