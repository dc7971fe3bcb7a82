"""Files as other tools, spreadsheets and people write them, made in memory, each with its right reading.

A reading was written down before the file was tried; those that were refused, asked about or misread then are kept.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

Columns = Mapping[str, Sequence[Any]]
N = 10
#: What people say of the claims, and what two judges do.
L, A, B = "1101011001", "1101111000", "1001010111"
FIRST_SCORES = [0.91, 0.83, 0.12, 0.77, 0.64, 0.95, 0.88, 0.22, 0.31, 0.45]
SECOND_SCORES = [0.88, 0.42, 0.35, 0.66, 0.13, 0.71, 0.09, 0.57, 0.93, 0.62]
REVERSED_SCORES = [round(1 - x, 2) for x in FIRST_SCORES]
TOWNS = ["Arle", "Brode", "Celm", "Dunt", "Erph", "Fosse", "Gand", "Hult", "Ivel", "Jarn"]
CLAIMS = [f"The market of {town} opens at nine on Saturdays." for town in TOWNS]
DOCS = [
    f"{town}, a town on the river. Its market is open on Saturdays from nine to one, on no other day." for town in TOWNS
]


@dataclass(frozen=True)
class FileShape:
    """A file, and what it says. ``labels`` and ``judges``: a digit or ``-`` (none) for each claim. ``ends``: ``right``,
    ``asked`` (two readings are possible, of which this is one), or what the refusal says."""

    name: str
    content: bytes
    labels: str = "-" * N
    judges: Mapping[str, str] = field(default_factory=dict)
    ends: str = "right"
    people: int = 0

    def describe(self) -> dict[str, Any]:
        """What is read, in the terms of `describe_tables`."""
        found = {"claims": len(self.labels), "labels": self.labels, "people": self.people}
        return {**found, "evaluators": dict(self.judges)}


def spell(digits: str, one: Any, zero: Any, none: Any = None) -> list[Any]:
    return [{"1": one, "0": zero}.get(digit, none) for digit in digits]


def make_csv(columns: Columns, sep: str = ",", encoding: str = "utf-8", before: str = "", after: str = "") -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sep, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return (before + text.getvalue() + after).encode(encoding)


def list_records(columns: Columns) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def make_json_lines(columns: Columns) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in list_records(columns)).encode()


def make_parquet(columns: Mapping[Any, Sequence[Any]]) -> bytes:
    content = io.BytesIO()
    pd.DataFrame(columns).to_parquet(content)
    return content.getvalue()


def make_zip(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(name, content)
    return packed.getvalue()


def make_arrow_parquet(columns: Columns, class_names: Mapping[str, Sequence[str]] | None = None) -> bytes:
    """A file as `datasets` writes it, with the names of classes in its metadata."""
    features = {name: {"names": names, "_type": "ClassLabel"} for name, names in (class_names or {}).items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    content = io.BytesIO()
    pq.write_table(pa.table(dict(columns)).replace_schema_metadata(metadata), content)
    return content.getvalue()


ones = [int(digit) for digit in L]
firsts = [int(digit) for digit in A]
texts: dict[str, Any] = {"claim": CLAIMS, "context": DOCS}
#: Texts and what gpt4 scores; these and the labels.
judged: dict[str, Any] = {**texts, "gpt4_score": FIRST_SCORES}
table: dict[str, Any] = {**judged, "human_label": ones}
labelled: dict[str, Any] = {**texts, "human_label": ones}
GPT4 = {"gpt4": A}
SHAPES: list[FileShape] = []


def add(
    name: str,
    content: bytes | Columns,
    labels: str = L,
    judges: Mapping[str, str] = GPT4,
    ends: str = "right",
    people: int = 0,
) -> None:
    """A shape; of columns a CSV file."""
    data = content if isinstance(content, bytes) else make_csv(content)
    SHAPES.append(FileShape(name, data, labels, judges, ends, people))


def add_words(name: str, column: str, cells: Sequence[Any], labels: str = L, ends: str = "right") -> None:
    """A table whose labels are in a column of this name."""
    add(name, {**judged, column: cells}, labels, ends=ends)


def add_columns(name: str, columns: Columns, ends: str = "right") -> None:
    """A table of labels and scores with further columns that are nothing that was judged."""
    add(name, {**table, **columns}, ends=ends)


# Words and codes for labels
SIDES = {"1": "Agree", "0": "Disagree", "-": "Neutral"}
add_words("agree_neutral.csv", "human rating", [SIDES[d] for d in "1101-11001"], "1101011001", "asked")
add_words("agree.csv", "human rating", ["Strongly agree", *(SIDES[d] for d in L[1:9]), "Strongly agree"])
add_words("codes_mnli.csv", "label", [0, 0, 1, 0, 2, 0, 0, 1, 2, 0], ends="asked")
add_words("code_99.csv", "human_label", spell("1101011-01", 1, 0, 99), "1101011-01", "asked")
add_words("code_minus_1.csv", "human_label", spell("1101011-01", 1, 0, -1), "1101011-01", "asked")
add_words("marks_x.csv", "human_supported", spell(L, "x", ""), ends="asked")
add_words("checked.csv", "Supported?", spell(L, "checked", ""), ends="asked")
add_words("blank_is_no_error.csv", "hallucination_type", spell(L, "", "extrinsic"), ends="asked")
add_words("sql_nulls.csv", "human_label", spell("1101-11001", "t", "f", "\\N"), "1101-11001")
add_words("sas_dots.csv", "human_label", spell("1101-11001", 1, 0, "."), "1101-11001")
add_words("yes_no_in_header.csv", "Supported? (Y/N)", spell(L, "Y", "N"))
add_words("incorrect.csv", "incorrect", spell(L, 0, 1))
add_words("is_wrong.csv", "is_wrong", spell(L, "no", "yes"))
add_words("fehlerhaft.csv", "fehlerhaft", spell(L, "nein", "ja"))
add_words("is_fine.csv", "is_fine", spell(L, "yes", "no"), ends="asked")
polish = {"zdanie": CLAIMS, "dokument": DOCS, "człowiek": spell(L, "tak", "nie"), "sędzia GPT": spell(A, "tak", "nie")}
add("polish.csv", make_csv(polish, sep=";"), judges={"sędzia GPT": A})
turkish = {"iddia": CLAIMS, "belge": DOCS, "insan": spell(L, "evet", "hayır"), "gpt4": spell(A, "evet", "hayır")}
add("turkish.csv", turkish)
graded = {"input": DOCS, "output": CLAIMS, "human": spell(L, "yes", "no"), "model_graded_fact": spell(A, "C", "I")}
add("letters.csv", graded, judges={"model_graded_fact": A}, ends="asked")
add_words("errado.csv", "errado", spell(L, "não", "sim"))
add_words("alucinacion.csv", "alucinación", spell(L, "no", "sí"))
add_words("ground_truth.csv", "groundtruth", ones)
add_words("czech.csv", "člověk", spell(L, "ano", "ne"))
add_words("ends_of_likert.csv", "support (1-5)", spell(L, 5, 1), ends="asked")
add_words("votes.csv", "n_yes", spell(L, 3, 1), ends="asked")

# Scores, and in which direction they run
add("p_false.csv", {**labelled, "p_false": REVERSED_SCORES}, judges={"p_false": A})
thirds = {"p_neutral": [x / 2 for x in REVERSED_SCORES], "p_contradiction": [x / 2 for x in REVERSED_SCORES]}
add("nli_classes.csv", {**labelled, "p_entailment": FIRST_SCORES, **thirds}, judges={"p_entailment": A})
classes = {"proba_0": REVERSED_SCORES, "proba_1": FIRST_SCORES}
add("predict_proba.csv", {**labelled, **classes}, judges={"proba_1": A})
yardstick = {"truth": spell(L, "yes", "no"), ".pred_no": REVERSED_SCORES, ".pred_yes": FIRST_SCORES}
add("yardstick.csv", yardstick, judges={".pred_yes": A})
logits = [round(4 * (0.5 - x), 2) for x in FIRST_SCORES]
add("logit_of_error.csv", {**labelled, "hallucination_logit": logits}, judges={"hallucination": A})
add("selfcheck.csv", {**labelled, "selfcheckgpt": REVERSED_SCORES}, judges={"selfcheckgpt": A}, ends="asked")
add("timeout.csv", {**labelled, "gpt4_score": [*FIRST_SCORES[:9], "timeout"]}, judges={"gpt4": A[:9] + "-"})
errors = {"gpt4_score": [*FIRST_SCORES[:9], "#DIV/0!"], "nli_score": SECOND_SCORES}
add("excel_errors.csv", {**labelled, **errors}, judges={"gpt4": A[:9] + "-", "nli": B})
add("half_broken.csv", {**labelled, "gpt4_score": [*FIRST_SCORES[:5], *["error 500"] * 5]}, ends="expected")
add("bounded.csv", {**labelled, "gpt4_score": [">0.99", *FIRST_SCORES[1:9], "<0.01"]})
add("uptrain.csv", {**texts, "score_factual_accuracy": FIRST_SCORES}, "-" * N, {"factual_accuracy": A})
add("sklearn.csv", {"y_test": ones, "y_pred": firsts, "y_proba": FIRST_SCORES}, judges={"sklearn": A})
add("evaluate.csv", {"predictions": firsts, "references": ones}, judges={"evaluate": A}, ends="asked")
percents = [round(100 * x) for x in FIRST_SCORES]
add("confidence.csv", {**labelled, "confidence of judge": percents}, judges={"confidence of judge": A}, ends="asked")
add("flagged.csv", {**labelled, "gpt4_flagged": spell(A, 0, 1)}, judges={"gpt4_flagged": A})

# Columns that nothing judged
add_columns("deviations.csv", {"gpt4_std": [0.1 + 0.01 * i for i in range(N)]})
add_columns("calls.csv", {"gpt4_cached": spell(B, True, False), "gpt4_timeout": spell(A, False, True)})
add_columns("call_error.csv", {"gpt4_error": spell(B, True, False)}, "asked")
add_columns("languages.csv", {"lang": spell(B, "no", "si")})
add_columns("thresholds.csv", {"gpt4_threshold": [0.5, 0.4] * 5})
add_columns("abstractiveness.csv", {"abstractiveness": SECOND_SCORES}, "asked")
add_columns("entropy.csv", {"semantic_entropy": SECOND_SCORES}, "asked")
add_columns("always_five.csv", {"claude_score": [5] * N}, "asked")

# Several people, and models among them
add("ann_columns.csv", {**judged, "label_ann1": ones, "label_ann2": ones, "label_ann3": firsts}, people=3)
models = {"claim": CLAIMS * 2, "context": DOCS * 2, "annotator": ["human"] * N + ["gpt-4"] * N, "label": ones + firsts}
add("model_as_annotator.csv", models, judges={"gpt-4": A}, ends="asked", people=1)
sources = {"item_id": [*range(N)] * 2, "claim": CLAIMS * 2, "source": ["human"] * N + ["gpt-4"] * N}
add("model_as_source.csv", {**sources, "verdict": spell(L + A, "yes", "no")}, judges={"gpt-4": A}, people=1)
toloka = {"INPUT:claim": CLAIMS * 2, "OUTPUT:result": spell(L + L, "supported", "not_supported")}
add("toloka.tsv", make_csv({**toloka, "ASSIGNMENT:worker_id": ["a"] * N + ["b"] * N}, "\t"), L, {}, "right", 2)
marks = [{"support": {word: "true"}} for word in spell(L, "supported", "unsupported")]
potato = {"id": [f"i{i}" for i in range(N)], "displayed_text": CLAIMS, "label_annotations": marks}
add("potato.jsonl", make_json_lines(potato), judges={}, ends="asked")
workers = [[{"worker": who, "label": word} for who in "ab"] for word in spell(L, "supported", "unsupported")]
add("lists_of_workers.jsonl", make_json_lines({**judged, "annotations": workers}), ends="asked", people=2)

# How tables are written
by_row = {name: {str(i): value for i, value in enumerate(values)} for name, values in table.items()}
add("pandas_default.json", json.dumps(by_row).encode())
add("by_id.json", json.dumps({f"c{i}": row for i, row in enumerate(list_records(table))}).encode())
add("zipped.json.gz", gzip.compress(json.dumps({"rows": list_records(table)}).encode()))
add("old_mac.csv", make_csv(table).replace(b"\n", b"\r"))
add("no_mark.csv", make_csv(table, encoding="utf-16-le"))
ruler = make_csv(table, sep="|", after="(10 rows)\n").replace(b"human_label\n", b"human_label\n---+---+---+---\n", 1)
add("psql.txt", ruler)
add("no_header.tsv", b"\n".join(make_csv(table, sep="\t").split(b"\n")[1:]), ends="the columns' names, found '0.91'")
add("two_lines_in_header.csv", {**labelled, "Judge score\n(0-1)": FIRST_SCORES}, judges={"Judge": A})
levels = {("text", "claim"): CLAIMS, ("human", "label"): ones, ("judge", "gpt4"): FIRST_SCORES}
add("two_levels.parquet", make_parquet(levels), judges={"judge.gpt4": A})

# Languages, and who judged
german = {
    "Nr": [*range(N)],
    "Dokument": DOCS,
    "Behauptung": CLAIMS,
    "Bewertung Mensch": spell(L, "belegt", "nicht belegt"),
}
comma = [str(score).replace(".", ",") for score in FIRST_SCORES]
add("german_scores.csv", make_csv({**german, "Punktzahl GPT-4": comma}, sep=";"), judges={"GPT-4": A})
richter = {"Modell": ["a", "b"] * 5, "Kontext": DOCS, "Antwort": CLAIMS, "Korrekt?": spell(L, "richtig", "falsch")}
said = {"Richter": spell(A, "stimmt", "stimmt nicht"), "Richter Punkte": comma}
add("richter.csv", make_csv({**richter, **said}, sep=";"), judges={"Richter": A})
hindi = {
    "क्रम": [*range(N)],
    "दस्तावेज़": DOCS,
    "दावा": CLAIMS,
    "मानव लेबल": spell(L, "सही", "गलत"),
    "gpt4_score": FIRST_SCORES,
}
add("hindi.csv", hindi)
arabic = {"الادعاء": CLAIMS, "المصدر": DOCS, "الحكم البشري": spell(L, "نعم", "لا"), "GPT": spell(A, "نعم", "لا")}
add("arabic.csv", arabic, judges={"GPT": A})
greek = {"ισχυρισμός": CLAIMS, "πηγή": DOCS, "άνθρωπος": spell(L, "ναι", "όχι"), "GPT": spell(A, "ναι", "όχι")}
add("greek.csv", greek, judges={"GPT": A})
vietnamese = {"câu": CLAIMS, "tài liệu": DOCS, "con người": spell(L, "đúng", "sai"), "GPT": spell(A, "đúng", "sai")}
add("vietnamese.csv", vietnamese, judges={"GPT": A})
french = {
    "énoncé": CLAIMS,
    "document source": DOCS,
    "jugement humain": spell(L, "vrai", "faux"),
    "score du juge": comma,
}
add("score_du_juge.csv", make_csv(french, sep=";"), judges={"score du juge": A})
spanish = {"afirmación": CLAIMS * 2, "documento": DOCS * 2, "etiqueta humana": spell(L + L, "sí", "no")}
by_judge = {"juez": ["gpt4"] * N + ["claude"] * N, "puntuación": FIRST_SCORES + SECOND_SCORES}
add("juez.csv", {**spanish, **by_judge}, judges={"gpt4": A, "claude": B})

# What could be labels, and what could not
add(
    "hallucination_risk.csv",
    {**labelled, "hallucination_risk": REVERSED_SCORES},
    judges={"hallucination_risk": A},
    ends="asked",
)
add_words("thumbs.csv", "user_thumb", spell(L, "up", "down"), ends="asked")
add_words("support_level.csv", "support_label", spell(L, "full", "none"), ends="asked")
adherence = {"adherence_score": spell(L, "True", "False"), "trulens_groundedness": SECOND_SCORES}
add("adherence.csv", {**texts, **adherence}, judges={"trulens_groundedness": B}, ends="asked")
likert = {
    "rater": ["ann"] * N + ["bob"] * N,
    "agreement": spell(L[:3] + "-" + L[4:] + L, "agree", "disagree", "neutral"),
}
add(
    "raters_who_agree.csv",
    {"id": [*range(N)] * 2, "claim": CLAIMS * 2, "document": DOCS * 2, **likert},
    L,
    {},
    "asked",
    2,
)
tested = {
    "example_id": [*range(N)] * 2,
    "model_under_test": ["a", "b"] * N,
    "judge_name": ["gpt-4o"] * N + ["haiku"] * N,
}
verdicts = {"judge_verdict": spell(A + B, "pass", "fail"), "human_verdict": spell(L + L, "pass", "fail")}
add("model_under_test.csv", {**tested, **verdicts}, judges={"gpt-4o": A, "haiku": B})
feedback = [[{"name": "hallucination_metric", "value": score, "source": "sdk"}] for score in REVERSED_SCORES]
opik = {
    "id": [f"t{i}" for i in range(N)],
    "output": [{"answer": claim} for claim in CLAIMS],
    "feedback_scores": feedback,
}
add("scores_by_name.jsonl", make_json_lines(opik), "-" * N, {"hallucination_metric": A}, "asked")
patronus = {"task_context": DOCS, "task_output": CLAIMS, "evaluator_id": ["lynx"] * N, "pass": spell(A, True, False)}
add("patronus.jsonl", make_json_lines(patronus), "-" * N, {"lynx": A})

weave = {"inputs": [{"doc": doc} for doc in DOCS], "output": CLAIMS}
weave["scores"] = [{"HallucinationFreeScorer": {"has_hallucination": digit == "0"}} for digit in A]
add("weave.jsonl", make_json_lines(weave), "-" * N, {"scores.HallucinationFreeScorer.has_hallucination": A})
success = {"Faithfulness (success)": spell(A, "true", "false"), "Faithfulness (score)": FIRST_SCORES}
add("in_brackets.csv", {**labelled, **success}, judges={"Faithfulness": A})
add(
    "alignscore.csv",
    {"Claim Text": CLAIMS, "Gold": spell(L, "S", "NS"), "AlignScore": FIRST_SCORES},
    judges={"AlignScore": A},
)
replies = [json.dumps({"score": score, "reason": "r"}) for score in FIRST_SCORES]
add("json_cells.csv", {**labelled, "judge": replies}, judges={"judge": A})
add("dict_cells.csv", {**labelled, "judge": [str(json.loads(reply)) for reply in replies]}, judges={"judge": A})
add("lines.txt", make_json_lines(table))
add("y_hat.csv", {"y": ones, "y_hat": firsts}, judges={"y_hat": A})
add(
    "ki.csv",
    make_csv({"Aussage": CLAIMS, "Mensch": spell(L, "WAHR", "FALSCH"), "KI": spell(A, "WAHR", "FALSCH")}, sep=";"),
    judges={"KI": A},
)

# Files that are none of a table's
add("page.csv", b"<!DOCTYPE html><html><table><tr><td>claim</td></tr></table></html>", ends="a web page")
add("workbook.csv", b"PK\x03\x04" + bytes(40), ends="an Excel file, whatever its name says")

# Numbers of errors, votes two lists deep, and metrics whose names say a part of them
add("severity.csv", {**judged, "hallucination_severity": [0 if x else 2 for x in ones]}, ends="asked")
add("num_errors.csv", {**judged, "num_errors": [0 if x else 3 for x in ones]}, ends="asked")
votes = [
    {
        "article": doc,
        "summary_sentences": [
            {"sentence": claim, "responses": [{"worker_id": k, "response": "yes" if x else "no"} for k in range(3)]}
        ],
    }
    for doc, claim, x in zip(DOCS, CLAIMS, ones, strict=True)
]
add("qags.jsonl", "".join(json.dumps(row) + "\n" for row in votes).encode(), judges={}, ends="asked", people=3)
add("bertscore_f1.csv", {**labelled, "bertscore_f1": FIRST_SCORES}, judges={"bertscore_f1": A})
add(
    "polish.csv",
    make_csv({"dokument": DOCS, "twierdzenie": CLAIMS, "etykieta": spell(L, "tak", "nie")}, sep=";"),
    judges={},
)
add_columns(
    "hours.csv", {"week": [0, 1] * 5, "hour": [k / 10 for k in range(N)], "percentile": [k / 9 for k in range(N)]}
)

# Parquet of Hugging Face's datasets: lists of passages, of votes, and objects with lists
passages = [[doc, "The town has a mill."] for doc in DOCS]
add(
    "ragas.parquet",
    make_parquet(
        {"question": ["When?"] * N, **texts, "context": passages, "label": ones, "faithfulness": FIRST_SCORES}
    ),
    judges={"faithfulness": A},
)
meta = [{"tags": ["a", "b"], "model": "llama"}] * N
add("meta.parquet", make_parquet({**judged, "human_label": ones, "meta": meta}))
ballots = [[{"worker": k, "label": x} for k in (1, 0)] for x in ones]
add("ballots.parquet", make_parquet({**texts, "votes": ballots}), judges={}, ends="asked", people=2)

# Names of classes in the metadata of Hugging Face's datasets, which say what 0 and 1 are
errors = [1 - x for x in ones]
faithful_first = {"label": ["faithful", "hallucinated"]}
add("class_names.parquet", make_arrow_parquet({**judged, "label": errors}, faithful_first))
own_columns = {"dataset": ["towns"] * N, "claim": CLAIMS, "doc": DOCS, "label": errors}
add("class_names_own.parquet", make_arrow_parquet(own_columns, faithful_first), judges={})
unlabelled = [-1 if k == 4 else x for k, x in enumerate(errors)]
add("class_names_and_none.parquet", make_arrow_parquet({**judged, "label": unlabelled}, faithful_first), "1101-11001")
sampled = {"user_input": ["When?"] * N, "retrieved_contexts": [[doc] for doc in DOCS], "response": CLAIMS}
add(
    "class_names_ragas.parquet",
    make_arrow_parquet({**sampled, "faithfulness": FIRST_SCORES, "label": errors}, faithful_first),
    judges={"faithfulness": A},
)
page = {
    "features": [{"feature_idx": 0, "name": "label", "type": {"names": ["entailment", "not_entailment"]}}],
    "rows": [{"row_idx": k, "row": row} for k, row in enumerate(list_records({**judged, "label": errors}))],
}
add("class_names_page.json", json.dumps(page).encode())

# Names that say three values that a cell may have; Arrow's maps; an archive
add_words("three_values.csv", "faithful (Y/N/?)", spell("1101-11001", "Y", "N", "?"), "1101-11001")
add_words("three_values_two_used.csv", "faithful (Y/N/?)", spell(L, "Y", "N"))
add_words("three_values_bare.csv", "Supported? Y/N/NA", spell(L, "Y", "N"))
add_words("three_values_reversed.csv", "Hallucination? (Y/N/?)", spell(L, "N", "Y"))
scores_by_name = [{"gpt4": a, "claude": b} for a, b in zip(FIRST_SCORES, SECOND_SCORES, strict=True)]
maps = pa.array([[*scores.items()] for scores in scores_by_name], pa.map_(pa.string(), pa.float64()))
by_name = {"scores.gpt4": A, "scores.claude": B}
add("map.parquet", make_arrow_parquet({**labelled, "scores": maps}), judges=by_name)
add("packed.csv", make_zip("claims.csv", make_csv(table)), ends=r"an archive that holds claims\.csv: unpack it")
add(
    "jury_tie.csv",
    {**labelled, "jury": [*spell(A[:9], "supported", "unsupported"), "tie"]},
    judges={"jury": A},
    ends="asked",
)
