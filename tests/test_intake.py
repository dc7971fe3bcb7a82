"""Tables as users have them: the shapes that are understood, what is asked, and what is refused."""

from __future__ import annotations

import json
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import factaudit as fa
from factaudit.errors import InputError, UsageError
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.mapped_tables import apply_mapping_to_tables
from factaudit.tables.mapping_options import parse_column_mapping_options
from factaudit.tables.mapping_proposal import propose_column_mapping
from factaudit.tables.nested_columns import flatten_columns
from factaudit.tables.questions import AmbiguousReadingError
from factaudit.tables.table_files import read_table
from factaudit.tables.table_loading import load_tables

N = 24
DOCS = [f"Report {i // 2}: the river {i // 2} runs past the old town and its three mills." for i in range(N)]
CLAIMS = [f"The river {i // 2} runs past {'a town' if i % 2 else 'no town'} of note." for i in range(N)]
LABELS = [i % 2 for i in range(N)]
PREDICTIONS = [int(i % 3 > 0) for i in range(N)]
SCORES = [0.9 - 0.01 * i if prediction else 0.3 - 0.01 * i for i, prediction in enumerate(PREDICTIONS)]
SYSTEMS = ["gpt-4", "llama", "mistral"] * (N // 3)
IDS = [f"c{i:02}" for i in range(N)]
Rows = dict[str, list[Any]]


def words(values: list[int], yes: Any, no: Any) -> list[Any]:
    return [yes if value else no for value in values]


@dataclass(frozen=True)
class Shape:
    """Files as somebody has them, and what they say: the same 24 claims and their verdicts, as far as they are in."""

    files: dict[str, Rows | str]
    evaluators: tuple[str, ...] = ("judge",)
    scores: bool = False
    labels: list[int] | None = field(default_factory=lambda: LABELS)
    systems: bool = False
    questions: int = 0
    claims: bool = True
    people: int = 0


def csv_text(rows: Rows, separator: str) -> str:
    lines = [separator.join(rows)]
    lines += [separator.join(f'"{cell}"' for cell in row) for row in zip(*rows.values(), strict=True)]
    return "\n".join(lines) + "\n"


def records(rows: Rows) -> list[dict[str, Any]]:
    return [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]


def nested() -> str:
    rows = [
        {"id": i, "input": {"text": d, "meta": {"model": s}}, "output": {"text": c}, "label": label, "judge": p}
        for i, d, s, c, label, p in zip(IDS, DOCS, SYSTEMS, CLAIMS, LABELS, PREDICTIONS, strict=True)
    ]
    return json.dumps({"version": 1, "tags": ["x"], "results": rows})


#: Three annotators, of whom one at a time is of another opinion than the majority.
PEOPLE: Rows = {f"annotator_{k}": [x if i % 3 != k else 1 - x for i, x in enumerate(LABELS)] for k in range(3)}
BY_PERSON: Rows = {
    "id": IDS * 3,
    "document": DOCS * 3,
    "sentence": CLAIMS * 3,
    "rater": [name for name in "xyz" for _ in range(N)],
    "label": [label for said in PEOPLE.values() for label in said],
}
LONG: Rows = {
    "metric": ["judge"] * N + ["nli"] * N,
    "score": SCORES + [1 - score for score in SCORES],
}
TWO = ("judge", "nli")
SHAPES = {
    "ours": Shape({"a.csv": {"dataset": ["d"] * N, "doc": DOCS, "claim": CLAIMS, "label": LABELS}}, ()),
    "document for doc": Shape({"a.csv": {"document": DOCS, "claim": CLAIMS, "label": LABELS}}, ()),
    "model for system": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "model": SYSTEMS}}, (), systems=True
    ),
    "supported / not supported": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": words(LABELS, "Supported", "Not Supported")}}, ()
    ),
    "entailment / contradiction": Shape(
        {
            "a.jsonl": {
                "premise": DOCS,
                "hypothesis": CLAIMS,
                "gold_label": words(LABELS, "entailment", "contradiction"),
            }
        },
        (),
    ),
    "yes / no": Shape({"a.csv": {"context": DOCS, "answer": CLAIMS, "is_faithful": words(LABELS, "Yes", "No")}}, ()),
    "true / false in JSON": Shape(
        {"a.jsonl": {"evidence": DOCS, "statement": CLAIMS, "factual": words(LABELS, True, False)}}, ()
    ),
    "PASS / FAIL": Shape({"a.csv": {"passage": DOCS, "answer": CLAIMS, "label": words(LABELS, "PASS", "FAIL")}}, ()),
    "hallucination: 1 is unsupported": Shape(
        {"a.csv": {"source": DOCS, "summary": CLAIMS, "hallucination": words(LABELS, 0, 1)}}, ()
    ),
    "hallucinated: yes is unsupported": Shape(
        {"a.csv": {"context": DOCS, "response": CLAIMS, "hallucinated": words(LABELS, "no", "yes")}}, ()
    ),
    "grades 1 to 5": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "human_score": [5 if x else 1 + i % 3 for i, x in enumerate(LABELS)]}},
        (),
        questions=1,
    ),
    "no labels": Shape({"a.csv": {"context": DOCS, "sentence": CLAIMS, "judge": SCORES}}, scores=True, labels=None),
    "a column per evaluator, 0 / 1": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": PREDICTIONS}}
    ),
    "a column per evaluator, scores": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": SCORES}}, scores=True
    ),
    "a column per evaluator, words": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": words(PREDICTIONS, "supported", "refuted")}}
    ),
    "judge_score and judge_label": Shape(
        {
            "a.csv": {
                "doc": DOCS,
                "claim": CLAIMS,
                "label": LABELS,
                "judge_score": SCORES,
                "judge_label": words(PREDICTIONS, "pass", "fail"),
            }
        },
        scores=True,
    ),
    "pred_judge": Shape({"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "pred_judge": PREDICTIONS}}),
    "scores 0 to 100": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": words(PREDICTIONS, 90, 10)}}
    ),
    "scores 1 to 5": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": words(PREDICTIONS, 5, 1)}}
    ),
    "probability of hallucination": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "hallucination_judge": [1 - s for s in SCORES]}},
        ("hallucination_judge",),
        scores=True,
    ),
    "two evaluators wide": Shape(
        {"a.csv": {"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": SCORES, "nli": [1 - s for s in SCORES]}},
        TWO,
        scores=True,
    ),
    "long, claims repeated": Shape(
        {"a.csv": {"doc": DOCS * 2, "claim": CLAIMS * 2, "label": LABELS * 2, **LONG}}, TWO, scores=True
    ),
    "long with ids": Shape(
        {"a.jsonl": {"id": IDS * 2, "document": DOCS * 2, "claim": CLAIMS * 2, "label": LABELS * 2, **LONG}},
        TWO,
        scores=True,
    ),
    "claims and long verdicts by id": Shape(
        {
            "claims.csv": {"id": IDS, "document": DOCS, "claim": CLAIMS, "label": LABELS},
            "v.csv": {"id": IDS * 2, **LONG},
        },
        TWO,
        scores=True,
    ),
    "claims and wide verdicts by id": Shape(
        {
            "claims.csv": {"uid": IDS, "doc": DOCS, "claim": CLAIMS, "gold": LABELS},
            "v.csv": {"uid": IDS, "judge": SCORES},
        },
        scores=True,
    ),
    "claims and verdicts by text": Shape(
        {
            "claims.csv": {"context": DOCS, "statement": CLAIMS, "label": LABELS},
            "v.jsonl": {"statement": CLAIMS * 2, **LONG},
        },
        TWO,
        scores=True,
    ),
    "no evaluator's name: the file's": Shape(
        {
            "claims.csv": {"id": IDS, "doc": DOCS, "claim": CLAIMS, "label": LABELS},
            "judge.csv": {"id": IDS, "score": SCORES},
        },
        scores=True,
    ),
    "tabs": Shape({"a.tsv": csv_text({"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": PREDICTIONS}, "\t")}),
    "semicolons": Shape(
        {"a.csv": csv_text({"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": PREDICTIONS}, ";")}
    ),
    "pipes in .txt": Shape(
        {"a.txt": csv_text({"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": PREDICTIONS}, "|")}
    ),
    "a JSON list": Shape(
        {"a.json": json.dumps(records({"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": PREDICTIONS}))}
    ),
    "a JSON object of columns": Shape(
        {"a.json": json.dumps({"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": PREDICTIONS})}
    ),
    "JSON with rows inside, objects in rows": Shape({"a.json": nested()}, systems=True),
    "ndjson": Shape(
        {"a.ndjson": "\n".join(map(json.dumps, records({"doc": DOCS, "claim": CLAIMS, "label": LABELS})))}, ()
    ),
    "camelCase": Shape(
        {"a.csv": {"sourceText": DOCS, "claimText": CLAIMS, "goldLabel": LABELS, "modelName": SYSTEMS}},
        (),
        systems=True,
    ),
    "Capitals and blanks": Shape(
        {"a.csv": {"Source Document": DOCS, "Claim": CLAIMS, "Human Label": LABELS, "Model": SYSTEMS}}, (), systems=True
    ),
    "contexts as lists (ragas)": Shape(
        {
            "a.jsonl": {
                "question": ["Which river?"] * N,
                "retrieved_contexts": [[doc, "And a mill."] for doc in DOCS],
                "response": CLAIMS,
                "faithfulness": SCORES,
            }
        },
        ("faithfulness",),
        scores=True,
        labels=None,
    ),
    "a column per annotator": Shape(
        {"a.csv": {"context": DOCS, "answer": CLAIMS, **PEOPLE, "judge": SCORES}}, scores=True, people=3
    ),
    "human_a, human_b, human_c": Shape(
        {
            "a.csv": {"context": DOCS, "answer": CLAIMS}
            | {f"human_{name}": words(said, "yes", "no") for name, said in zip("abc", PEOPLE.values(), strict=True)}
        },
        (),
        people=3,
    ),
    "a row per annotator": Shape({"a.csv": BY_PERSON}, (), people=3),
    "claims, verdicts and annotators in three files": Shape(
        {
            "claims.csv": {"id": IDS, "document": DOCS, "sentence": CLAIMS},
            "judge.csv": {"id": IDS, "score": SCORES},
            "people.csv": {key: BY_PERSON[key] for key in ("id", "rater", "label")},
        },
        scores=True,
        people=3,
    ),
    "gold among verdicts": Shape(
        {
            "a.csv": {
                "document": DOCS,
                "sentence": CLAIMS,
                "verdict_gold": words(LABELS, "supported", "refuted"),
                "verdict_judge": words(PREDICTIONS, "supported", "refuted"),
            }
        }
    ),
    "Parquet": Shape({"a.parquet": {"context": DOCS, "claim": CLAIMS, "label": LABELS, "judge": SCORES}}, scores=True),
}


def write(folder: Path, files: dict[str, Rows | str]) -> list[Path]:
    paths = []
    for name, content in files.items():
        path = folder / name
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif name.endswith(".parquet"):
            pd.DataFrame(content).to_parquet(path)
        elif name.endswith(".jsonl"):
            path.write_text("".join(json.dumps(row) + "\n" for row in records(content)), encoding="utf-8")
        else:
            path.write_text(csv_text(content, ","), encoding="utf-8")
        paths.append(path)
    return paths


def test_there_are_at_least_thirty_shapes() -> None:
    assert len(SHAPES) >= 30


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_shape_is_mapped_rightly(shape: Shape, tmp_path: Path) -> None:
    tables = [(str(path), flatten_columns(read_table(path))) for path in write(tmp_path, shape.files)]
    proposal = propose_column_mapping(tables)
    assert len(proposal.questions) == shape.questions, proposal.questions
    if proposal.questions:  # settled as is likeliest
        settled = ColumnMapping.from_source(proposal.questions[0].readings[0].mapping)
        proposal = propose_column_mapping(tables, (), settled)
        assert not proposal.questions
    # What is proposed survives being written down and read again.
    (tmp_path / "mapping.yaml").write_text(proposal.mapping.to_yaml(), encoding="utf-8")
    mapped = apply_mapping_to_tables(tables, ColumnMapping.from_source(tmp_path / "mapping.yaml"))
    claims, verdicts = mapped.claims, mapped.verdicts
    assert claims is not None
    assert claims["claim"].tolist() == CLAIMS
    assert [doc.split("\n\n")[0] for doc in claims["doc"]] == DOCS
    if shape.labels is None:
        assert claims["label"].isna().all()
    else:
        assert claims["label"].tolist() == shape.labels
    if shape.people:
        assert mapped.annotations is not None
        assert len(mapped.annotations) == N * shape.people
        assert mapped.annotations["annotator"].nunique() == shape.people
    assert claims["system"].tolist() == SYSTEMS if shape.systems else claims["system"].isna().all()
    if not shape.evaluators:
        assert verdicts is None
        return
    assert verdicts is not None
    assert sorted(verdicts["evaluator"].unique()) == sorted(shape.evaluators)
    first = verdicts[verdicts["evaluator"] == shape.evaluators[0]].set_index("claim_id").loc[claims["claim_id"]]
    assert first["prediction"].tolist() == PREDICTIONS
    if shape.scores:
        assert first["score"].tolist() == pytest.approx(SCORES)
    assert len(verdicts) == N * len(shape.evaluators)
    assert (verdicts["status"] == "ok").all()


def test_what_is_ours_already_needs_no_mapping() -> None:
    table = pd.DataFrame({"dataset": ["d"] * N, "doc": DOCS, "claim": CLAIMS, "label": LABELS})
    assert propose_column_mapping([("a.csv", table)]).is_standard


def test_a_word_between_is_asked_about_and_told() -> None:
    grades = ["supported", "partially supported", "refuted", "supported"] * (N // 4)
    proposal = propose_column_mapping([("a.csv", pd.DataFrame({"doc": DOCS, "claim": CLAIMS, "label": grades}))])
    (question,) = proposal.questions
    assert "'partially supported'" in question.text
    assert [one.options for one in question.readings] == [
        ["--labels", f"partially supported={value}"] for value in ("0", "", "1")
    ]


def test_columns_that_nothing_reads_are_named_with_the_nearest_known_name() -> None:
    table = pd.DataFrame({"dataset": ["d"] * N, "docs_id": IDS, "claim": CLAIMS, "lable": LABELS, "colour": SYSTEMS})
    table["status"] = [True] * N  # a flag of the call: its name is right, and its values say nothing of the claim
    proposal = propose_column_mapping([("a.csv", table)])
    assert "ignored  docs_id (did you mean 'doc_id'?), lable (did you mean 'label'?), colour, status" in proposal.notes


@pytest.mark.parametrize(
    ("columns", "is_told"),
    [
        ({"sentence": CLAIMS, "context": DOCS, "gpt4": [0.5] * len(CLAIMS)}, True),
        ({"sentence": CLAIMS, "context": DOCS, "human": LABELS, "gpt4": [0.5] * len(CLAIMS)}, False),
    ],
)
def test_where_no_column_is_taken_for_labels_it_is_told_and_nowhere_else(
    columns: dict[str, list[Any]], is_told: bool
) -> None:
    notes = propose_column_mapping([("a.csv", pd.DataFrame(columns))]).notes
    assert ("labels  none found; name their column with --label" in notes) == is_told
    assert not any(note.startswith("claims  without text") for note in notes)


def test_a_missing_cell_of_an_evaluator_is_an_unscored_claim() -> None:
    scores: list[float | None] = [*SCORES]
    scores[3] = None
    table = pd.DataFrame({"doc": DOCS, "claim": CLAIMS, "label": LABELS, "judge": scores})
    verdicts = apply_mapping_to_tables([("a.csv", table)], propose_column_mapping([("a.csv", table)]).mapping).verdicts
    assert verdicts is not None
    assert verdicts["status"].tolist().count("skipped") == 1
    assert pd.isna(verdicts["prediction"][3])


WRONG: dict[str, tuple[Rows, dict[str, Any], tuple[str, ...]]] = {
    "a word that nothing knows": (
        {"claim": CLAIMS, "label": ["so", "lala"] * (N // 2)},
        {},
        ("a.csv", "row 1", "'label'", "'lala'", "24 rows", "--labels"),
    ),
    "a score outside its scale": (
        {"claim": CLAIMS, "judge": [7] * N},
        {"evaluators": {"judge": {"score": "judge", "scale": [1, 5]}}},
        ("a.csv", "row 1", "'judge'", "from 1 to 5", "24 rows"),
    ),
    "a score that is no number": (
        {"claim": CLAIMS, "judge": ["0.4", "much"] * (N // 2)},
        {"evaluators": {"judge": {"score": "judge"}}},
        ("row 2", "'judge'", "expected a number", "'much'", "12 rows"),
    ),
    "nothing that is known": ({"x": CLAIMS, "y": LABELS}, {}, ("a.csv", "nothing in it is mapped", "'claim'")),
    "verdicts of claims that are nowhere": (
        {"judge": SCORES},
        {"evaluators": {"judge": {"score": "judge"}}},
        ("a.csv", "'claim_id'"),
    ),
    "two columns for one": (
        {"claim": CLAIMS, "a": DOCS, "b": DOCS},
        {"columns": {"doc": ["a", "b"]}},
        ("'doc'", "the table has both"),
    ),
}


@pytest.mark.parametrize(("rows", "mapping", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_mapped_is_one_message(rows: Rows, mapping: dict[str, Any], said: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as error:
        apply_mapping_to_tables([("a.csv", pd.DataFrame(rows))], ColumnMapping.from_source(mapping))
    assert error.value.total == 1
    for text in said:
        assert text in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"colums": {}}, "did you mean 'columns'?"),
        ({"columns": {"cliam": "x"}}, "did you mean 'claim'?"),
        ({"labels": {"maybe": 2}}, "expected 1, 0 or null"),
        ({"scale": {"judge": [1, 1]}}, "are the same"),
        ([1], "expected keys"),
    ],
)
def test_a_wrong_mapping_names_its_key(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match="mapping") as error:
        ColumnMapping.from_source(given)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "empty"),
        ("a.tsv", b"a\tb\n1\t2\t3\n", "expected 2 columns"),
        ("a.tsv", b"a\tb\n\xff\t2\n", "not UTF-8"),
        ("a.json", b'{"a": ', "not JSON"),
        ("a.json", b'{"a": {"b": 3}}', "expected a list of objects"),
        ("a.json", b"[" * 100_000, "nested too deep"),
        ("a.ndjson", b"[1]\n", "expected a JSON object"),
        ("a.docx", b"x", "expected a name that ends in"),
        ("a.tsv.gz", b"\x1f\x8b\x08broken", "not a whole gzip file"),
    ],
)
def test_a_file_that_is_no_table_is_named(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as error:
        read_table(tmp_path / name)
    assert said in str(error.value)
    assert name in str(error.value)


def test_an_excel_file_is_read_as_the_csv_of_its_sheet(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl", reason="needs openpyxl ([dev] extra)")
    rows = pd.DataFrame({"claim": ["It rains.", "It is dry."], "label": [1, None], "note": [None, "sure"]})
    rows.to_excel(tmp_path / "answers.xlsx", index=False)
    found = read_table(tmp_path / "answers.xlsx")
    assert found.to_dict("records") == [
        {"claim": "It rains.", "label": 1, "note": None},
        {"claim": "It is dry.", "label": None, "note": "sure"},
    ]


@pytest.mark.parametrize(("name", "package"), [("answers.xlsx", "openpyxl"), ("answers.xls", "xlrd")])
def test_without_its_package_an_excel_file_names_the_extra(
    tmp_path: Path, monkeypatch, name: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    start = b"PK\x03\x04" if name.endswith("xlsx") else b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    if not name.endswith("xlsx"):
        (tmp_path / name).write_bytes(start + bytes(504))
    with pytest.raises(
        InputError, match=r"need the extra \[excel\]: pip install 'factaudit\[excel\]'.*save the sheet as CSV"
    ):
        read_table(tmp_path / name)


def test_utf_16_as_excel_writes_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("claim\tlabel\nDie Brücke steht.\t1\n", encoding="utf-16")
    assert read_table(tmp_path / "a.txt").to_dict("records") == [{"claim": "Die Brücke steht.", "label": "1"}]


WIDE: Rows = {
    "context": DOCS,
    "answer": CLAIMS,
    "rating": words(LABELS, 5, 2),
    "judge_a": words(PREDICTIONS, 9, 2),
    "judge_b": words(PREDICTIONS, 8, 1),
    "note": SYSTEMS,
}


def test_settings_of_the_user_go_before_what_is_proposed(tmp_path: Path) -> None:
    stars = [str(1 + at % 4) for at in range(N)]
    (path,) = write(tmp_path, {"a.csv": WIDE | {"stars": stars}})
    said: list[str] = []
    mapping = parse_column_mapping_options(
        label="rating",
        system="note",
        columns=["grade=stars"],
        scale=["judge_a=0:10", "judge_b=0:10"],
        threshold=["judge_a=8.5", "judge_b=8.5", "rating=3"],
        evaluator=["judge_*"],
    )
    loaded = load_tables([path], mapping, said.append)
    assert loaded.claims is not None
    assert loaded.verdicts is not None
    assert loaded.claims["label"].tolist() == LABELS
    assert loaded.claims["grade"].tolist() == [float(one) for one in stars]
    assert loaded.claims["system"].tolist() == SYSTEMS
    by_name = {str(name): part for name, part in loaded.verdicts.groupby("evaluator")}
    assert by_name["judge_a"]["prediction"].tolist() == PREDICTIONS
    assert by_name["judge_b"]["prediction"].tolist() == [0] * N  # 8 is not above 8.5
    assert by_name["judge_b"]["score"].tolist() == pytest.approx(words(PREDICTIONS, 0.8, 0.1))
    assert "context → doc" in said[0]


def test_labels_and_judgements_need_no_text(tmp_path: Path) -> None:
    human, judge = ["1", "0", "", "1", "0", "1"], ["1", "1", "0", "1", "0", "0"]
    rows = zip(range(6), human, judge, strict=True)
    path = tmp_path / "cases.csv"
    path.write_text("case_id,human_label,judge_label\n" + "".join(f"c{i},{h},{j}\n" for i, h, j in rows))
    lines: list[str] = []
    loaded = load_tables([path], report_line=lines.append)
    assert loaded.claims is not None
    assert loaded.verdicts is not None
    assert loaded.claims["claim_id"].tolist() == [f"c{i}" for i in range(6)]
    assert loaded.claims["label"].fillna(-1).tolist() == [1, 0, -1, 1, 0, 1]
    assert loaded.claims["doc"].isna().all()
    assert loaded.verdicts["evaluator"].unique().tolist() == ["judge"]
    assert loaded.verdicts["prediction"].tolist() == [1, 1, 0, 1, 0, 0]
    assert "text  none found, but word overlap and chunking need it; name its column with --claim" in lines
    results = fa.compare(loaded.claims, loaded.verdicts)
    assert {"rates", "quantification"} <= set(results.audits)
    assert "surface" not in results.audits


def test_a_mapped_column_that_is_nowhere_is_an_error() -> None:
    table = pd.DataFrame({"claim": CLAIMS[:6], "human_label": ["1", "0"] * 3, "judge_score": [0.1, 0.9] * 3})
    with pytest.raises(InputError, match=r"no column 'human_lable' to map to 'label' \(did you mean 'human_label'\?\)"):
        load_tables([table], {"columns": {"label": "human_lable"}})


@pytest.mark.parametrize("blank", ["", " ", "\t", None])
def test_a_blank_label_is_no_label(blank: str | None) -> None:
    table = pd.DataFrame(
        {"claim": CLAIMS[:6], "human": ["yes", "no", blank, "no", "yes", blank], "judge_score": [0.4, 0.6] * 3}
    )
    claims = load_tables([table], {"columns": {"label": "human"}}).claims
    assert claims is not None
    assert claims["label"].fillna(-1).tolist() == [1, 0, -1, 0, 1, -1]


def test_what_was_taken_for_what_is_said_before_anything_goes_wrong(tmp_path: Path) -> None:
    (path,) = write(tmp_path, {"a.csv": {**WIDE, "judge_a": ["5", "x"] * (N // 2)}})
    said: list[str] = []
    judge: dict[str, Any] = {"evaluator": ["judge_a"], "scale": ["judge_a=0:10"], "threshold": ["rating=3"]}
    with pytest.raises(InputError, match="'x'"):
        load_tables([path], parse_column_mapping_options(label="rating", **judge), said.append)
    assert said


def test_files_of_ours_are_read_as_they_are(tmp_path: Path) -> None:
    claims: Rows = {"claim_id": IDS, "dataset": ["d"] * N, "doc": DOCS, "claim": CLAIMS, "label": LABELS}
    verdicts: Rows = {"claim_id": IDS, "evaluator": ["judge"] * N, "score": SCORES}
    paths = write(tmp_path, {"v.jsonl": verdicts, "c.csv": claims})
    said: list[str] = []
    loaded = load_tables(paths, report_line=said.append)
    assert (loaded.mapping, said) == (None, [])
    assert loaded.verdicts is not None
    assert loaded.verdicts["prediction"].tolist() == PREDICTIONS
    (model,) = write(tmp_path, {"m.csv": {**claims, "model": SYSTEMS}})
    loaded = load_tables([model])  # read as it is, it would leave out all audits of systems without a word
    assert loaded.claims is not None
    assert loaded.claims["system"].tolist() == SYSTEMS


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": ["cliam=x"]}, "did you mean 'claim'?"),
        ({"columns": ["claim"]}, "expected a YAML file or NAME=COLUMN"),
        ({"labels": ["good=2"]}, "expected WORD=1"),
        ({"scale": ["five"]}, "expected NAME=LOW:HIGH"),
    ],
)
def test_a_wrong_setting_is_a_usage_error(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_column_mapping_options(**given)
    assert said in str(error.value)


def test_columns_of_ours_that_hold_words_are_mapped_and_misspelt_ones_told(tmp_path: Path) -> None:
    table = {"dataset": ["d"] * N, "docu": DOCS, "claim": CLAIMS, "label": words(LABELS, "supported", "refuted")}
    (path,) = write(tmp_path, {"a.csv": table})
    said: list[str] = []
    loaded = load_tables([path], report_line=said.append)
    assert loaded.claims is not None
    assert loaded.claims["label"].tolist() == LABELS
    assert any("docu (did you mean 'doc'?)" in line for line in said)
    assert any("refuted = 0, supported = 1" in line for line in said)
    (plain,) = write(tmp_path, {"b.csv": table | {"label": LABELS}})
    said.clear()
    assert load_tables([plain], report_line=said.append).mapping is None  # read as it is
    assert said == ["unread  docu (did you mean 'doc'?)"]


@pytest.mark.parametrize("form", [pd.DataFrame, pa.table], ids=["pandas", "arrow"])
def test_frames_go_in_as_they_are_from_python(form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    claims = form({"id": IDS, "document": DOCS, "sentence": CLAIMS, "gold": words(LABELS, "supported", "refuted")})
    verdicts = form({"id": IDS, "metric": ["judge"] * N, "score": SCORES})
    two = fa.compare(claims, verdicts, audits=["rates"], replicates=0)
    assert "document → doc" in capsys.readouterr().err
    (row,) = two.rows("rates", dataset="table 1")
    right = [p == label for p, label in zip(PREDICTIONS, LABELS, strict=True)]
    assert row["n"] == N
    assert row["tpr"] == sum(r for r, label in zip(right, LABELS, strict=True) if label) / sum(LABELS)
    wide = form({"document": DOCS, "sentence": CLAIMS, "gold": LABELS, "judge": SCORES, "text": SYSTEMS})
    one = fa.compare(wide, audits=["rates"], replicates=0, mapping={"doc": "document"})
    assert one.rows("rates", dataset="table 1")[0]["bacc"] == row["bacc"]
    assert fa.judge(wide, ["unigram"])["status"].eq("ok").all()
    with pytest.raises(UsageError, match="no verdicts"):
        fa.compare(claims)


def test_labels_by_id_in_a_table_of_their_own_belong_to_the_claims(tmp_path: Path) -> None:
    claims: Rows = {"claim_id": IDS, "doc": DOCS, "claim": CLAIMS}
    verdicts: Rows = {"claim_id": IDS, "evaluator": ["judge"] * N, "score": SCORES}
    labels: Rows = {"claim_id": IDS, "human_label": LABELS}
    paths = write(tmp_path, {"claims.csv": claims, "verdicts.csv": verdicts, "labels.csv": labels})
    loaded = load_tables(paths)
    assert loaded.claims is not None
    assert loaded.claims["label"].tolist() == LABELS
    (tmp_path / "labels.csv").write_text("claim_id,human_label\nnobody,1\n")
    with pytest.raises(InputError, match="no claim has it"):
        load_tables(paths)


def test_a_list_that_may_hold_labels_is_asked_about(tmp_path: Path) -> None:
    grades = [1, 5, 3, 4]
    rows = [
        {"claim": claim, "experts": [{"fluency": 2, "consistency": grades[at % 4]}, {"consistency": grades[at % 3]}]}
        for at, claim in enumerate(CLAIMS)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(AmbiguousReadingError, match="'experts' is a list of objects with 'consistency'") as asked:
        load_tables([tmp_path / "a.jsonl"])
    assert asked.value.readings[0].options[:2] == ["--label", "experts[].consistency"]


def test_lists_of_like_rows_in_one_document_are_refused_and_not_read_in_part(tmp_path: Path) -> None:
    rows = [{"claim": claim, "human": at % 2, "judge": 0.1 + at / 50} for at, claim in enumerate(CLAIMS)]
    (tmp_path / "a.json").write_text(json.dumps({"gpt-4o": rows[:10], "llama": rows[10:], "meta": [{"date": "today"}]}))
    with pytest.raises(InputError, match="'gpt-4o', 'llama' are lists of rows: write each into a file of its own"):
        load_tables([tmp_path / "a.json"])
    (tmp_path / "b.json").write_text(json.dumps({"rows": rows, "meta": [{"date": "today"}], "more": {"tags": []}}))
    claims = load_tables([tmp_path / "b.json"]).claims
    assert claims is not None
    assert claims["label"].tolist() == [at % 2 for at in range(len(CLAIMS))]


def test_a_reply_of_a_judge_is_read_by_the_verdict_that_it_begins_or_ends_with(tmp_path: Path) -> None:
    replies = [("Yes, it is", "I see no such year. Verdict: not supported")[at % 2] for at in range(len(CLAIMS))]
    replies[3] = "No. The document says otherwise."
    table = pd.DataFrame({"claim": CLAIMS, "human": [1, 0] * (len(CLAIMS) // 2), "gpt4_reply": replies})
    table.to_csv(tmp_path / "a.csv", index=False)
    verdicts = load_tables([tmp_path / "a.csv"], {"evaluator": "gpt4_reply"}).verdicts
    assert verdicts is not None
    assert verdicts["prediction"].tolist() == [1, 0] * (len(CLAIMS) // 2)


def test_a_score_of_0_and_1_whose_name_is_an_error_is_turned(tmp_path: Path) -> None:
    said = [at % 3 == 0 for at in range(len(CLAIMS))]
    labels = ["hallucinated" if one else "factual" for one in said]
    labels[:2] = labels[1::-1]  # it is not always right
    table = pd.DataFrame({"output": CLAIMS, "hallucination_score": [int(one) for one in said], "human": labels})
    table.to_csv(tmp_path / "a.csv", index=False)
    table.assign(hallucination_score=table["hallucination_score"].astype(float)).to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        verdicts = load_tables([tmp_path / name]).verdicts
        assert verdicts is not None
        assert verdicts["prediction"].tolist() == [int(not one) for one in said]
    table.assign(hallucination_score=[1, 0] * (len(CLAIMS) // 2)).rename(
        columns={"hallucination_score": "score"}
    ).to_csv(tmp_path / "b.csv", index=False)
    words = {"labels": {"0": 1, "1": 0, "factual": 1, "hallucinated": 0}}
    plain, given = (load_tables([tmp_path / "b.csv"], mapping=one).verdicts for one in ({}, words))
    assert plain is not None
    assert given is not None
    assert given["score"].tolist() == plain["score"].tolist(), "what the words of labels mean turns no score"


def test_a_call_that_failed_is_no_verdict(tmp_path: Path) -> None:
    said = ["yes", "no", "ERROR: rate limit exceeded"] * (len(CLAIMS) // 3)
    pd.DataFrame({"claim": CLAIMS, "label": [1, 0] * (len(CLAIMS) // 2), "judge": said}).to_csv(
        tmp_path / "a.csv", index=False
    )
    with pytest.raises(AmbiguousReadingError, match="judge has 'ERROR: rate limit exceeded'"):
        load_tables([tmp_path / "a.csv"])


def test_a_grade_of_errors_is_supported_below_its_threshold() -> None:
    table = pd.DataFrame({"claim": CLAIMS, "human_severity": [1, 5] * (len(CLAIMS) // 2), "judge": SCORES})
    said = {"label": "human_severity", "high_is_error": "human_severity", "threshold": {"human_severity": 3}}
    claims = load_tables([table], said).claims
    assert claims is not None
    assert claims["label"].tolist() == [1, 0] * (len(CLAIMS) // 2)
