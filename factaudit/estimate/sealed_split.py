"""Train, dev and test of a judge's development: the test's labels are sealed, and each opening is written down.

`write_sealed_split` writes a claims file whose test claims have no label. Their labels lie beside it, in the folder
``NAME.sealed``, with a ledger: a line for the split, and one for each time that the test was opened. Whoever looks at a
test k times and reports the best of it is too sure of it; so k looks are reported at the level α/k (Bonferroni).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.audit.core.result_rows import Row
from factaudit.errors import InputError, Problem, UsageError
from factaudit.files import HeldFolderError, JsonLinesJournal, hold_folder_lock
from factaudit.signature import hash_texts
from factaudit.stats.document_split import link_claims_of_document_or_response, split_documents
from factaudit.tables import read_table, write_table

SEAL_SCHEMA = "factaudit.sealed_split/1"
SPLITS = ("train", "dev", "test")
DEFAULT_SPLIT_SHARES = (0.2, 0.4, 0.4)
#: Another process that opens the same test is waited for so long.
_MOST_SECONDS_TO_WAIT = 30.0


def find_seal_folder(claims_path: str | Path) -> Path:
    """Where the labels of a claims file's test and the ledger lie: ``claims.parquet.sealed``."""
    path = Path(claims_path)
    return path.with_name(f"{path.name}.sealed")


def assign_claim_splits(
    claims: pd.DataFrame, shares: Sequence[float] = DEFAULT_SPLIT_SHARES, seed: int = 0
) -> pd.Series:
    """``train``, ``dev`` or ``test`` for each claim of a table, whole documents (and responses) together.

    Each split has about its share of the claims of every dataset, system and label. Raises `UsageError` where a split
    would be without labelled claims of both kinds.
    """
    if len(shares) != len(SPLITS) or min(shares) <= 0 or not math.isclose(sum(shares), 1, abs_tol=1e-6):
        raise UsageError(f"expected three shares above 0 with sum 1 (of {', '.join(SPLITS)}), found {list(shares)}")
    keys = pd.Series([f"claim {one}" for one in claims["claim_id"]], index=claims.index)
    document = claims["doc_id"].astype(object).fillna(claims["doc"].astype(object)).fillna(keys)
    response = claims["dataset"].astype(str) + "\x1f" + claims["response_id"].astype(object).fillna(keys).astype(str)
    linked = link_claims_of_document_or_response(pd.factorize(document.astype(str))[0], pd.factorize(response)[0])
    # A claim without a system or a label is of a kind, too.
    kind = claims.groupby(["dataset", "system", "label"], sort=False, dropna=False).ngroup().to_numpy()
    part = split_documents(linked, kind, shares, np.random.default_rng(seed))
    for number, name in enumerate(SPLITS):
        labels = claims["label"][part == number]
        if not ((labels == 1).any() and (labels == 0).any()):
            lacking = "error" if (labels == 1).any() else "correct claim"
            raise UsageError(
                f"the split {name!r} would have no labelled {lacking}: label more, or ask for other shares"
            )
    return pd.Series(np.array(SPLITS)[part], index=claims.index, dtype="string")


def write_sealed_split(
    claims: pd.DataFrame, path: str | Path, shares: Sequence[float] = DEFAULT_SPLIT_SHARES, seed: int = 0
) -> pd.DataFrame:
    """Write a claims file with its splits, the test without labels, and the seal beside it. Returns what was written.

    Raises `UsageError` where the file has a seal already: a second split would forget how often the test was opened.
    """
    folder = find_seal_folder(path)
    split = assign_claim_splits(claims, shares, seed)
    is_test = (split == "test").to_numpy()
    labels = claims.loc[is_test, ["claim_id", "label"]].sort_values("claim_id", ignore_index=True)
    sealed = claims.assign(split=split, label=claims["label"].mask(is_test))
    header: Row = {"schema": SEAL_SCHEMA, "at": _format_time_now(), "seed": seed, "shares": list(shares)}
    header |= {"n_claims": split.value_counts().to_dict(), "labels": _compute_sealed_labels_checksum(labels)}
    with hold_folder_lock(folder, str(folder)):
        ledger = folder / "ledger.jsonl"
        is_sealed = ledger.exists() and b"\n" in ledger.read_bytes()
        # The same split once more changes nothing, and its looks stay counted.
        if is_sealed and any(
            _read_seal_ledger(folder)[0].get(key) != header[key] for key in ("labels", "seed", "shares")
        ):
            raise UsageError(f"{folder}: {path} has a sealed test already; give another name, or delete both")
        write_table(labels, folder / "labels.parquet")
        write_table(sealed, path)
        # Last, since a ledger seals: until it is there the same command goes on.
        with JsonLinesJournal(ledger, lambda row: None, header):
            pass
    return sealed


def open_sealed_test_split(
    claims: pd.DataFrame, path: str | Path, about: Mapping[str, object]
) -> tuple[pd.DataFrame, int]:
    """The claims of the test with their labels, and how often it has been opened, this time included.

    claims: the table of the file at ``path``, or its test; about: what the ledger keeps of this look, beside the time.
    Opening is counted before a label is returned, and two processes never count as one. Raises `UsageError` where the
    file has no seal, `InputError` where the seal or the claims are not as they were written.
    """
    folder = find_seal_folder(path)
    if not folder.is_dir():
        raise UsageError(f"{path} has no sealed test: `factaudit sample {path} --split --out NEW.parquet` makes one")
    with _wait_for_folder_lock(folder):
        header, looks = _read_seal_ledger(folder)
        labels = read_table(folder / "labels.parquet")
        if _compute_sealed_labels_checksum(labels) != header["labels"]:
            raise InputError(str(folder), [Problem("the labels are not those that were sealed")])
        test = claims[(claims["split"] == "test").fillna(False)].reset_index(drop=True)
        if set(test["claim_id"]) != set(labels["claim_id"]):
            raise InputError(str(path), [Problem("its test has other claims than were sealed")])
        with JsonLinesJournal(folder / "ledger.jsonl", lambda row: None) as ledger:
            ledger.write_row({"look": len(looks) + 1, "at": _format_time_now(), **about})
    label = labels.set_index("claim_id")["label"].reindex(test["claim_id"]).astype("Int8")
    return test.assign(label=label.to_numpy()), len(looks) + 1


def count_test_looks(path: str | Path) -> int | None:
    """How often the test of a claims file has been opened; None where it has no seal."""
    folder = find_seal_folder(path)
    return len(_read_seal_ledger(folder)[1]) if folder.is_dir() else None


def _read_seal_ledger(folder: Path) -> tuple[Row, list[str]]:
    """Its first row, and a line per look. A line without an end is of a process that was killed before it saw a label;
    a line that is damaged counts as a look.
    """
    path = folder / "ledger.jsonl"
    try:
        header, *looks = path.read_text(encoding="utf-8").split("\n")[:-1]
        first = json.loads(header)
        if first["schema"] != SEAL_SCHEMA or "labels" not in first:
            raise ValueError
    except (OSError, ValueError, TypeError, KeyError):
        message = "the ledger is missing or damaged: nobody can say how often the test was opened"
        raise InputError(str(path), [Problem(message)]) from None
    return first, looks


def _compute_sealed_labels_checksum(labels: pd.DataFrame) -> str:
    # Label None where a claim of the test has none.
    rows = zip(
        labels["claim_id"].astype(str), labels["label"].astype(object).where(labels["label"].notna(), None), strict=True
    )
    return hash_texts(json.dumps([[name, None if label is None else int(label)] for name, label in rows]), length=64)


def _format_time_now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _wait_for_folder_lock(folder: Path) -> Iterator[None]:
    until = time.monotonic() + _MOST_SECONDS_TO_WAIT
    with ExitStack() as held:
        while True:
            try:
                held.enter_context(hold_folder_lock(folder, str(folder)))
                break
            except HeldFolderError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.02)
        yield
