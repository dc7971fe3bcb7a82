"""Tables as users have them: what options and mappings do, what is said, what is refused. Shapes of
files are in `tests/intake`."""

from __future__ import annotations

import json
import sys
import zipfile
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import factaudit as fa
from factaudit import InputError, UsageError
from factaudit.tables import read_table
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.mapping_options import parse_column_mapping_options
from factaudit.tables.questions import AmbiguousReadingError
from factaudit.tables.table_loading import LoadedTables, load_tables

N = 24
DOCS = [
    f"Report {i // 2}: the river {i // 2} runs past the old town and its three mills."
    for i in range(N)
]
CLAIMS = [
    f"The river {i // 2} runs past {'a town' if i % 2 else 'no town'} of note." for i in range(N)
]
LABELS = [i % 2 for i in range(N)]
PREDICTIONS = [int(i % 3 > 0) for i in range(N)]
SCORES = [
    0.9 - 0.01 * i if prediction else 0.3 - 0.01 * i for i, prediction in enumerate(PREDICTIONS)
]
SYSTEMS = ["gpt-4", "llama", "mistral"] * (N // 3)
IDS = [f"c{i:02}" for i in range(N)]
THEIRS = {"document": DOCS, "sentence": CLAIMS, "gold": LABELS}


def spell(values: list[int], yes: Any, no: Any) -> list[Any]:
    return [yes if value else no for value in values]


def load(columns: dict[str, Any], mapping: Any = None) -> tuple[LoadedTables, list[str]]:
    """What becomes of a frame, and what is said."""
    said = []
    return load_tables([pd.DataFrame(columns)], mapping, said.append), said


def list_labels(loaded: LoadedTables) -> list[int]:
    assert loaded.claims is not None
    return loaded.claims["label"].fillna(-1).tolist()


def list_judged(loaded: LoadedTables, what: str = "prediction") -> dict[str, list[Any]]:
    if loaded.verdicts is None:
        return {}
    return {
        str(name): rows[what].fillna(-1).tolist()
        for name, rows in loaded.verdicts.groupby("evaluator")
    }


GRADES = spell(LABELS, 5, 2)
ERRORS = spell(PREDICTIONS, 0, 1)
REPLIES = spell(PREDICTIONS, "Yes, it is", "I see no such year. Verdict: not supported")
#: Columns beside claims and documents, options, and what is predicted; the labels are always the
#: same.
READ = {
    "scores": ({"human": LABELS, "judge": SCORES}, {}, {"judge": PREDICTIONS}),
    "replies of a judge": (
        {"human": LABELS, "gpt4_reply": REPLIES},
        {"evaluator": "gpt4_reply"},
        {"gpt4_reply": PREDICTIONS},
    ),
    "0 and 1 of an error": (
        {"human": spell(LABELS, "factual", "hallucinated"), "hallucination_score": ERRORS},
        {},
        {"table 1": PREDICTIONS},
    ),
    "grades and their threshold": (
        {"rating": GRADES, "judge": spell(PREDICTIONS, 9, 2)},
        {"label": "rating", "threshold": {"rating": 3, "judge": 8.5}, "scale": {"judge": [0, 10]}},
        {"judge": PREDICTIONS},
    ),
    "a threshold that none passes": (
        {"human": LABELS, "judge": spell(PREDICTIONS, 8, 2)},
        {"threshold": {"judge": 8.5}, "scale": {"judge": [0, 10]}},
        {"judge": [0] * N},
    ),
    "grades of errors": (
        {"human_severity": spell(LABELS, 1, 5), "judge": SCORES},
        {
            "label": "human_severity",
            "high_is_error": "human_severity",
            "threshold": {"human_severity": 3},
        },
        {"judge": PREDICTIONS},
    ),
    "labels of errors": (
        {"human": spell(LABELS, 0, 1), "judge": SCORES},
        {"scale": {"human": [1, 0]}},
        {"judge": PREDICTIONS},
    ),
    "words of labels turn no score": (
        {"human": spell(LABELS, "hallucinated", "factual"), "score": ERRORS},
        {"labels": {"factual": 0, "hallucinated": 1}, "evaluator": "score"},
        {"score": ERRORS},
    ),
    "a call without a score": (
        {"human": LABELS, "judge": [None, *SCORES[1:]]},
        {},
        {"judge": [-1, *PREDICTIONS[1:]]},
    ),
}


@pytest.mark.parametrize("name", READ)
def test_columns_are_read_as_options_say(name):
    columns, options, judged = READ[name]
    loaded, said = load({"context": DOCS, "answer": CLAIMS, **columns}, options)
    assert list_labels(loaded) == LABELS
    assert list_judged(loaded) == judged
    assert "doc: context" in said[0]
    assert not any(line.startswith("text ") for line in said), "there is a column of texts"
    # The mapping that was found survives being written down and read again.
    assert loaded.mapping is not None
    kept = json.loads(loaded.mapping.model_dump_json())
    again, _ = load({"context": DOCS, "answer": CLAIMS, **columns}, kept)
    assert list_judged(again) == judged


def test_scores_are_kept_on_the_scale_from_0_to_1():
    loaded, _ = load(THEIRS | {"judge": [1 + 4 * x for x in SCORES]}, {"scale": {"judge": [1, 5]}})
    assert list_judged(loaded, "score")["judge"] == pytest.approx(SCORES)
    stars = [1 + at % 4 for at in range(N)]
    loaded, _ = load(
        THEIRS | {"judge": SCORES, "stars": stars, "note": SYSTEMS},
        {"system": "note", "columns": {"grade": "stars"}},
    )
    assert loaded.claims is not None
    assert loaded.claims["grade"].tolist() == stars
    assert loaded.claims["system"].tolist() == SYSTEMS


@pytest.mark.parametrize("blank", ["", " ", "\t", None])
def test_a_blank_label_is_no_label(blank):
    labels = ["yes", "no", blank] * (N // 3)
    loaded, _ = load(
        {"claim": CLAIMS, "human": labels, "judge_score": [0.9, 0.1, 0.5] * (N // 3)},
        {"label": "human"},
    )
    assert list_labels(loaded) == [1, 0, -1] * (N // 3)


def test_labels_and_judgements_need_no_text():
    loaded, said = load({"case_id": IDS, "human_label": LABELS, "judge_label": PREDICTIONS})
    assert loaded.claims is not None
    assert loaded.claims["claim_id"].tolist() == IDS
    assert (list_labels(loaded), list_judged(loaded)) == (LABELS, {"judge": PREDICTIONS})
    assert (
        "text      no column found, so word overlap and chunking are not audited; to name one, add"
        " --claim COLUMN" in said
    )
    results = fa.compare(loaded.claims, loaded.verdicts)
    assert {"rates", "quantification"} <= set(results.audits)
    assert "surface" not in results.audits


#: Columns, and a line that is said of them.
SAID = {
    "no labels": (
        {"sentence": CLAIMS, "gpt4": SCORES},
        "labels    none found; name their column with --label",
    ),
    "words": (
        THEIRS | {"gold": spell(LABELS, "supported", "refuted")},
        "labels    refuted = 0, supported = 1",
    ),
    "words that mean the opposite": (
        {"sentence": CLAIMS, "hallucinated": spell(LABELS, "No", "Yes")},
        "labels    hallucinated (No supported, Yes not supported)",
    ),
    "rows that stand there twice": (
        {name: [*values, values[0]] for name, values in THEIRS.items()},
        "repeated  1 row has the claim and document of another row; each counts",
    ),
    "columns that nothing reads": (
        {
            "docs_id": IDS,
            "claim": CLAIMS,
            "colour": SYSTEMS,
            "status": [True] * N,
            "gpt4": SCORES,
            "human": LABELS,
        },
        "ignored   docs_id (a measure, no judgement), colour, status",
    ),
    "a misspelt column of ours": (
        {"dataset": ["d"] * N, "docu": DOCS, "claim": CLAIMS, "label": LABELS},
        "unread    docu (did you mean 'doc'?)",
    ),
}


@pytest.mark.parametrize("name", SAID)
def test_what_was_taken_for_what_is_said(name):
    columns, line = SAID[name]
    assert line in load(columns)[1]


def test_what_was_taken_is_said_before_anything_goes_wrong():
    said = []
    table = pd.DataFrame(THEIRS | {"judge": ["5", "x"] * (N // 2)})
    with pytest.raises(InputError, match="'x'"):
        load_tables([table], {"evaluator": "judge", "scale": {"judge": [0, 10]}}, said.append)
    assert said


#: Frames, options, and what is asked.
ASKED = {
    "a word between": (
        {"label": ["supported", "partially supported", "refuted"] * (N // 3)},
        "'partially supported'",
    ),
    "a call that failed": (
        {"label": LABELS, "judge": ["yes", "no", "ERROR: rate limit exceeded"] * (N // 3)},
        "judge has 'ERROR: rate limit exceeded'",
    ),
    "scores that are high where the labels say no": (
        {"label": LABELS, "judge": spell(LABELS, 0.2, 0.8)},
        "'judge' is high where the labels say not attributable",
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_not_certain_is_asked_with_readings_that_work(name):
    columns, text = ASKED[name]
    with pytest.raises(AmbiguousReadingError, match=text) as asked:
        load({"doc": DOCS, "claim": CLAIMS, **columns})
    assert asked.value.readings
    for reading in asked.value.readings:
        options = parse_column_mapping_options(**_parse_arguments(reading.options))
        assert load({"doc": DOCS, "claim": CLAIMS, **columns}, options)[0].claims is not None


def _parse_arguments(arguments: list[str]) -> dict[str, Any]:
    """Arguments of the command line as `parse_column_mapping_options` takes them."""
    found = {}
    for option, value in zip(arguments[::2], arguments[1::2], strict=True):
        key = option.removeprefix("--").replace("-", "_")
        if key in ("label", "claim", "doc", "system"):
            found[key] = value
        else:
            found.setdefault(key, []).append(value)
    return found


#: Columns, mapping, and what the one message says.
REFUSED = {
    "a score outside its scale": (
        {"claim": CLAIMS, "judge": [7] * N},
        {"evaluators": {"judge": {"score": "judge", "scale": [1, 5]}}},
        ("row 1", "'judge'", "from 1 to 5", "24 rows"),
    ),
    "a score that is no number": (
        {"claim": CLAIMS, "judge": ["0.4", "much"] * (N // 2)},
        {"evaluators": {"judge": {"score": "judge"}}},
        ("row 2", "'judge'", "expected a number", "'much'", "12 rows"),
    ),
    "nothing that is known": (
        {"x": CLAIMS, "y": SYSTEMS},
        {"ignore": ["y"]},
        ("nothing in it is mapped", "'claim'"),
    ),
    "verdicts of claims that are nowhere": (
        {"judge": SCORES},
        {"evaluators": {"judge": {"score": "judge"}}},
        ("'claim_id'",),
    ),
    "two columns for one": (
        {"claim": CLAIMS, "a": DOCS, "b": DOCS},
        {"columns": {"doc": ["a", "b"]}},
        ("'doc'", "the table has both"),
    ),
    "a column that is nowhere": (
        {"claim": CLAIMS, "human_label": LABELS, "judge_score": SCORES},
        {"columns": {"label": "human_lable"}},
        ("no column 'human_lable' to map to 'label' (did you mean 'human_label'?)",),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_one_message(name):
    columns, mapping, said = REFUSED[name]
    with pytest.raises(InputError) as error:
        load(columns, mapping)
    assert error.value.total == 1
    for text in ("table 1", *said):
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
def test_a_wrong_mapping_names_its_key(given, said):
    with pytest.raises(UsageError, match="mapping") as error:
        ColumnMapping.from_source(given)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": ["cliam=x"]}, "did you mean 'claim'?"),
        ({"columns": ["claim"]}, "expected a YAML file or NAME=COLUMN"),
        ({"labels": ["good=2"]}, "expected WORD=1"),
        ({"scale": ["five"]}, "expected NAME=LOW:HIGH"),
    ],
)
def test_a_wrong_option_is_a_usage_error(given, said):
    with pytest.raises(UsageError) as error:
        parse_column_mapping_options(**given)
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "empty"),
        ("a.tsv", b"a\tb\n1\t2\t3\n", "expected 2 columns"),
        ("a.tsv", b"a\tb\n\xff\t2\n", "not UTF-8"),
        ("a.json", b'{"a": ', "not JSON"),
        ("a.json", b'{"a": {"b": 3}}', "expected a list of objects"),
        (
            "a.json",
            b'{"m": [{"a": 1}, {"a": 2}], "n": [{"a": 3}]}',
            "'m', 'n' are lists of rows: write each into a file",
        ),
        ("a.json", b"[" * 100_000, "nested too deep"),
        ("a.ndjson", b"[1]\n", "expected a JSON object"),
        ("a.docx", b"x", "expected a name that ends in"),
        ("a.tsv.gz", b"\x1f\x8b\x08broken", "not a whole gzip file"),
    ],
)
def test_a_file_that_is_no_table_is_named(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as error:
        read_table(tmp_path / name)
    assert said in str(error.value)
    assert name in str(error.value)


def test_an_excel_file_is_read_as_the_csv_of_its_sheet(tmp_path):
    pytest.importorskip("openpyxl", reason="needs openpyxl ([dev] extra)")
    rows = pd.DataFrame(
        {"claim": ["It rains.", "It is dry."], "label": [1, None], "note": [None, "sure"]}
    )
    rows.to_excel(tmp_path / "answers.xlsx", index=False)
    assert read_table(tmp_path / "answers.xlsx").to_dict("records") == [
        {"claim": "It rains.", "label": 1, "note": None},
        {"claim": "It is dry.", "label": None, "note": "sure"},
    ]


@pytest.mark.parametrize(
    ("name", "package"), [("answers.xlsx", "openpyxl"), ("answers.xls", "xlrd")]
)
def test_without_its_package_an_excel_file_names_the_extra(tmp_path, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("xl/workbook.xml", "")
    if name.endswith(".xls"):
        (tmp_path / name).write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504))
    with pytest.raises(
        InputError,
        match=r"need the extra \[excel\]: pip install 'factaudit\[excel\]'.*save the sheet as CSV",
    ):
        read_table(tmp_path / name)


def test_utf_16_as_excel_writes_it_is_read(tmp_path):
    (tmp_path / "a.txt").write_text("claim\tlabel\nDie Brücke steht.\t1\n", encoding="utf-16")
    assert read_table(tmp_path / "a.txt").to_dict("records") == [
        {"claim": "Die Brücke steht.", "label": "1"}
    ]


@pytest.mark.parametrize("form", [pd.DataFrame, pa.table], ids=["pandas", "arrow"])
def test_frames_go_in_as_they_are_from_python(form, capsys):
    claims = form({"id": IDS, **THEIRS, "gold": spell(LABELS, "supported", "refuted")})
    verdicts = form({"id": IDS, "metric": ["judge"] * N, "score": SCORES})
    two = fa.compare(claims, verdicts, audits=["rates"], replicates=0)
    assert "doc: document" in capsys.readouterr().err
    (row,) = two.rows("rates", dataset="table 1")
    right = [p == label for p, label in zip(PREDICTIONS, LABELS, strict=True)]
    assert row["n"] == N
    assert row["tpr"] == sum(r for r, label in zip(right, LABELS, strict=True) if label) / sum(
        LABELS
    )
    wide = form(THEIRS | {"judge": SCORES, "text": SYSTEMS})
    one = fa.compare(wide, audits=["rates"], replicates=0, mapping={"doc": "document"})
    assert one.rows("rates", dataset="table 1")[0]["bacc"] == row["bacc"]
    assert fa.judge(wide, ["unigram"])["status"].eq("ok").all()
    with pytest.raises(UsageError, match="no verdicts"):
        fa.compare(claims)


def test_labels_by_id_in_a_table_of_their_own_belong_to_the_claims():
    claims = pd.DataFrame({"claim_id": IDS, "doc": DOCS, "claim": CLAIMS})
    verdicts = pd.DataFrame({"claim_id": IDS, "evaluator": "judge", "score": SCORES})
    labels = pd.DataFrame({"claim_id": IDS, "human_label": LABELS})
    assert list_labels(load_tables([claims, verdicts, labels])) == LABELS
    with pytest.raises(InputError, match="no claim has it"):
        load_tables([claims, verdicts, labels.assign(claim_id="nobody").head(1)])


def test_what_people_said_in_a_list_is_read_after_the_message_is_followed():
    said = [{"by": {"name": name}, "label": "yes"} for name in "abc"]
    table = pd.DataFrame({"sentence": CLAIMS, "source": DOCS, "annotations": [said] * N})
    with pytest.raises(InputError, match=r"table\.explode\('annotations'\)"):
        load_tables([table])
    people = {"annotator": "annotations.by.name", "label": "annotations.label"}
    loaded = load_tables([table.explode("annotations")], {"columns": people})
    assert list_labels(loaded) == [1] * N
    assert loaded.annotations is not None
    assert loaded.annotations["annotator"].nunique() == 3
