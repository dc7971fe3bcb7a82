"""LLM-AggreFact: claims of 11 data sets with documents and labels (Tang et al. 2024, MiniCheck).

A source is a file (Parquet, CSV or JSONL) with the columns dataset, doc, claim, label and
contamination_identifier, or ``lytang/LLM-AggreFact`` on the Hugging Face hub. There the benchmark
is gated: you accept its conditions on its page first. It is for evaluation only.

The benchmark does not say which system wrote a claim, nor of which response it is. The data sets
that it was made of do: a join finds a claim there by its text.
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
from factaudit.tables import read_table
from factaudit.tables.reading import combine_claims
from factaudit.text.display_text import format_count

#: The columns that a join fills.
RECOVERED_COLUMNS = ["system", "response_id", "doc_id", "topic", "task"]
#: The formats that can be joined, with the options that give LLM-AggreFact's unit: the sentence, or
#: the summary.
JOINABLE: dict[str, dict[str, Any]] = {
    "tofueval": {},
    "lfqa": {},
    "ragtruth": {"level": "sentence"},
    "predicted": {},
    "reveal": {},
    "claimverify": {},
    "expertqa": {},
}
#: LLM-AggreFact has two data sets of AggreFact's summaries, by where the article is from.
_AGGREFACT_ORIGINS = {"cnndm": "AggreFact-CNN", "xsum": "AggreFact-XSum"}
#: A claim's other text, by which it is found as well (a step within its chain of thought).
_OTHER_TEXT = "claim_as_written"
#: Marks of citations, which releases have and the benchmark may not (``[1]``, ``[^2^]``), and of a
#: text's end.
_MARKS = r"\[\^?\d+\^?\]|</s>"
#: The benchmark's name on the hub.
HUB_REPOSITORY = "lytang/LLM-AggreFact"


def convert_aggrefact(
    sources: Sequence[Path], *, join: JoinsOption = (), split: str | None = None
) -> Conversion:
    """The benchmark's rows as claims; ``join`` (``FORMAT:PATH``) recovers systems and responses.

    ``claim_id`` does not depend on ``join``. ``provenance`` says which revision the hub gave.
    """
    provenance: dict[str, Any] = {}
    files = dict[Path, str | None]()
    for source in sources:
        if source.as_posix() == HUB_REPOSITORY and not source.exists():
            chosen = split or "test"
            downloaded, commit = download_aggrefact_split(chosen)
            files |= dict.fromkeys(downloaded, chosen)
            provenance = {"repository": HUB_REPOSITORY, "split": chosen, "revision": commit}
        else:
            files[source] = split or parse_split_name(source)
    tables = []
    for path, name in files.items():
        table = read_table(path)
        tables.append(table if "split" in table else table.assign(split=name))
    claims = combine_claims(tables, [*map(str, files)])
    claims["task"] = claims["task"].fillna(claims["dataset"].map(find_dataset_task))
    n_datasets = format_count(claims["dataset"].nunique(), "dataset")
    notes = [f"{format_count(len(claims), 'claim')} of {n_datasets}"]
    if provenance:
        notes.append(f"{HUB_REPOSITORY} at revision {provenance['revision']}")
    for name, paths in _parse_joins(join).items():
        original = convert(name, paths, **JOINABLE[name]).claims
        notes.append(f"join {name}: {_fill_from_original(claims, original)}")
    return Conversion(claims, notes=notes, provenance=provenance)


def download_aggrefact_split(split: str) -> tuple[list[Path], str]:
    """The files of a split in the hub's cache, downloaded where they are not there yet, and the
    commit that they are of."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise FactauditError(
            f"{HUB_REPOSITORY} needs the extra [hub]: pip install 'factaudit[hub]'"
        ) from None
    pattern = f"data/{split}-*.parquet"
    try:
        folder = Path(
            snapshot_download(HUB_REPOSITORY, repo_type="dataset", allow_patterns=pattern)
        )
    except Exception as error:
        # Which class a lost connection has depends on the client's version and its HTTP library.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FactauditError(
            f"{HUB_REPOSITORY} could not be read from the hub ({reason}). It is gated: accept its"
            f" conditions at https://huggingface.co/datasets/{HUB_REPOSITORY}, then log in"
            " (`hf auth login`, or HF_TOKEN in the environment)"
        ) from error
    # The hub's cache has a folder for each commit, called as the commit.
    files, commit = sorted(folder.glob(pattern)), folder.name
    if not files:
        raise FactauditError(
            f"{HUB_REPOSITORY} at {commit} has no split {split!r}; it has dev and test"
        )
    return files, commit


# What the benchmark left out
# ------------------------------------------------------------


def _parse_joins(specs: Sequence[str]) -> dict[str, list[Path]]:
    """The files of each data set that is joined, of texts ``FORMAT:PATH``."""
    paths: dict[str, list[Path]] = {}
    for spec in specs:
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
    return paths


def _fill_from_original(claims: pd.DataFrame, original: pd.DataFrame) -> str:
    """Fill `RECOVERED_COLUMNS` of the claims whose text an original data set has; how many matched,
    were ambiguous or did not match, and why.

    Texts match within a data set when they are equal up to white space and marks of citations and
    of the text's end. A claim that several systems wrote is ambiguous and left as it is. Where one
    system wrote it more than once, a column is filled only if all its matches agree on it.
    """
    if "origin" in original:
        original = _take_aggrefact_summaries(original)
    if _OTHER_TEXT in original:
        original = pd.concat(
            [original, original.assign(claim=original[_OTHER_TEXT])], ignore_index=True
        )
    known = _make_keys(original)
    texts = original[[*RECOVERED_COLUMNS, "label"]].groupby(
        [known["dataset"], known["text"]], sort=False
    )
    wanted = _make_keys(claims)
    wanted = wanted[wanted["dataset"].isin(known["dataset"])]
    keys = pd.MultiIndex.from_frame(wanted)
    # For each claim, how many different values its text has in a column, and the first of them.
    n_different = texts.nunique().reindex(keys).set_axis(wanted.index)
    first = texts.first().reindex(keys).set_axis(wanted.index)
    is_matched = n_different["system"] == 1
    for column in RECOVERED_COLUMNS:
        agreed = wanted.index[is_matched & (n_different[column] == 1)]
        claims.loc[agreed, column] = first.loc[agreed, column]
    labelled = wanted.index[is_matched & (n_different["label"] == 1)]
    n_matched, n_ambiguous = int(is_matched.sum()), int((n_different["system"] > 1).sum())
    missing = wanted[n_different["system"].isna()]
    counts: dict[str, int] = {
        "in the release without a system": (n_different["system"] == 0).sum(),
        **dict(sorted(_explain_misses(missing, known).items())),
        "matched several responses of one system (response_id left empty)": (
            is_matched & (n_different["response_id"] > 1)
        ).sum(),
        "of the matched have another label there": (
            claims.loc[labelled, "label"] != first.loc[labelled, "label"]
        ).sum(),
    }
    summary = (
        f"of {format_count(len(wanted), 'claim')}, {n_matched:,} matched, {n_ambiguous:,}"
        " ambiguous (several systems wrote the text),"
        f" {len(wanted) - n_matched - n_ambiguous:,} not matched"
    )
    return "; ".join([summary, *(f"{n:,} {reason}" for reason, n in counts.items() if n)])


def _take_aggrefact_summaries(summaries: pd.DataFrame) -> pd.DataFrame:
    """AggreFact's summaries by the two data sets that LLM-AggreFact has of them; a summary is a
    claim and a response."""
    return summaries.assign(
        dataset=summaries["origin"].str.lower().map(_AGGREFACT_ORIGINS),
        response_id=summaries["doc_id"] + "/" + summaries["system"],
    )


def _explain_misses(missing: pd.DataFrame, known: pd.DataFrame) -> Counter[str]:
    """Why texts of the benchmark were not found in a release: how many for each reason."""
    words = known["text"].map(_keep_words)
    pairs, texts = {*zip(known["dataset"], words, strict=True)}, {*words}
    whole = "\n".join(texts) if len(missing) else ""
    reasons: Counter[str] = Counter()
    for dataset, text in zip(missing["dataset"], missing["text"].map(_keep_words), strict=True):
        if (dataset, text) in pairs:
            reasons["with another case or punctuation there"] += 1
        elif text in texts:
            reasons["there under another data set"] += 1
        elif text and text in whole:
            reasons["within a longer text there"] += 1
        else:
            reasons["not in the files of the release that were given"] += 1
    return reasons


def _make_keys(claims: pd.DataFrame) -> pd.DataFrame:
    """By what a claim is found: its data set, and its text without marks and layout."""
    text = claims["claim"].astype("str").str.replace(_MARKS, " ", regex=True)
    text = text.str.split().str.join(" ").str.replace(r" (?=[.,;:!?])", "", regex=True)
    dataset = claims["dataset"].map(find_whole_aggrefact_dataset, na_action="ignore")
    return pd.DataFrame({"dataset": dataset.astype("str"), "text": text.astype("str")})


def _keep_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
