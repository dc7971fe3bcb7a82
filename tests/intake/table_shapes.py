"""Tables with more rows, columns and files than their claims: headers of several rows, rows that are no claims, long
annotations beside a judge's verdicts, lists of judgements. Each with its right reading, written down beforehand."""

from __future__ import annotations

import io
import json

import pandas as pd
from generated_shapes import (
    CLAIMS,
    DOCS,
    FIRST_SCORES,
    GPT4,
    A,
    FileShape,
    L,
    N,
    firsts,
    make_csv,
    make_json_lines,
    ones,
    spell,
    texts,
)

TABLE_SHAPES: list[FileShape] = []


def add(name: str, content: bytes, labels: str = L, judges: dict[str, str] | None = None, **ends: object) -> None:
    TABLE_SHAPES.append(FileShape(name, content, labels, judges or {}, **ends))  # type: ignore[arg-type]


# Headers of two rows, as pandas writes columns of two levels; and ids without a name, which are none
levels = pd.DataFrame(
    {
        ("text", "claim"): CLAIMS,
        ("human", "label"): ones,
        ("human", "note"): ["ok"] * N,
        ("judge", "gpt4"): FIRST_SCORES,
    }
)
levels.index.name = "id"
add("levels.csv", levels.to_csv().encode(), judges={"judge.gpt4": A})
add("levels_without_index.csv", levels.to_csv(index=False).encode(), judges={"judge.gpt4": A})
add("levels.json", levels.to_json(orient="records").encode(), judges={"judge.gpt4": A})
add("levels_split.json", levels.to_json(orient="split").encode(), judges={"judge.gpt4": A})
workbook = io.BytesIO()
try:
    levels.to_excel(workbook)
    add("levels.xlsx", workbook.getvalue(), judges={"judge.gpt4": A})
except ImportError:
    pass
words = {
    "": [f"c{k}" for k in range(N)],
    "claim": CLAIMS,
    "human": spell(L, "yes", "no"),
    "gpt4": ["supported", *spell(A[1:], "correct", "unsupported")],
}
add("ids_without_name.csv", make_csv(words), judges=GPT4)

# Rows that are no claims
narrow = {"claim": CLAIMS, "context": DOCS, "human": ones, "gpt4": FIRST_SCORES}
sums = "Accuracy,,,0.75\nKappa,,,0.5\n"
add("two_sums.csv", make_csv(narrow, after=sums), judges=GPT4)
first, _, rest = make_csv(narrow).decode().partition("\n")
for number, hint in enumerate((",,0/1,0-1", "string,string,int64,float64", ",,1=yes 0=no,")):
    add(f"hint_{number}.csv", f"{first}\n{hint}\n{rest}".encode(), judges=GPT4)
blank_last = {**narrow, "context": [*DOCS[:-1], None], "human": [*ones[:-1], None]}
add("last_claim_is_unlabelled.csv", make_csv(blank_last), L[:-1] + "-", GPT4)

# What a judge says of a claim, beside what each of several people said of it
people = {
    "item": [f"c{k}" for k in range(N)] * 3,
    "claim": CLAIMS * 3,
    "annotator": ["ann"] * N + ["bob"] * N + ["cem"] * N,
    "annotation": spell(L + L + A, "supported", "unsupported"),
}
add("long_annotations_judged.csv", make_csv({**people, "gpt4": firsts * 3}), judges=GPT4, people=3)
differs = [*firsts, *(1 - x for x in firsts), *firsts]
add("long_annotations_two_verdicts.csv", make_csv({**people, "gpt4": differs}), ends="expected one verdict of gpt4")

# Lists of judgements, of which one is a person's, one a measure
evaluations = [
    [
        {"evaluator": "gpt-4o", "verdict": a},
        {"evaluator": "human", "verdict": b},
        {"evaluator": "latency", "verdict": "yes"},
    ]
    for a, b in zip(spell(A, "yes", "no"), spell(L, "yes", "no"), strict=True)
]
rows = [{"claim": claim, "evaluations": said} for claim, said in zip(CLAIMS, evaluations, strict=True)]
add(
    "evaluations.jsonl",
    make_json_lines({k: [row[k] for row in rows] for k in rows[0]}),
    L,
    {"gpt-4o": A},
    ends="asked",
    people=1,
)
long = {
    "claim": [claim for claim in CLAIMS for _ in range(2)],
    "metric": ["human_factuality", "minicheck"] * N,
    "value": [x for pair in zip(ones, FIRST_SCORES, strict=True) for x in pair],
}
add("human_metric.csv", make_csv(long), L, {"minicheck": A}, people=1)

# Values as programs print them, and other ways to part cells
printed = {**narrow, "human": [f"np.int64({x})" for x in ones], "gpt4": [f"tensor({x})" for x in FIRST_SCORES]}
add("printed_values.csv", make_csv(printed), judges=GPT4)
spread = {**narrow, "gpt4": [f"{x} ± 0.05" for x in FIRST_SCORES]}
add("spread.csv", make_csv(spread), judges=GPT4)
r_rows = [f'"{k + 1}" "{CLAIMS[k]}" {ones[k]} {FIRST_SCORES[k]}' for k in range(N)]
add("r_table.txt", "\n".join(['"claim" "human" "gpt4"', *r_rows, ""]).encode(), judges=GPT4)
add("sep_line.csv", b"sep=;\n" + make_csv(narrow, sep=";"), judges=GPT4)

# Columns whose names are those of other roles
named = {**texts, "annotator": spell(L, "consistent", "inconsistent"), "gpt4": spell(A, "consistent", "inconsistent")}
add("annotator_says.csv", make_csv(named), judges=GPT4)
doccano = {"id": [*range(N)], "data": CLAIMS, "context": DOCS, "label": spell(L, "yes", "no"), "gpt4": FIRST_SCORES}
add("doccano_data.csv", make_csv(doccano), judges=GPT4)
thirds = spell(L, 1.0, 0.3333)
frank = {**texts, "Factuality": [0.5, *thirds[1:]], "FactCC": firsts, "BERTScore": FIRST_SCORES}
add("mean_of_people.csv", make_csv(frank), "0" + L[1:], {"FactCC": A, "BERTScore": A}, ends="asked")

# A label that never varies is what was asked, and the answer stands elsewhere; or no label at all
prodigy = {"text": CLAIMS, "label": ["SUPPORTED"] * N, "answer": spell(L, "accept", "reject"), "gpt4": FIRST_SCORES}
add("prodigy_binary.csv", make_csv(prodigy), judges=GPT4, ends="asked")
error = {
    "text": CLAIMS,
    "label": ["hallucination"] * N,
    "annotator_answer": spell(L, "no", "yes"),
    "gpt4": FIRST_SCORES,
}
add("asked_for_an_error.csv", make_csv(error), judges=GPT4, ends="asked")
studio = [
    {
        "id": k,
        "data": {"claim": CLAIMS[k], "gpt4": FIRST_SCORES[k]},
        "cancelled_annotations": 0,
        "annotations": [
            {"completed_by": who, "ground_truth": False, "result": [{"value": {"choices": ["Yes" if x else "No"]}}]}
            for who, x in ((1, ones[k]), (2, ones[k]), (3, 1))
        ],
    }
    for k in range(N)
]
add("studio_three_people.json", json.dumps(studio).encode(), judges={"data.gpt4": A}, ends="asked", people=3)

# Of two columns that look like labels one may be a judge's; a follow-up question has each of its readings
risk = {**texts, "is_hallucination": spell(L, False, True), "p_hallucination": spell(A, 0.1, 0.8)}
add("label_and_risk.csv", make_csv(risk), judges={"p_hallucination": A}, ends="asked")
facts = {"human": ["IR", *spell(L[1:], "S", "NS")], "retrieval_chatgpt": spell(A, "S", "NS")}
add("irrelevant_facts.csv", make_csv({**texts, **facts}), "-" + L[1:], {"retrieval_chatgpt": A}, ends="asked")
lines = ["id   human gpt4 claim", *(f"{k}    {ones[k]}     {FIRST_SCORES[k]} {CLAIMS[k]}" for k in range(N))]
add("fixed_width.txt", "\n".join(lines).encode(), ends="fixed width")

# Each claim in a row for each system; and a judge's word that may say whether it was right
systems = {"system": ["s1"] * N + ["s2"] * N, "claim": CLAIMS * 2, "label": ones * 2, "judge": firsts * 2}
add("same_claims_of_systems.csv", make_csv(systems), L + L, {"judge": A + A}, ends="asked")
add("judge_is_right.csv", make_csv({**texts, "human_label": ones, "gpt4_correct": firsts}), L, {}, ends="asked")
minicheck = {"doc": DOCS, "claim": CLAIMS, "pred_label": firsts, "max_support_prob": FIRST_SCORES, "label": ones}
add("minicheck_columns.csv", make_csv(minicheck), judges={"pred": A})

# A reply in a code fence; votes for and against, of which one is support
fenced = [f"```json\n{json.dumps({'verdict': word, 'sure': 0.9})}\n```" for word in spell(A, "yes", "no")]
add("fenced_replies.csv", make_csv({**texts, "human_label": ones, "judge": fenced}), judges={"judge": A}, ends="right")
votes = {**texts, "human_label": ones, "gpt4_yes_votes": spell(A, 5, 1), "gpt4_no_votes": spell(A, 0, 4)}
add("votes_for_and_against.csv", make_csv(votes), judges={"gpt4_yes_votes": A})

# Columns that may be people's beside a judge: marks, levels, stars; a judge's named number, a word with its score
marked = {**texts, "error?": spell(L, "", "x"), "judge_prob": FIRST_SCORES}
add("errors_marked.csv", make_csv(marked), judges={"judge": A}, ends="asked")
checked = {**texts, "our check": ones, "hhem": FIRST_SCORES}
add("our_check.csv", make_csv(checked), judges={"hhem": A}, ends="asked")
levels = {**texts, "support": spell(L, "full", "none"), "autoais": firsts}
add("levels_of_support.csv", make_csv(levels), judges={"autoais": A}, ends="asked")
stars = {**texts, "rating": spell(L, "★★★★★", "★☆☆☆☆"), "judge": FIRST_SCORES}
add("stars_and_judge.csv", make_csv(stars), judges={"judge": A}, ends="asked")
named = {**texts, "human_label": ones, "judge": spell(A, "Rating: [[9]]", "Rating: [[2]]")}
add("named_numbers.csv", make_csv(named), judges={"judge": A}, ends="asked")
sure = {**texts, "human_label": ones, "judge": spell(A, "yes (0.98)", "no (0.13)")}
add("words_with_scores.csv", make_csv(sure), judges={"judge": A})

# What a user added to a file of a known format; a tool's code beside its word
added = {"user_input": CLAIMS, "retrieved_contexts": [str([one]) for one in DOCS], "response": CLAIMS}
added |= {"faithfulness": FIRST_SCORES}
gold = {**added, "gold": spell(L, "supported", "unsupported")}
add("ragas_and_gold.csv", make_csv(gold), judges={"faithfulness": A})
three = {**added, "annotator_1": ones, "annotator_2": ones, "annotator_3": firsts}
add("ragas_and_people.csv", make_csv(three), judges={"faithfulness": A}, ends="asked", people=3)
phoenix = {"human_annotation.label": spell(L, "factual", "hallucinated"), "human_annotation.score": spell(L, 0, 1)}
add("code_beside_word.csv", make_csv({**texts, **phoenix, "judge": FIRST_SCORES}), judges={"judge": A})

# Rows in two lists, and numbers beside the rows
rows = [{"id": k, "document": DOCS[k], "text": CLAIMS[k], "human": ones[k]} for k in range(N)]
verdicts = [{"claim_id": k, "judge": "gpt-4o", "verdict": firsts[k]} for k in range(N)]
lists = {"claims": rows, "verdicts": verdicts}
add("two_lists.json", json.dumps(lists).encode(), ends="are lists of rows: write each into a file of its own")
beside = {"items": rows, "gpt4_scores": FIRST_SCORES}
add("numbers_beside_rows.json", json.dumps(beside).encode(), judges={"gpt4_scores": A})

# Each answer of a survey has an id, which is no response of a system
survey = {"ResponseId": [f"R_{k}" for k in range(2 * N)], "passage": DOCS * 2, "statement": CLAIMS * 2}
survey |= {"Q5": spell(L + L, "Yes", "No"), "PROLIFIC_PID": ["p1"] * N + ["p2"] * N}
add("answers_of_a_survey.csv", make_csv(survey), people=2)

# Whether a judge was right; what people voted, and agreed on, under names of their own
right = [int(a == b) for a, b in zip(ones, firsts, strict=True)]
beside = {**texts, "label": ones, "prediction": firsts, "correct": right}
add("whether_it_was_right.csv", make_csv(beside), judges={"whether_it_was_right": A})
alone = {**texts, "prediction": firsts, "correct": right}
add("right_without_labels.csv", make_csv(alone), judges={"prediction": A}, ends="asked")
votes = {**texts, "A1": ones, "A2": spell("0" + L[1:], 1, 0), "A3": spell("1" * 5 + L[5:], 1, 0), "majority": ones}
add("votes_and_majority.csv", make_csv({**votes, "gpt4": FIRST_SCORES}), judges=GPT4, people=3)
silver = {("label" if name == "majority" else name): cells for name, cells in votes.items()}
add("votes_and_label.csv", make_csv({**silver, "gpt4": FIRST_SCORES}), judges=GPT4, ends="asked")
coded = {**texts, "codeur 1": firsts, "codeur 2": spell("0" + L[1:], 1, 0), "accord": right, "label final": ones}
add("coders_and_final.csv", make_csv({**coded, "gpt4": FIRST_SCORES}), judges=GPT4, people=2)
coded = {**texts, "Kodierer 1": firsts, "Kodierer 2": ones[::-1], "Konsens": ones, "Modell": FIRST_SCORES}
add("coders_and_consensus.csv", make_csv(coded), judges={"Modell": A}, people=2)
signs = {**texts, "human": spell(L, 1, -1), "judge": spell(A, 1, -1)}
add("signs_of_both.csv", make_csv(signs), judges={"judge": A})
cells = [json.dumps({"verdict": word, "reason": "so"}) for word in spell(A, "supported", "unsupported")]
add("named_after_its_form.csv", make_csv({**texts, "human": ones, "gpt4_json": cells}), judges={"gpt4_json": A})
sourced = {**texts, "label": ones, "label_source": ["expert", "crowd"] * 5, "Verdict (AI)": spell(A, "approved", "NOK")}
add("whence_labels_are.csv", make_csv(sourced), judges={"AI": A})
agreed = {**texts, "reviewer_1": firsts, "reviewer_2": ones, "resolved_label": ones, "gpt4": FIRST_SCORES}
add("resolved_label.csv", make_csv(agreed), judges=GPT4, people=2)
agreed["is_supported"] = agreed.pop("resolved_label")
add("label_beside_people.csv", make_csv(agreed), judges=GPT4, ends="asked", people=2)
marked = {**texts, "ok": spell(L, "x", ""), "judge": firsts}
add("marked_ok.csv", make_csv(marked), judges={"judge": A}, ends="asked")
for name, human, judge, words in (
    ("dutch", "mens", "model", ("juist", "onjuist")),
    ("japanese", "人間", "モデル", ("○", "×")),
    ("german", "Goldlabel", "Modell", ("richtig", "falsch")),
    ("french", "vérité", "modèle", ("correct", "erroné")),
    ("brazilian", "rótulo", "gpt4", ("suportado", "não suportado")),
    ("chinese", "人工标签", "通义千问", ("是", "否")),
):
    table = {"claim": CLAIMS, "doc": DOCS, human: spell(L, *words), judge: FIRST_SCORES}
    add(f"people_and_judge_{name}.csv", make_csv(table), judges={judge: A})
for encoding, human, judge, words in (
    ("gb18030", "人工标签", "通义千问", ("是", "否")),
    ("big5", "專家", "模型", ("是", "否")),
    ("cp932", "正解", "判定モデル", ("はい", "いいえ")),
    ("cp1251", "эксперт", "модель", ("верно", "неверно")),
):
    content = make_csv({"claim": CLAIMS, "doc": DOCS, human: spell(L, *words), judge: FIRST_SCORES})
    add(f"{encoding}.csv", content.decode().encode(encoding), judges={judge: A})

# Sheets of a workbook: claims, what people said, what a judge said; and a batch each
ids = [f"c{k}" for k in range(N)]
halves = [{key: cells[part] for key, cells in narrow.items()} for part in (slice(5), slice(5, N))]
sheets = {
    "sheets_of_a_study.xlsx": {
        "items": {"id": ids, "claim": CLAIMS, "source": DOCS},
        "human": {"id": ids, "label": spell(L, "supported", "not supported")},
        "gpt4": {"id": ids, "verdict": spell(A, "supported", "not supported")},
    },
    "sheets_of_batches.xlsx": {"first": halves[0], "second": halves[1]},
    "sheet_and_columns_explained.xlsx": {
        "data": {**narrow, "human": spell(L, 0, 1)},
        "codebook": {"variable": ["human", "context"], "meaning": ["1 = hallucinated, 0 = faithful", "the article"]},
    },
}
for name, tables in sheets.items():
    workbook = io.BytesIO()
    try:
        with pd.ExcelWriter(workbook) as writer:
            for sheet, cells_of_sheet in tables.items():
                pd.DataFrame(cells_of_sheet).to_excel(writer, sheet_name=sheet, index=False)
        add(
            name,
            workbook.getvalue(),
            judges=GPT4,
            ends="right" if "codebook" in tables else "asked",
            people="human" in tables,
        )
    except ImportError:
        pass
