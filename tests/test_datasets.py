"""The converters on small files of each format: what they make of them, and what they say of bad ones."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from factaudit.datasets import FORMATS, aggrefact, aggrefact_subsets, convert
from factaudit.errors import FactauditError, InputError, UsageError
from factaudit.tables import read_claims, read_verdicts, write_table

Write = Callable[[str, Any], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a value as the file's suffix says (JSONL and CSV from a list of rows) and give its path."""

    def make(name: str, value: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(row) + "\n" for row in value), encoding="utf-8")
        elif name.endswith(".csv"):
            pd.DataFrame(value).to_csv(path, index=False)
        else:
            path.write_text(json.dumps(value), encoding="utf-8")
        return path

    return make


def fails(format: str, sources: Sequence[Path], **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        convert(format, sources, **options)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------ the registry


def test_every_format_has_a_module_an_example_and_the_options_its_function_takes() -> None:
    import inspect

    for name, entry in FORMATS.items():
        parameters = inspect.signature(entry.converter).parameters
        assert name == entry.name
        assert next(iter(parameters)) == "sources"
        assert set(list(parameters)[1:]) == set(entry.options), name
        assert entry.example.startswith(f"factaudit convert {name} ")
        assert entry.summary
        assert entry.converter.__doc__


def test_an_unknown_format_option_or_value_is_a_usage_error_with_a_hint(write: Write) -> None:
    path = write("dev.jsonl", [])
    with pytest.raises(UsageError, match=r"unknown format 'tofu-eval' \(did you mean 'tofueval'\?\)"):
        convert("tofu-eval", [path])
    with pytest.raises(UsageError, match=r"format 'wice' has no option 'levels' \(did you mean 'level'\?\)"):
        convert("wice", [path], levels="claim")
    with pytest.raises(UsageError, match="format 'wice', option 'level': expected 'claim' or 'subclaim', found 'word'"):
        convert("wice", [path], level="word")
    with pytest.raises(UsageError, match="format 'score-csv' needs the option 'dataset': the dataset's name"):
        convert("score-csv", [path])
    with pytest.raises(UsageError, match="format 'ragas': expected at least one file or folder"):
        convert("ragas", [])


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_file_and_an_empty_folder_are_named(name: str, tmp_path: Path) -> None:
    options = {"dataset": "d"} if "dataset" in FORMATS[name].options else {}
    assert f"{tmp_path / 'none.csv'}: no such file" == fails(name, [tmp_path / "none.csv"], **options)
    assert f"{tmp_path}: the folder holds no file named " in fails(name, [tmp_path], **options)


@pytest.fixture(scope="module")
def subsets() -> dict[str, dict[str, str]]:
    """The rows of the table of LLM-AggreFact's datasets, by name."""
    path = Path(aggrefact_subsets.__file__).with_suffix(".csv")
    with path.open(encoding="utf-8") as file:
        return {row["dataset"]: row for row in csv.DictReader(file)}


def test_the_subsets_are_the_benchmarks_datasets(subsets: dict[str, dict[str, str]]) -> None:
    whole = [row for row in subsets.values() if not row["part_of"]]
    assert len(whole) == 11
    assert sum(int(row["test_claims"] or 0) for row in whole) == 29320
    assert {name for name, row in subsets.items() if row["part_of"]} == {
        f"RAGTruth-{part}" for part in ("Summary", "QA", "Data2txt", "CNN/DM", "News", "MARCO", "Yelp")
    }
    for name, row in subsets.items():
        for alias in (name, *filter(None, row["aliases"].split(";"))):
            found = aggrefact_subsets.find_aggrefact_subset(alias.upper())
            assert found is not None
            assert found.dataset == name
        assert row["source"], name
        assert bool(row["systems"]) == bool(row["systems_source"]), name
        assert (row["task"] == "") == (name == "RAGTruth"), "as a whole it has three"
    assert len({row["label"] for row in subsets.values()}) == len(subsets)


def test_the_subsets_have_table_2_of_vc(subsets: dict[str, dict[str, str]]) -> None:
    rows = {name: row for name, row in subsets.items() if row["in_vc"] == "yes"}
    tasks: dict[str, list[str]] = {}
    for name, row in rows.items():
        tasks.setdefault(row["task"], []).append(name)
    assert tasks == {
        "summarization": [
            *("AggreFact-CNN", "AggreFact-XSum", "TofuEval-MediaSum", "TofuEval-MeetingBank"),
            *("RAGTruth-CNN/DM", "RAGTruth-News"),
        ],
        "Wikipedia verification": ["WiCE"],
        "response verification": ["REVEAL", "ClaimVerify", "FactCheck-GPT"],
        "long-form QA": ["ExpertQA", "LFQA", "RAGTruth-MARCO"],
        "data-to-text": ["RAGTruth-Yelp"],
    }
    assert sum(map(len, tasks.values())) == 14
    assert all(row["claim_source"] for row in rows.values())
    # Of 12 the systems are known; 10 of these (VC §2.1) have longer responses.
    assert [name for name, row in rows.items() if not row["systems"]] == ["WiCE", "FactCheck-GPT"]
    alone = [name for name, row in rows.items() if row["longer_responses"] != "yes"]
    assert alone == ["AggreFact-CNN", "AggreFact-XSum", "WiCE", "FactCheck-GPT"]
    with (Path(__file__).parents[1] / "data" / "published" / "vc_tables.csv").open(encoding="utf-8") as file:
        names = {row["dataset"] for row in csv.DictReader(file) if not row["dataset"].startswith("__")}
    found = [aggrefact_subsets.find_aggrefact_subset(name) for name in names]
    assert {one.dataset for one in found if one is not None} == set(rows)
    assert len(found) == 14


# ---------------------------------------------------------------------------------------------------- TofuEval

SENTENCE = {
    "doc_id": 12,
    "annotation_id": 3,
    "topic": "Budget",
    "model_name": "model_A",
    "sent_idx": 1,
    "summ_sent": "The budget passed.",
    "sent_label": "yes",
    "exp": "",
    "type": "",
}


def test_tofueval_makes_a_claim_per_sentence(write: Write) -> None:
    rows = [
        SENTENCE,
        SENTENCE | {"sent_idx": 2, "summ_sent": "It was 2 dollars.", "sent_label": "no", "type": "Contradiction"},
    ]
    path = write("meetingbank_factual_eval_test.csv", rows)
    docs = write("docs.csv", [{"meeting_id": 12, "source": "We pass the budget."}])
    converted = convert("tofueval", [path], docs=[docs])
    first, second = converted.claims.to_dict("records")
    assert first["dataset"] == "TofuEval-MeetingBank"
    assert (first["system"], first["response_id"], first["doc_id"]) == ("Model-A", "12/3/Budget/Model-A", "12")
    assert (first["split"], first["task"], first["doc"]) == ("test", "summarization", "We pass the budget.")
    assert (first["label"], second["label"], second["error_type"]) == (1, 0, "Contradiction")
    assert first["response_id"] == second["response_id"]
    assert converted.notes == []
    assert (convert("tofueval", [path], dataset="mine").claims["dataset"] == "mine").all()


def test_tofueval_errors_name_file_row_and_column(write: Write) -> None:
    path = write("mediasum_dev.csv", [SENTENCE, SENTENCE | {"sent_label": "maybe", "topic": None}])
    message = fails("tofueval", [path])
    assert message.startswith(f"{path}: 2 problems\n")
    assert "row 2, column 'sent_label': expected 'yes' or 'no', found 'maybe'" in message
    assert "row 2, column 'topic': expected a valid string, found None" in message
    path = write("mediasum_cut.csv", [{"doc_id": 1}])
    assert "row 1, column 'sent_label': the field is missing" in fails("tofueval", [path])
    path = write("summaries.csv", [SENTENCE])
    assert fails("tofueval", [path]) == (
        f"{path}: expected mediasum or meetingbank in the file's name, or the option dataset"
    )


# -------------------------------------------------------------------------------------------------------- LFQA


def lfqa(write: Write, labels: Sequence[Sequence[str]], system: str = "gpt3_whudoc", texts: str = "Yes. ") -> Path:
    sentences = [{"answer": f" {texts}{number}</s>", "labels": list(votes)} for number, votes in enumerate(labels)]
    answers = [{"question_id": 7, "question": "Why?", "annotations": sentences}]
    docs = [{"title": "Page", "text": "one"}, {"title": "Page", "text": "two"}, {"title": "Other", "text": "three"}]
    write("data/docs/docs-human.json", [{"question_id": 7, "docs": docs}])
    return write(f"data/annotations/annotations-{system}.json", answers)


def test_lfqa_takes_the_majority_and_the_systems_own_documents(write: Write) -> None:
    yes, part, no = "supported", "partially", "not_supported"
    path = lfqa(write, [(yes, yes, no), (yes, part, part), (yes, part, no), (yes, yes, yes), (yes, no)])
    converted = convert("lfqa", [path])
    assert converted.claims["label"].tolist() == [1, 0, 0, 1, 0]
    first = converted.claims.iloc[0]
    assert first["doc"] == "Page\n\none\n\ntwo\n\nOther\n\nthree"
    assert (first["claim"], first["question"]) == ("Yes. 0", "Why?")
    assert (first["system"], first["response_id"], first["doc_id"]) == ("gpt3_whudoc", "gpt3_whudoc/7", "human/7")
    assert any(note.startswith("1 claim on which three annotators gave three labels: 0") for note in converted.notes)
    assert converted.notes[-1] == "5 claims, 3 annotators"


def test_lfqa_documents_are_null_where_unknown_or_absent(write: Write, tmp_path: Path) -> None:
    path = lfqa(write, [("supported",)], system="my_model")
    converted = convert("lfqa", [path])
    assert converted.claims["doc"].isna().all()
    assert converted.notes[0] == "my_model: documents are null, since it is not known which the annotators saw"
    path = lfqa(write, [("supported",)])
    alone = tmp_path / "elsewhere" / "x" / path.name
    alone.parent.mkdir(parents=True)
    alone.write_bytes(path.read_bytes())
    converted = convert("lfqa", [alone])
    assert converted.claims["doc_id"].isna().all()
    assert "since there is no folder" in converted.notes[0]
    assert convert("lfqa", [alone], docs=path.parent.parent / "docs").claims["doc"].notna().all()


def test_lfqa_leaves_out_sentences_without_text_and_says_so(write: Write) -> None:
    answers = [{"question_id": 7, "annotations": [{"answer": " </s>", "labels": ["supported"]}]}]
    answers[0]["annotations"].append({"answer": "Yes.", "labels": ["supported"]})  # type: ignore[attr-defined]
    lfqa(write, [("supported",)])
    path = write("data/annotations/annotations-gpt3_whudoc.json", answers)
    converted = convert("lfqa", [path])
    assert converted.claims["claim"].tolist() == ["Yes."]
    assert "1 sentence left out: no text" in converted.notes


def test_lfqa_errors_name_file_item_and_field(write: Write) -> None:
    path = lfqa(write, [("supported", "yes")])
    assert fails("lfqa", [path]) == (
        f"{path}: item 1, column 'annotations[0].labels[1]': "
        "expected 'supported', 'partially' or 'not_supported', found 'yes'"
    )
    path = lfqa(write, [("supported",)])
    write("data/docs/docs-human.json", [])
    assert fails("lfqa", [path]) == (
        f"{path}: item 1, column 'question_id': expected a question of docs-human.json, found '7'"
    )
    path.write_text('[{"question_id": 7,\n "annot', encoding="utf-8")
    assert fails("lfqa", [path]).startswith(f"{path}: line 2: not JSON: ")
    path.write_bytes(b'["\xe9"]')
    assert fails("lfqa", [path]).startswith(f"{path}: line 1: byte 0xe9 is not UTF-8 text; save the file as UTF-8")


# -------------------------------------------------------------------------------------------------------- WiCE


def wice(**changes: Any) -> dict[str, Any]:
    meta = {"id": "dev00001-0", "claim_title": "Paris"}
    return {"claim": "C.", "evidence": ["One.", "Two."], "label": "supported", "meta": meta} | changes


def test_wice_supported_is_1_and_partly_supported_0(write: Write) -> None:
    labels = ("supported", "partially_supported", "not_supported")
    rows = [wice(label=label, meta={"id": f"dev-{n}"}) for n, label in enumerate(labels)]
    converted = convert("wice", [write("dev.jsonl", rows)])
    assert converted.claims["label"].tolist() == [1, 0, 0]
    assert (converted.claims["doc"] == "One.\nTwo.").all()
    assert converted.claims["task"].eq("Wikipedia verification").all()
    assert converted.claims["split"].eq("dev").all()
    (note,) = converted.notes
    assert note.startswith("labels: supported = 1 (1 claim), partially_supported = 0 (1 claim), not_supported = 0")


def test_wice_subclaims_are_parts_of_their_claim(write: Write) -> None:
    rows = [wice(), wice(meta={"id": "dev00001-1"}), wice(meta={"id": "dev00002-0"})]
    claims = convert("wice", [write("dev.jsonl", rows)], level="subclaim").claims
    assert claims["response_id"].tolist() == ["dev00001", "dev00001", "dev00002"]


def test_wice_errors_name_line_and_field(write: Write) -> None:
    path = write("dev.jsonl", [wice(), wice(label="true", evidence=[])])
    message = fails("wice", [path])
    assert "line 2, column 'label': expected 'supported', 'partially_supported' or 'not_supported'" in message
    assert "line 2, column 'evidence': List should have at least 1 item" in message
    path.write_text(path.read_text("utf-8")[:-9], encoding="utf-8")
    assert "line 2: the last line is cut off" in fails("wice", [path])


# ---------------------------------------------------------------------------------------------------- RAGTruth

TEXT = "Paris is in France. It has 9 people! Rome is old."


def response(**changes: Any) -> dict[str, Any]:
    base = {"id": "1", "source_id": "10", "model": "gpt-4-0613", "labels": [], "split": "test", "quality": "good"}
    return base | {"temperature": 0.7, "response": TEXT} | changes


def span(start: int, end: int) -> dict[str, Any]:
    return {"start": start, "end": end, "text": TEXT[start:end], "label_type": "Evident Conflict"}


SOURCES: list[dict[str, Any]] = [
    {"source_id": "10", "task_type": "Summary", "source": "CNN/DM", "source_info": "An article.", "prompt": "p"},
    {
        "source_id": "11",
        "task_type": "QA",
        "source": "MARCO",
        "source_info": {"question": "Who?", "passages": "passage 1: He."},
    },
    {"source_id": "12", "task_type": "Data2txt", "source_info": {"name": "Café", "stars": 3.0}},
]


def test_ragtruth_responses_with_their_sources(write: Write, tmp_path: Path) -> None:
    rows = [
        response(),
        response(id="2", source_id="11", labels=[span(0, 5)], quality="truncated"),
        response(id=3, source_id=12, split="train"),
        response(id="4", response=" "),
    ]
    write("response.jsonl", rows)
    write("source_info.jsonl", SOURCES)
    converted = convert("ragtruth", [tmp_path])
    claims = converted.claims.set_index("response_id")
    # The third source does not say where it is from.
    assert claims["dataset"].to_dict() == {"1": "RAGTruth-CNN/DM", "2": "RAGTruth-MARCO", "3": "RAGTruth-Data2txt"}
    assert claims["doc"].to_dict() == {
        "1": "An article.",
        "2": "passage 1: He.",
        "3": '{"name": "Café", "stars": 3.0}',
    }
    assert claims["label"].to_dict() == {"1": 1, "2": 0, "3": 1}
    assert claims["claim_id"].to_dict() == {"1": "ragtruth:1", "2": "ragtruth:2", "3": "ragtruth:3"}
    assert claims.loc["2", "question"] == "Who?"
    assert claims["task"].to_dict() == {"1": "summarization", "2": "long-form QA", "3": "data-to-text"}
    assert converted.notes == [
        "response.jsonl: 1 response marked truncated",
        "response.jsonl: 1 response left out: no text",
    ]
    only = convert("ragtruth", [tmp_path], split="test")
    assert only.claims["response_id"].tolist() == ["1", "2"]
    assert "1 response left out: not of split 'test'" in only.notes


@pytest.mark.parametrize(
    ("task", "source", "dataset", "meaning"),
    [
        ("Summary", "CNN/DM", "RAGTruth-CNN/DM", "summarization"),
        ("Summary", "Recent News", "RAGTruth-News", "summarization"),
        ("QA", "MARCO", "RAGTruth-MARCO", "long-form QA"),
        ("Data2txt", "Yelp", "RAGTruth-Yelp", "data-to-text"),
        ("Summary", None, "RAGTruth-Summary", "summarization"),
        ("QA", "A new source", "RAGTruth-A new source", "long-form QA"),
    ],
)
def test_ragtruth_subsets_are_by_source(
    write: Write, tmp_path: Path, task: str, source: str | None, dataset: str, meaning: str
) -> None:
    write("response.jsonl", [response()])
    write("source_info.jsonl", [{"source_id": "10", "task_type": task, "source": source, "source_info": "Text."}])
    (row,) = convert("ragtruth", [tmp_path]).claims.to_dict("records")
    assert (row["dataset"], row["task"]) == (dataset, meaning)
    assert aggrefact_subsets.find_whole_aggrefact_dataset("RAGTruth-Recent News") == "RAGTruth"


@pytest.mark.parametrize(
    ("spans", "labels"),
    [
        ([], [1, 1, 1]),
        ([(0, 5)], [0, 1, 1]),
        ([(18, 19)], [0, 1, 1]),  # the first sentence's full stop
        ([(19, 20)], None),  # the blank between two sentences
        ([(20, 22)], [1, 0, 1]),
        ([(15, 24)], [0, 0, 1]),
        ([(0, len(TEXT))], [0, 0, 0]),
        ([(27, 28), (37, 41)], [1, 0, 0]),
        ([(900, 910)], None),
        ([(0, 5), (5, 5)], [0, 1, 1]),
    ],
)
def test_ragtruth_a_sentence_that_a_span_overlaps_is_unattributable(
    write: Write, spans: list[tuple[int, int]], labels: list[int] | None
) -> None:
    path = write("r.jsonl", [response(labels=[span(*pair) for pair in spans], passages="passage 1: He.")])
    converted = convert("ragtruth", [path], level="sentence")
    assert converted.claims["claim"].tolist() == ["Paris is in France.", "It has 9 people!", "Rome is old."]
    assert converted.claims["claim_id"].tolist() == ["ragtruth:1:0", "ragtruth:1:1", "ragtruth:1:2"]
    if labels is None:
        assert converted.claims["label"].isna().all()
        assert any(note.startswith("1 response with a span that overlaps no sentence") for note in converted.notes)
    else:
        assert converted.claims["label"].tolist() == labels


def test_ragtruth_errors(write: Write, tmp_path: Path) -> None:
    path = write("response.jsonl", [response(), response(id="2", source_id="99")])
    assert fails("ragtruth", [path]).startswith(f"{path}: 2 problems\n")
    assert "line 2, column 'source_id': expected a source, but no source_info.jsonl is given, found '99'" in fails(
        "ragtruth", [path]
    )
    sources = write("source_info.jsonl", SOURCES)
    assert fails("ragtruth", [path, sources]) == (
        f"{path}: line 2, column 'source_id': expected one of source_info.jsonl's, found '99'"
    )
    assert "expected responses (response.jsonl), found none" in fails("ragtruth", [sources])
    path = write("response.jsonl", [response(labels=[{"start": "a", "end": 3}])])
    assert "line 1, column 'labels[0].start': expected a valid integer" in fails("ragtruth", [path, sources])
    path = write("response.jsonl", [response()])
    assert fails("ragtruth", [path, sources], split="dev").endswith(
        "no response is left with split 'dev' (splits found: test)"
    )
    bad = write("source_info.jsonl", [SOURCES[0] | {"task_type": "Chat"}])
    assert "line 1, column 'task_type': expected 'QA', 'Summary' or 'Data2txt'" in fails("ragtruth", [path, bad])


def scored(**changes: Any) -> dict[str, Any]:
    base = {"response_id": "1", "source_id": 10, "task_type": "QA", "system": "gpt-4-0613", "hallucinated": 1}
    return base | {"scores": {"a": 0.25, "b": 0.5}} | changes


def test_ragtruth_scores_turn_round(write: Write) -> None:
    path = write("scores.jsonl", [scored(), scored(response_id="2", hallucinated=0, scores={"a": 0.9, "b": None})])
    converted = convert("ragtruth-scores", [path])
    assert converted.claims["label"].tolist() == [0, 1]
    assert converted.verdicts is not None
    found = converted.verdicts[["claim_id", "evaluator", "score", "prediction"]].values.tolist()
    # A support of exactly 0.5 is not above the threshold.
    assert found == [
        ["ragtruth:1", "a", 0.75, 1],
        ["ragtruth:1", "b", 0.5, 0],
        ["ragtruth:2", "a", pytest.approx(0.1), 0],
    ]
    assert converted.notes == [
        "1 score missing: those claims are unscored",
    ]


def test_ragtruth_scores_errors(write: Write) -> None:
    path = write("scores.jsonl", [scored(), scored(response_id="2", scores={"a": 1.7}, hallucinated="yes")])
    message = fails("ragtruth-scores", [path])
    assert "line 2, column 'scores.a': expected less than or equal to 1, found 1.7" in message
    assert "line 2, column 'hallucinated': expected 0 or 1, found 'yes'" in message
    path = write("scores.jsonl", [scored(), scored()])
    assert "row 2, column 'claim_id': expected unique ids" in fails("ragtruth-scores", [path])


# ------------------------------------------------------------------------------------------- row-aligned scores


def test_aggrefact_scores_of_two_evaluators(write: Write, tmp_path: Path) -> None:
    one = write("scores/one.json", {"Wice": [[1, 0.75], [0, 0.5]], "mine": [[0, 0.0]]})
    two = write("scores/two.json", {"mine": [[0, 1]], "Wice": [[1, 0.25], [0, 0.125]]})
    converted = convert("aggrefact-scores", [tmp_path / "scores"])
    assert converted.claims[["dataset", "label"]].values.tolist() == [["Wice", 1], ["Wice", 0], ["mine", 0]]
    assert converted.verdicts is not None
    scores = converted.verdicts.pivot(index="claim_id", columns="evaluator", values="score")
    assert scores.loc[converted.claims["claim_id"], "one"].tolist() == [0.75, 0.5, 0.0]
    assert scores.loc[converted.claims["claim_id"], "two"].tolist() == [0.25, 0.125, 1.0]
    # Verdicts of files that are converted apart fit each other's claims.
    assert convert("aggrefact-scores", [one]).claims["claim_id"].tolist() == converted.claims["claim_id"].tolist()
    named = convert("aggrefact-scores", [one, two], name=["A", "B"]).verdicts
    assert named is not None
    assert named["evaluator"].unique().tolist() == ["A", "B"]


def test_aggrefact_scores_must_agree(write: Write) -> None:
    one = write("one.json", {"a": [[1, 0.75], [0, 0.5]], "b": [[1, 0.5]]})
    two = write("two.json", {"a": [[1, 0.75], [1, 0.5]], "c": [[1, 0.5]]})
    message = fails("aggrefact-scores", [one, two])
    assert message.startswith(f"{two}: 3 problems\n")
    assert "row 2, column 'a': expected the label 0, as in one.json, found 1" in message
    assert "expected the dataset 'b', as in one.json" in message
    assert "the dataset 'c' is not in one.json" in message
    short = write("short.json", {"a": [[1, 0.75]], "b": [[1, 0.5]]})
    assert fails("aggrefact-scores", [one, short]) == (f"{short}: column 'a': expected 2 rows, as in one.json, found 1")
    bad = write("bad.json", {"a": [[1, 0.75], ["yes", 2.5]]})
    message = fails("aggrefact-scores", [bad])
    assert "item 2, column 'a[0]': expected 0 or 1, found 'yes'" in message
    assert "item 2, column 'a[1]': expected less than or equal to 1, found 2.5" in message
    assert fails("aggrefact-scores", [write("none.json", {"a": []})]).endswith("the file has no rows")
    with pytest.raises(UsageError, match="option 'name': expected 2 names, one per file, found 1"):
        convert("aggrefact-scores", [one, two], name="A")
    with pytest.raises(UsageError, match="two files would be evaluator 'one'; give each a name"):
        convert("aggrefact-scores", [one, one], name=["one", "one"])


def test_score_csv(write: Write) -> None:
    rows = [{"y_true": 1, "y_score": 0.75}, {"y_true": 0, "y_score": 0.25}]
    plain, sliding = write("plain/model.csv", rows), write("sliding/model.csv", rows)
    converted = convert("score-csv", [plain, sliding], dataset="long")
    assert converted.verdicts is not None
    assert converted.verdicts["evaluator"].unique().tolist() == ["model (plain)", "model (sliding)"]
    assert converted.claims["dataset"].eq("long").all()
    assert converted.claims["doc"].isna().all()
    alone = convert("score-csv", [plain], dataset="long").verdicts
    assert alone is not None
    assert alone["evaluator"].unique().tolist() == ["model"]
    other = write("other.csv", [{"y_true": 1, "y_score": 0.75}, {"y_true": 1.0, "y_score": 0.25}])
    assert fails("score-csv", [plain, other], dataset="long") == (
        f"{other}: row 2, column 'y_true': expected the label 0, as in model.csv, found 1"
    )
    short = write("short.csv", rows[:1])
    assert fails("score-csv", [plain, short], dataset="long").endswith("expected 2 rows, as in model.csv, found 1")
    bad = write("bad.csv", [{"y_true": "yes", "y_score": 1.7}])
    message = fails("score-csv", [bad], dataset="long")
    assert "row 1, column 'y_true': expected 0 or 1, found 'yes'" in message
    assert "row 1, column 'y_score': expected less than or equal to 1, found '1.7'" in message


def test_conversions_survive_being_written_and_read(write: Write, tmp_path: Path) -> None:
    path = write("scores.jsonl", [scored(), scored(response_id="2", hallucinated=0)])
    converted = convert("ragtruth-scores", [path])
    assert converted.verdicts is not None
    for suffix in (".parquet", ".jsonl", ".csv"):
        write_table(converted.claims, tmp_path / f"claims{suffix}")
        write_table(converted.verdicts, tmp_path / f"verdicts{suffix}")
        claims = read_claims(tmp_path / f"claims{suffix}")
        verdicts = read_verdicts(tmp_path / f"verdicts{suffix}", claims=claims)
        pd.testing.assert_frame_equal(claims, converted.claims)
        columns = ["claim_id", "evaluator", "score", "prediction", "status"]
        pd.testing.assert_frame_equal(verdicts[columns], converted.verdicts[columns])


# --------------------------------------------------------------------------------------------------- AggreFact


def claim(dataset: str, text: str, label: int = 1) -> dict[str, Any]:
    return {"dataset": dataset, "doc": "D.", "claim": text, "label": label, "contamination_identifier": "x" * 64}


def test_aggrefact_names_judgements_that_it_has_no_place_for(write: Write) -> None:
    rows = [claim("Wice", f"{k}.") | {"gpt4_score": k / 9, "source": f"s{k}"} for k in range(8)]
    (note,) = convert("aggrefact", [write("judged.jsonl", rows)]).notes[1:]
    assert note.startswith("judged.jsonl: unread gpt4_score: by the name people or an evaluator judged there")


def test_aggrefact_files_load_with_tasks_and_splits(write: Write, tmp_path: Path) -> None:
    rows = [claim("AggreFact-CNN", "A."), claim("Wice", "B.", 0), claim("ClaimVerify", "C.")]
    path = tmp_path / "dev-00000-of-00001.parquet"
    pd.DataFrame(rows).to_parquet(path)
    other = write("mine.jsonl", rows[:1])
    converted = convert("aggrefact", [path, other])
    assert converted.claims["task"].fillna("").tolist() == [
        "summarization",
        "Wikipedia verification",
        "response verification",
        "summarization",
    ]
    assert converted.claims["split"].fillna("").tolist() == ["dev", "dev", "dev", ""]
    # The same row in two files is two claims.
    assert converted.claims["claim_id"].is_unique
    assert converted.claims["contamination_identifier"].tolist() == ["x" * 64] * 4
    assert converted.notes == ["4 claims of 3 datasets"]
    assert converted.provenance == {}
    with pytest.raises(UsageError, match="'revision' is for the source lytang/LLM-AggreFact"):
        convert("aggrefact", [path], revision="main")
    bad = write("bad.csv", [claim("d", "A."), claim("d", "B.", 3)])
    assert fails("aggrefact", [bad]).startswith(f"{bad}: row 2, column 'label': expected 1 (attributable), 0")


def test_aggrefact_join_matches_within_a_dataset_and_leaves_ambiguity_alone(write: Write, tmp_path: Path) -> None:
    def sentence(system: str, text: str, topic: str = "T", label: str = "yes") -> dict[str, Any]:
        return SENTENCE | {"model_name": system, "summ_sent": text, "topic": topic, "sent_label": label}

    write(
        "tofu/mediasum_factual_eval_dev.csv",
        [
            sentence("model_A", "Only A  wrote this."),
            sentence("model_A", "Both wrote this."),
            sentence("model_B", "Both wrote this."),
            sentence("model_B", "B wrote this twice.", "T"),
            sentence("model_B", "B wrote this twice.", "U"),
            sentence("model_B", "Labels differ.", label="no"),
        ],
    )
    write("tofu/meetingbank_factual_eval_dev.csv", [sentence("model_C", "Only in the other dataset.")])
    path = write(
        "test.csv",
        [
            claim("TofuEval-MediaS", " Only A wrote\nthis. "),
            claim("TofuEval-MediaS", "Both wrote this."),
            claim("TofuEval-MediaS", "B wrote this twice."),
            claim("TofuEval-MediaS", "Labels differ."),
            claim("TofuEval-MediaS", "Only in the other dataset."),
            claim("Wice", "Only A wrote this."),
        ],
    )
    converted = convert("aggrefact", [path], join=f"tofueval:{tmp_path / 'tofu'}")
    assert converted.claims["system"].fillna("").tolist() == ["Model-A", "", "Model-B", "Model-B", "", ""]
    assert converted.claims["response_id"].fillna("").tolist() == ["12/3/T/Model-A", "", "", "12/3/T/Model-B", "", ""]
    assert converted.claims["topic"].fillna("").tolist() == ["T", "", "", "T", "", ""]
    assert converted.claims["doc_id"].fillna("").tolist() == ["12", "", "12", "12", "", ""]
    assert converted.claims["label"].tolist() == [1] * 6
    assert converted.notes[-1] == (
        "join tofueval: of 5 claims, 3 matched (60.0%), 1 ambiguous (several systems wrote the text), 1 not matched; "
        "1 there under another data set; 1 matched several responses of one system (response_id left empty); "
        "1 of the matched have another label there"
    )
    assert converted.claims["claim_id"].tolist() == convert("aggrefact", [path]).claims["claim_id"].tolist()


def test_aggrefact_join_of_ragtruth_is_by_sentence_and_gives_the_task(write: Write, tmp_path: Path) -> None:
    write("rt/response.jsonl", [response(), response(id="2", source_id="12", model="m", response="Another.")])
    write("rt/source_info.jsonl", SOURCES)
    path = write("test.csv", [claim("RAGTruth", "It has 9 people!"), claim("RAGTruth", "Another.")])
    claims = convert("aggrefact", [path], join=[f"ragtruth:{tmp_path / 'rt'}"]).claims
    assert claims["response_id"].tolist() == ["1", "2"]
    assert claims["task"].tolist() == ["summarization", "data-to-text"]
    assert claims["dataset"].tolist() == ["RAGTruth", "RAGTruth"]


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """The hub's client, with a repository in a folder in the network's stead."""
    huggingface_hub = pytest.importorskip("huggingface_hub", reason="needs the [hub] extra")
    state = SimpleNamespace(asked=[], downloads=[], fail=None, folder=tmp_path / "snapshot")
    (state.folder / "data").mkdir(parents=True)
    rows = [claim("AggreFact-CNN", "A."), claim("Wice", "B.", 0)]
    pd.DataFrame(rows).to_parquet(state.folder / "data" / "test-00000-of-00001.parquet")

    class Api:
        def dataset_info(self, repo: str, revision: str | None = None) -> SimpleNamespace:
            state.asked.append((repo, revision))
            return SimpleNamespace(sha=COMMIT)

    def snapshot(repo: str, *, repo_type: str, revision: str, allow_patterns: str) -> str:
        state.downloads.append((repo, repo_type, revision, allow_patterns))
        if state.fail:
            raise state.fail
        return str(state.folder)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    return state


def test_aggrefact_from_the_hub_pins_the_revision(hub: SimpleNamespace) -> None:
    converted = convert("aggrefact", ["lytang/LLM-AggreFact"])
    assert converted.claims["claim"].tolist() == ["A.", "B."]
    assert converted.claims["split"].eq("test").all()
    assert converted.provenance == {"repository": aggrefact.HUB_REPOSITORY, "split": "test", "revision": COMMIT}
    assert hub.asked == [(aggrefact.HUB_REPOSITORY, None)]
    assert hub.downloads == [(aggrefact.HUB_REPOSITORY, "dataset", COMMIT, "data/test-*.parquet")]
    # A whole commit is not asked about again.
    assert convert("aggrefact", [aggrefact.HUB_REPOSITORY], revision=COMMIT).provenance == converted.provenance
    assert len(hub.asked) == 1
    with pytest.raises(FactauditError, match="has no split 'train'; it has dev and test"):
        convert("aggrefact", [aggrefact.HUB_REPOSITORY], split="train")


def test_aggrefact_hub_errors_say_what_to_do(hub: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import GatedRepoError, RevisionNotFoundError

    def refusal(kind: type[Exception]) -> Exception:
        # Made without the constructor, which wants the HTTP response of the client's own library.
        return kind.__new__(kind)

    hub.fail = refusal(GatedRepoError)
    with pytest.raises(FactauditError, match="is gated: accept its conditions at "):
        convert("aggrefact", [aggrefact.HUB_REPOSITORY])
    hub.fail = refusal(RevisionNotFoundError)
    with pytest.raises(FactauditError, match="has no revision 'v9'"):
        convert("aggrefact", [aggrefact.HUB_REPOSITORY], revision="v9")
    # The client lets its HTTP library's own errors through.
    hub.fail = type("ConnectError", (Exception,), {})("connection refused")
    with pytest.raises(FactauditError, match=r"could not be read from the hub \(connection refused\)"):
        convert("aggrefact", [aggrefact.HUB_REPOSITORY])
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(FactauditError, match=r"needs the extra \[hub\]: pip install 'factaudit\[hub\]'"):
        convert("aggrefact", [aggrefact.HUB_REPOSITORY])
