"""Files whose names, codes and words say which end is support, each with its right reading, written down beforehand."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from importlib.util import find_spec

import pandas as pd
from generated_shapes import (
    CLAIMS,
    DOCS,
    GPT4,
    REVERSED_SCORES,
    FileShape,
    L,
    judged,
    labelled,
    list_records,
    make_csv,
    make_json_lines,
    spell,
    table,
)

A = "1101111000"
DIRECTION_SHAPES: list[FileShape] = []
#: Of an error: a column's name, and the words for an error and for none.
ERROR_COLUMNS = [
    ("환각 여부", "예", "아니오"),
    ("halüsinasyon", "evet", "hayır"),
    ("halucinace", "ano", "ne"),
    ("halucynacja", "tak", "nie"),
    ("ハルシネーション", "あり", "なし"),
    ("hallusinaatio", "kyllä", "ei"),
    ("ảo giác", "có", "không"),
    ("הזיה", "כן", "לא"),
    ("هلوسة", "نعم", "لا"),
    ("मतिभ्रम", "हाँ", "नहीं"),
    ("Halluzination?", "WAHR", "FALSCH"),
    ("Hallucination", "VRAI", "FAUX"),
    ("alucinación", "VERDADERO", "FALSO"),
    ("allucinazione", "VERO", "FALSO"),
    ("hallucinatie", "WAAR", "ONWAAR"),
    ("halucynacja", "PRAWDA", "FAŁSZ"),
    ("галлюцинация", "ИСТИНА", "ЛОЖЬ"),
    ("hallucination", "ja", "nej"),
    ("幻覚", "○", "×"),
    ("幻觉", "有", "无"),
    ("human_mistake", "yes", "no"),
    ("human_made_up", "yes", "no"),
]
#: Of support, though the name holds a word for an error; and the words for support and for none.
SUPPORT_COLUMNS = [
    ("Hallucinated (0) / Faithful (1)", "1", "0"),
    ("human label: 0=unsupported, 1=supported", "1", "0"),
    ("Hallucination? (0 = yes, 1 = no)", "1", "0"),
    ("gold (1-entail, 0-contradict)", "1", "0"),
    ("hallucination_check_passed", "yes", "no"),
    ("free from hallucination", "yes", "no"),
    ("keine Fehler", "ja", "nein"),
    ("sans hallucination", "oui", "non"),
    ("无幻觉", "是", "否"),
    ("human_supported_or_refuted", "TRUE", "FALSE"),
]


def add_shape(name: str, columns: dict[str, object], judge: str | None = "gpt4", ends: str = "right") -> None:
    content = make_csv(columns)  # type: ignore[arg-type]
    DIRECTION_SHAPES.append(FileShape(name, content, L, {judge: A} if judge else {}, ends))


def add_content(name: str, content: bytes, judges: Mapping[str, str] = GPT4, ends: str = "right") -> None:
    DIRECTION_SHAPES.append(FileShape(name, content, L, judges, ends))


for number, (column, error, fine) in enumerate(ERROR_COLUMNS):
    add_shape(f"error_label_{number}.csv", {**judged, column: spell(L, fine, error)})
    judge = f"GPT-4 {column}"
    ends = "asked" if "human" in column else "right"  # whose word is it
    add_shape(f"error_judge_{number}.csv", {**labelled, judge: spell(A, fine, error)}, judge, ends)
for number, (column, fine, error) in enumerate(SUPPORT_COLUMNS):
    ends = "asked" if column in ("keine Fehler", "无幻觉") else "right"  # whether of people is not said
    add_shape(f"support_label_{number}.csv", {**judged, column: spell(L, fine, error)}, ends=ends)

add_shape("error_free.csv", {**labelled, "error_free": judged["gpt4_score"]}, "error_free", "asked")

# One word is a verdict, the other says yes or no; a name that may call an error, or deny one
add_shape("letters_yes_no_spanish.csv", {**judged, "alucinación": spell(L, "N", "S")}, ends="asked")
add_shape("present_absent.csv", {**judged, "contradiction": spell(L, "absent", "present")}, ends="asked")
for word in ("issue", "problem", "rejected", "misleading", "lie"):
    add_shape(f"human_{word}.csv", {**judged, f"human_{word}": spell(L, "no", "yes")}, ends="asked")
for word in ("doubt", "conflict", "badness", "loss", "issue_score"):
    add_shape(f"judge_{word}.csv", {**labelled, f"judge_{word}": REVERSED_SCORES}, None, "asked")
    shape = DIRECTION_SHAPES.pop()
    name = f"judge_{word}".removesuffix("_score")
    DIRECTION_SHAPES.append(FileShape(shape.name, shape.content, L, {name: A}, "asked"))
add_shape(
    "defense.csv",
    {
        **{k: v for k, v in table.items() if k != "gpt4_score"},
        "hallucination_defense": [round(1 - x, 2) for x in REVERSED_SCORES],
    },
    "hallucination_defense",
    "asked",
)

# What is written beside a score's name
for number, (column, name) in enumerate(
    [
        ("judge score (lower is better)", "judge score (lower is better)"),
        ("gpt4 score, high = bad", "gpt4 score, high = bad"),
        ("misinformation_score", "misinformation"),
        ("non_factual_prob", "non_factual"),
    ]
):
    add_shape(f"low_is_good_{number}.csv", {**labelled, column: REVERSED_SCORES}, name)
grades = spell(A, 1, 5)
add_shape(
    "best_is_one.csv", {**labelled, "gpt4 rating (1 = best, 5 = worst)": grades}, "gpt4 rating (1 = best, 5 = worst)"
)
for number, column in enumerate(
    ["hallucination score [higher is better]", "one_minus_p_hallucination", "HaluEval judge"]
):
    add_shape(f"high_is_good_{number}.csv", {**labelled, column: judged["gpt4_score"]}, column)

# Measures and other qualities, of long tables and of wide ones
ids = [f"c{number}" for number in range(len(L))]
for number, (name, values) in enumerate(
    [
        ("latency", [1.2] * 10),
        ("tokens", [120, *[90] * 9]),
        ("helpfulness", [0.9] * 10),
        ("answer_relevancy", [0.4] * 10),
    ]
):
    metrics = ["faithfulness"] * 10 + [name] * 10
    twice = {key: [*table[key], *table[key]] for key in ("claim", "context", "human_label")}
    scores = [*judged["gpt4_score"], *values]
    add_shape(f"long_{number}.csv", {"item_id": ids * 2, **twice, "metric": metrics, "score": scores}, "faithfulness")
for column in ("retrieval_score", "bm25_score", "gpt4_overall", "gpt4_certainty", "ai_generated_probability"):
    add_shape(f"{column}.csv", {**table, column: REVERSED_SCORES[::-1]}, ends="asked")
for column in ("machine_translated", "gpt4_verifiable"):
    add_shape(f"{column}.csv", {**table, column: spell(A[::-1], "TRUE", "FALSE")}, ends="asked")
for column in ("gpt4_verbosity", "judge_ttft", "llm_cache_hit"):
    add_shape(f"{column}.csv", {**table, column: REVERSED_SCORES[::-1]})

# Labels that say the opposite of what all evaluators say; HaluEval's own results; what Labelbox writes of one person
opposite = {**labelled, "human_label": spell(L, 0, 1)}
for judges in ({"gpt4": L}, {"gpt4": L, "claude": L[:9] + "0"}):
    columns = opposite | {name: spell(said, 1, 0) for name, said in judges.items()}
    DIRECTION_SHAPES.append(FileShape(f"labels_opposed_{len(judges)}.csv", make_csv(columns), L, judges, "asked"))
halueval = {"knowledge": DOCS, "question": ["When?"] * 10, "answer": CLAIMS}
halueval |= {"ground_truth": spell(L, "No", "Yes"), "judgement": spell(A, "No", "Yes")}
DIRECTION_SHAPES.append(FileShape("halueval_out.jsonl", make_json_lines(halueval), L, {"halueval_out": A}))

# Code books: comments above the names, a footer, a map in a JSON document, another sheet; of labels alone, or of whom
coded = {**judged, "label": spell(L, 0, 1)}
book = "label: 1 = hallucinated, 0 = faithful"
add_content("codes_in_comments.csv", make_csv(coded, before=f"# exported 2024-05-03\n# {book}\n"))
add_content("codes_in_footer.csv", make_csv(coded, after=f'\n"Key: {book}",,,\n'))
add_content(
    "codes_upright.csv", make_csv({**judged, "label": spell(L, 1, 0)}, before="# 1 = faithful; 0 = hallucinated\n")
)
for key, codes in (
    ("label_map", {"0": "supported", "1": "hallucinated"}),
    ("label2id", {"supported": 0, "hallucinated": 1}),
    ("label_names", ["faithful", "hallucinated"]),
):
    document = {"meta": {key: codes}, "rows": list_records(coded)}
    add_content(f"{key}.json", json.dumps(document).encode())
own = {"claim": CLAIMS, "doc": DOCS, "label": spell(L, 0, 1)}
document = {"label_map": {"0": "supported", "1": "hallucinated"}, "data": list_records(own)}
add_content("label_map_beside_own_columns.json", json.dumps(document).encode(), {})
verdicts = {**coded, "gpt4": spell(A, 1, 0)}
del verdicts["gpt4_score"]
add_content("codes_of_labels_or_of_all.csv", make_csv(verdicts, before="# 1 = hallucinated\n"), ends="asked")
add_content("codes_unknown.csv", make_csv(coded, before="# label: 1 = bogus, 0 = hallucinated or fine\n"), ends="asked")
workbook = io.BytesIO()
if find_spec("openpyxl"):  # else the test skips it
    with pd.ExcelWriter(workbook) as writer:
        pd.DataFrame({"code": [0, 1], "meaning": ["supported", "hallucinated"]}).to_excel(
            writer, sheet_name="Codebook", index=False
        )
        pd.DataFrame(coded).to_excel(writer, sheet_name="Data", index=False)
add_content("codes_in_sheet.xlsx", workbook.getvalue())

# Two words, of which one alone is known: they say the opposite, either way
add_shape("faithful_hallucinated_letters.csv", {**judged, "human_label": spell(L, "F", "H")}, ends="asked")
add_shape("spanish_letters.csv", {**judged, "human_label": spell(L, "V", "F")}, ends="asked")
