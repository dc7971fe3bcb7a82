"""LLM-AggreFact: claims of 11 datasets with documents and labels (Tang et al. 2024, MiniCheck).

Files: its Parquet, CSV or JSONL with the columns dataset, doc, claim, label,
contamination_identifier; or the source ``lytang/LLM-AggreFact``, from the Hugging Face hub. The
benchmark is for evaluation only, and gated: its conditions are to be accepted on its page. What it
left out (system, response) is recovered from the data sets that it was made of, by claim text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.datasets.aggrefact_subsets import find_dataset_task, find_whole_aggrefact_dataset
from factaudit.datasets.conversion import Conversion, convert
from factaudit.datasets.source_files import JoinsOption, parse_split_name
from factaudit.errors import FactauditError, UsageError, suggest_known_name
from factaudit.tables import CLAIM_COLUMNS, read_table
from factaudit.tables.column_profiles import find_judged_columns
from factaudit.tables.reading import combine_claims
from factaudit.tables.unreadable_rows import leave_out_columns_of_judgements
from factaudit.text.display_text import format_count

#: What a match fills in.
RECOVERED_COLUMNS = ["system", "response_id", "doc_id", "topic", "task"]
#: The formats that can be joined, with the options that give LLM-AggreFact's unit: the sentence, or
#: the summary.
JOINABLE: dict[str, dict[str, Any]] = {
    "tofueval": {},
    "lfqa": {},
    "ragtruth": {"level": "sentence"},
    "predicted": {"datasets": "origin"},
    "reveal": {},
    "claimverify": {},
    "expertqa": {},
}
#: A claim's other text, by which it is found as well (a step within its chain of thought).
_OTHER_TEXT = "claim_as_written"
#: Marks of citations, which releases have and the benchmark may not (``[1]``, ``[^2^]``), and of a
#: text's end.
_MARKS = r"\[\^?\d+\^?\]|</s>"
#: The benchmark's name on the hub.
HUB_REPOSITORY = "lytang/LLM-AggreFact"


def convert_aggrefact(
    sources: Sequence[Path],
    *,
    join: JoinsOption = (),
    split: str | None = None,
    revision: str | None = None,
) -> Conversion:
    """The benchmark's rows as claims, tasks from the registry; ``join`` recovers systems and
    responses.

    ``claim_id`` does not depend on ``join``. ``provenance`` has the hub's resolved revision.
    """
    provenance: dict[str, Any] = {}
    files: list[tuple[Path, str | None]] = []
    for source in sources:
        if source.as_posix() == HUB_REPOSITORY and not source.exists():
            chosen = split or "test"
            downloaded, commit = download_aggrefact_split(chosen, revision)
            files += [(path, chosen) for path in downloaded]
            provenance = {"repository": HUB_REPOSITORY, "split": chosen, "revision": commit}
        else:
            files.append((source, split or parse_split_name(source)))
    if revision is not None and not provenance:
        raise UsageError(
            f"option 'revision' is for the source {HUB_REPOSITORY}; files have no revision"
        )
    tables = []
    for path, name in files:
        table = read_table(path)
        further = {
            str(column): table[column].tolist()
            for column in table.columns
            if column not in CLAIM_COLUMNS
        }
        leave_out_columns_of_judgements(path, [*find_judged_columns(further)])
        tables.append(table if "split" in table else table.assign(split=name))
    claims = combine_claims(tables, [str(path) for path, _ in files])
    claims["task"] = claims["task"].fillna(claims["dataset"].map(find_dataset_task))
    notes = [
        f"{format_count(len(claims), 'claim')} of"
        f" {format_count(claims['dataset'].nunique(), 'dataset')}"
    ]
    if provenance:
        notes.append(f"{HUB_REPOSITORY} at revision {provenance['revision']}")
    if join:
        claims, joined = join_original_datasets(claims, join)
        notes += joined
    return Conversion(claims, notes=notes, provenance=provenance)


def download_aggrefact_split(split: str, revision: str | None) -> tuple[list[Path], str]:
    """The files of a split in the hub's cache, downloaded where they are not there yet, and the
    commit they are of."""
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import GatedRepoError
    except ImportError:
        raise FactauditError(
            f"{HUB_REPOSITORY} needs the extra [hub]: pip install 'factaudit[hub]'"
        ) from None
    pattern = f"data/{split}-*.parquet"
    try:
        folder = snapshot_download(
            HUB_REPOSITORY, repo_type="dataset", revision=revision, allow_patterns=pattern
        )
    except GatedRepoError:
        raise FactauditError(
            f"{HUB_REPOSITORY} is gated: accept its conditions at"
            f" https://huggingface.co/datasets/{HUB_REPOSITORY}, then log in (`hf auth login`, or"
            " HF_TOKEN in the environment)"
        ) from None
    except Exception as error:
        # Which class a lost connection has depends on the client's version and its HTTP library.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FactauditError(
            f"{HUB_REPOSITORY} could not be read from the hub ({reason})"
        ) from error
    files = sorted(Path(folder).glob(pattern))
    # The hub's cache has a folder for each commit.
    commit = Path(folder).name
    if not files:
        raise FactauditError(
            f"{HUB_REPOSITORY} at {commit} has no split {split!r}; it has dev and test"
        )
    return files, commit


# What the benchmark left out
# ------------------------------------------------------------


def join_original_datasets(
    claims: pd.DataFrame, join_specs: Sequence[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Fill `RECOVERED_COLUMNS` of claims whose text is found in an original data set;
    ``join_specs`` are ``FORMAT:PATH``.

    Texts match within a dataset when they are equal up to white space and marks of citations and of
    the text's end. A claim that sentences of different systems match is ambiguous and left as it
    is. Where one system wrote the sentence more than once, a field is filled only if all its
    matches agree on it. ``claim_id`` stays. Returns the claims and, per format, a note of how many
    matched, were ambiguous, or did not match, and why.
    """
    paths: dict[str, list[Path]] = {}
    for spec in join_specs:
        name, _, path = spec.partition(":")
        if not path:
            raise UsageError(
                f"join {spec!r}: expected FORMAT:PATH, such as tofueval:factual_consistency/"
            )
        if name not in JOINABLE:
            raise UsageError(
                f"join {spec!r}: unknown format {name!r}{suggest_known_name(name, list(JOINABLE))}"
            )
        paths.setdefault(name, []).append(Path(path))
    claims = claims.copy()
    notes = []
    for name, sources in paths.items():
        original = convert(name, sources, **JOINABLE[name]).claims
        notes.append(f"join {name}: {_fill_from_original(claims, original)}")
    return claims, notes


def _fill_from_original(claims: pd.DataFrame, original: pd.DataFrame) -> str:
    """Fill the claims that an original data set has, and say how many they are."""
    if _OTHER_TEXT in original:
        original = pd.concat(
            [original, original.assign(claim=original[_OTHER_TEXT])], ignore_index=True
        )
    known = _make_keys(original)
    groups = original[[*RECOVERED_COLUMNS, "label"]].groupby(known, sort=False)
    n_different, first = groups.nunique(), groups.first()
    wanted = _make_keys(claims)
    wanted = wanted[wanted.map(_find_dataset).isin({*known.map(_find_dataset)})]
    found = wanted[wanted.isin(first.index)]
    n_systems = found.map(n_different["system"])
    matched = found[n_systems == 1]
    for column in RECOVERED_COLUMNS:
        agreed = matched[matched.map(n_different[column]) == 1]
        claims.loc[agreed.index, column] = agreed.map(first[column])
    labelled = matched[matched.map(n_different["label"]) == 1]
    has_other_label = claims.loc[labelled.index, "label"] != labelled.map(first["label"])
    n_ambiguous = int((n_systems > 1).sum())
    counts: dict[str, int] = {
        "in the release without a system": (n_systems == 0).sum(),
        **dict(sorted(_explain_misses(wanted.drop(found.index), known).items())),
        "matched several responses of one system (response_id left empty)": (
            matched.map(n_different["response_id"]) > 1
        ).sum(),
        "of the matched have another label there": has_other_label.sum(),
    }
    summary = (
        f"of {format_count(len(wanted), 'claim')}, {len(matched):,} matched, {n_ambiguous:,}"
        " ambiguous (several systems wrote the text),"
        f" {len(wanted) - len(matched) - n_ambiguous:,} not matched"
    )
    return "; ".join([summary, *(f"{n:,} {reason}" for reason, n in counts.items() if n)])


def _explain_misses(missing: pd.Series, known: pd.Series) -> Counter[str]:
    """Why texts of the benchmark were not found in a release: how many for each reason."""
    keys, texts = {*known.map(_keep_words)}, {*known.map(_find_text).map(_keep_words)}
    whole = "\n".join(texts) if len(missing) else ""
    reasons: Counter[str] = Counter()
    for key in missing:
        text = _keep_words(_find_text(key))
        if _keep_words(key) in keys:
            reasons["with another case or punctuation there"] += 1
        elif text in texts:
            reasons["there under another data set"] += 1
        elif text and text in whole:
            reasons["within a longer text there"] += 1
        else:
            reasons["not in the files of the release that were given"] += 1
    return reasons


def _make_keys(claims: pd.DataFrame) -> pd.Series:
    """By what a claim is found: the data set, and its text without marks and layout."""
    text = (
        claims["claim"].astype("str").str.replace(_MARKS, " ", regex=True).str.split().str.join(" ")
    )
    text = text.str.replace(r" (?=[.,;:!?])", "", regex=True)
    return (
        claims["dataset"].map(find_whole_aggrefact_dataset).astype("str")
        + "\x1f"
        + text.astype("str")
    )


def _find_dataset(key: str) -> str:
    return key.partition("\x1f")[0]


def _find_text(key: str) -> str:
    return key.partition("\x1f")[2]


def _keep_words(text: str) -> str:
    return " ".join(re.findall(r"\w+|\x1f", text.lower()))
