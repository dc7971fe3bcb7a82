"""The columns of the tables, and the file formats that hold them."""

from __future__ import annotations

import re
from pathlib import Path

from factaudit.errors import InputError, Problem

#: Columns of the claims table, in order. All but `label` and `abstained` hold text; extra columns
#: are kept as they are. `abstained` is set (1, or 0 where the response answered) on a row that
#: stands for a response without any claim: such a row has no claim, no label and no verdict, and
#: only what counts responses reads it.
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
#: Of a claim that was made of another one by changing one thing: the claim_id of that one, what was
#: changed, and what
#: its verdict should be: the ``same``, or ``changed`` to unattributable.
VARIANT_COLUMNS = ("variant_of", "kind", "expected")
#: Optional, in claims (what people gave) and in verdicts (what the evaluator gave): a grade on the
#: source's own scale, the higher the more support. Verdicts have numbers; claims and annotations
#: may have words. No label is made of it.
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
#: What tells verdicts apart. `repeat` counts from 0 how often the same evaluator was asked before;
#: most audits read 0.
VERDICT_KEY = ("claim_id", "evaluator", "repeat")
#: What became of a verdict. Without a prediction, anything but "ok".
STATUSES = ("ok", "unparsed", "refused", "error", "skipped")
#: A score above this (strictly) is prediction 1, where no prediction is given.
DEFAULT_THRESHOLD = 0.5
#: What results call sums over data sets, systems and calibrations; in data they would be taken for
#: these.
RESERVED_NAMES = ("__macro__", "__all__", "__cv__")
#: The columns whose values become names in results.
NAME_COLUMNS = ("dataset", "task", "system", "group", "evaluator")
TABLE_SUFFIXES = (".parquet", ".jsonl", ".jsonl.gz", ".csv", ".csv.gz")
#: In the ``attrs`` of a table that was read: the line of each row, where blank lines stand between
#: them.
POSITIONS_KEY = "positions"
#: Where a table of a tool's log says which columns are evaluators': their `EvaluatorColumnMapping`
#: by name.
EVALUATORS_KEY = "evaluators"


def parse_table_suffix(path: str | Path) -> str:
    """The format that a table's file name says: one of .parquet, .jsonl, .jsonl.gz, .csv, .csv.gz,
    else `InputError`.

    Writers can ask before there is anything to write.
    """
    name = Path(path).name.lower()
    for known in TABLE_SUFFIXES:
        if name.endswith(known):
            return known
    raise InputError(
        str(path), [Problem(f"expected a name that ends in {', '.join(TABLE_SUFFIXES)}")]
    )


def make_text_placeholder(dataset: str, row_number: int) -> str:
    """Stands for a claim whose text the source does not have; ``row_number`` counts from 1."""
    return f"(no text: row {row_number} of {dataset})"


def is_text_placeholder(text: str) -> bool:
    """Whether a claim's text only stands for one that the source does not have.

    >>> is_text_placeholder(make_text_placeholder("mine", 3)), is_text_placeholder("(no text)")
    (True, False)
    """
    return re.fullmatch(r"\(no text: row \d+ of .*\)", text, re.DOTALL) is not None


def strip_dataset(text: str | None) -> str | None:
    """A placeholder without the data set that it names; another text as it is."""
    return text.partition(" of ")[0] if text is not None and is_text_placeholder(text) else text


def name_row_unit(path: str | Path) -> str:
    """What a message calls a row of the file: ``line`` or ``row``."""
    return "line" if ".jsonl" in Path(path).name.lower() else "row"
