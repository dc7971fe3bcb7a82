"""The columns of the tables, and the formats of the files that hold them."""

from __future__ import annotations

import re
from pathlib import Path

from factaudit.errors import InputError, Problem

#: Columns of the claims table, in order. All but `label` and `abstained` hold text; extra columns
#: are kept as they are. `abstained` is set on a row that stands for a response without claims: 1,
#: or 0 if the response did answer. Such a row has no claim, no label and no verdict, and is only
#: used where responses are counted.
CLAIM_COLUMNS = (
    "claim_id",
    "dataset",
    "task",
    "system",
    "response_id",
    "doc_id",
    "topic",
    "group",
    "entity",
    "fact_id",
    "split",
    "claim",
    "doc",
    "label",
    "abstained",
)
#: Columns of a claim that was made from another one by changing one thing: the claim_id of that
#: one, what was changed, and whether its verdict should be the ``same`` or ``changed`` to
#: unattributable.
VARIANT_COLUMNS = ("variant_of", "kind", "expected")
#: An optional grade on the source's own scale, by people (in claims) or by the evaluator (in
#: verdicts). A higher grade means more support. Verdicts have numbers; claims and annotations may
#: have words. Grades do not change labels.
GRADE_COLUMN = "grade"
#: Columns of the verdicts table, in order.
VERDICT_COLUMNS = (
    "claim_id",
    "evaluator",
    "repeat",
    "score",
    "prediction",
    "status",
    "raw",
    "chunk_scores",
)
#: The key of a verdict. `repeat` counts from 0 how often the same evaluator was asked before; most
#: audits only use 0.
VERDICT_KEY = ("claim_id", "evaluator", "repeat")
#: The outcome of a verdict. Without a prediction it is not "ok".
STATUSES = ("ok", "unparsed", "refused", "error", "skipped")
#: A score strictly above this is prediction 1, unless a prediction is given.
DEFAULT_THRESHOLD = 0.5
#: Names of totals over data sets, systems and calibrations in results. Data must not use them.
RESERVED_NAMES = ("__macro__", "__all__", "__cv__")
#: Columns whose values become names in results.
NAME_COLUMNS = ("dataset", "task", "system", "group", "evaluator")
TABLE_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".csv", ".csv.gz")
#: Key in the ``attrs`` of a table that was read: the line of each row, if there are blank lines.
POSITIONS_KEY = "positions"
#: Key in the ``attrs`` of a log's table: the `EvaluatorColumnMapping` of each evaluator, by name.
EVALUATORS_KEY = "evaluators"


def parse_table_suffix(path: str | Path) -> str:
    """The format in a file's name: .parquet, .jsonl, .jsonl.gz, .csv or .csv.gz. Raises
    `InputError` for others.

    Writers can check a name before there is anything to write.
    """
    name = Path(path).name.lower()
    for known in TABLE_SUFFIXES:
        if name.endswith(known):
            return known
    raise InputError(
        str(path), [Problem(f"expected a name that ends in {', '.join(TABLE_SUFFIXES)}")]
    )


def make_text_placeholder(dataset: str, row_number: int) -> str:
    """The text of a claim that has none in the source. ``row_number`` counts from 1."""
    return f"(no text: row {row_number} of {dataset})"


def is_text_placeholder(text: str) -> bool:
    """Whether the text of a claim only stands for a missing one.

    >>> is_text_placeholder(make_text_placeholder("mine", 3)), is_text_placeholder("(no text)")
    (True, False)
    """
    return re.fullmatch(r"\(no text: row \d+ of .*\)", text, re.DOTALL) is not None


def strip_dataset(text: str | None) -> str | None:
    """A placeholder without its data set; other texts unchanged."""
    return text.partition(" of ")[0] if text is not None and is_text_placeholder(text) else text


def name_row_unit(path: str | Path) -> str:
    """The word for a row of the file in messages: ``line`` or ``row``."""
    return "line" if ".jsonl" in Path(path).name.lower() else "row"
