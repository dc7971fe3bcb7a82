"""Claims, labels and judgements in files of their own (those that are simply joined:
several.jsonl)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from audit_tables import load_input_tables
from town_tables import CLAIMS, DOCS, FIRST_SCORES, SECOND_SCORES, L, N, make_csv

from factaudit import InputError, UsageError, compare

IDS = [f"q{i}" for i in range(N)]
TEXTS = {"id": IDS, "claim": CLAIMS, "context": DOCS}
CLAIMS_TABLE = {**TEXTS, "human_label": [int(digit) for digit in L]}
LABELLED_CLAIMS = {
    "claim_id": IDS,
    "claim": CLAIMS,
    "label": [int(digit) for digit in L],
}
OTHER = "1001011001"
#: A file for each annotator.
BY_ANNOTATOR = {
    "claims.csv": TEXTS,
    **{
        f"ann_{name}.csv": {"id": IDS, "label": [*map(int, said)]}
        for name, said in (("eve", L), ("bob", OTHER), ("zoe", L))
    },
}


def write_files(folder: Path, files: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[Path]:
    for name, columns in files.items():
        (folder / name).write_bytes(make_csv(columns))
    return [folder / name for name in files]


def test_each_annotators_file_keeps_its_labels(tmp_path):
    """All were one person called "label", whose last word counted."""
    loaded = load_input_tables(write_files(tmp_path, BY_ANNOTATOR))
    assert loaded.annotations is not None
    said = loaded.annotations.pivot(index="claim_id", columns="annotator", values="label").loc[IDS]
    assert said["ann_bob"].astype(str).str.cat() == OTHER
    assert said["ann_eve"].astype(str).str.cat() == L


def test_a_copy_is_no_second_annotator_and_no_second_verdict(tmp_path):
    judged = {**CLAIMS_TABLE, "gpt4_score": FIRST_SCORES}
    files = {"first.csv": judged, "second.csv": {**judged, "claude_score": SECOND_SCORES}}
    loaded = load_input_tables(write_files(tmp_path, files))
    assert loaded.annotations is None
    assert loaded.verdicts is not None
    assert loaded.verdicts["evaluator"].value_counts().to_dict() == {"gpt4": N, "claude": N}
    copies = {"claims.csv": CLAIMS_TABLE, "copy.csv": CLAIMS_TABLE, "gpt4.csv": judged}
    assert load_input_tables(write_files(tmp_path, copies)).annotations is None


def test_annotators_whose_files_have_one_name_are_told_apart(tmp_path):
    paths = write_files(tmp_path, {"claims.csv": TEXTS})
    for folder, said in (("eve", L), ("bob", OTHER)):
        (tmp_path / folder).mkdir()
        files = {"labels.csv": {"id": IDS, "label": [*map(int, said)]}}
        paths += write_files(tmp_path / folder, files)
    loaded = load_input_tables(paths)
    assert loaded.annotations is not None
    assert loaded.annotations["annotator"].nunique() == 2


def test_texts_are_claims_where_the_user_says_so(tmp_path):
    """Without that word they are taken for documents."""
    claims = {"doc_id": IDS, "text": CLAIMS}
    scores = {"doc_id": IDS, "gpt4_score": FIRST_SCORES, "label": [*map(int, L)]}
    paths = write_files(tmp_path, {"claims.csv": claims, "scores.csv": scores})
    with pytest.raises(InputError, match="it holds documents and no claims"):
        load_input_tables(paths)
    loaded = load_input_tables(paths, mapping={"columns": {"claim": "text", "claim_id": "doc_id"}})
    assert loaded.claims is not None
    assert loaded.claims["claim"].tolist() == CLAIMS


def test_verdicts_without_a_first_repeat_are_refused():
    claims = pd.DataFrame({**LABELLED_CLAIMS, "dataset": "towns"})
    rows = {"claim_id": IDS, "evaluator": "gpt4", "score": FIRST_SCORES, "repeat": 1}
    with pytest.raises(UsageError, match="no verdict of gpt4 has repeat 0"):
        compare(claims, pd.DataFrame(rows))


def test_labels_of_two_files_that_differ_are_refused_and_can_be_chosen(tmp_path):
    scores = {"id": IDS, "gpt4_score": FIRST_SCORES, "gold": [1 - int(L[0]), *map(int, L[1:])]}
    paths = write_files(tmp_path, {"claims.csv": CLAIMS_TABLE, "scores.csv": scores})
    with pytest.raises(InputError, match="labels 1 of 10 rows differently from 'human_label'"):
        load_input_tables(paths)
    for unread, label in (("gold", int(L[0])), ("human_label", 1 - int(L[0]))):
        loaded = load_input_tables(paths, mapping={"ignore": [unread]})
        assert loaded.claims is not None
        assert loaded.claims["label"].iloc[0] == label


@pytest.mark.parametrize("columns", [{"claim": CLAIMS, "context": DOCS}, {}])
def test_claims_of_differently_named_files_have_the_same_ids(columns, tmp_path):
    for name, scores in (("monday.csv", FIRST_SCORES), ("tuesday.csv", SECOND_SCORES)):
        (tmp_path / name).write_bytes(
            make_csv({**columns, "human": [int(x) for x in L], "gpt4_score": scores})
        )
    monday, tuesday = (
        load_input_tables([tmp_path / name]).claims for name in ("monday.csv", "tuesday.csv")
    )
    assert monday is not None
    assert tuesday is not None
    assert monday["claim_id"].tolist() == tuesday["claim_id"].tolist()
    assert monday["claim_id"].is_unique
