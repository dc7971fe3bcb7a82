"""What columns, rows and lists are: whose words they hold, and what is asked of a known format with a column more. Each
with its right reading, written down beforehand."""

from __future__ import annotations

import json

from generated_shapes import (
    CLAIMS,
    DOCS,
    FIRST_SCORES,
    GPT4,
    A,
    B,
    FileShape,
    L,
    N,
    firsts,
    labelled,
    make_csv,
    make_json_lines,
    spell,
    texts,
)

ROLE_SHAPES: list[FileShape] = []
_OTHERS = spell(B, "yes", "no")


def add_roles(
    name: str,
    content: bytes,
    labels: str = L,
    judges: dict[str, str] | None = None,
    ends: str = "right",
    people: int = 0,
) -> None:
    ROLE_SHAPES.append(FileShape(name, content, labels, GPT4 if judges is None else judges, ends, people))


def repeat_for(cells: list[object]) -> list[object]:
    """Each cell once for each of two who judged."""
    return [cell for cell in cells for _ in range(2)]


# A known format with a column more
halueval = {
    "document": DOCS,
    "summary": CLAIMS,
    "ground_truth": spell(L, "No", "Yes"),
    "judgement": spell(A, "No", "Yes"),
}
halueval_judges = {"judgement": A, "claude": B}
add_roles(
    "halueval_two_judges.csv", make_csv({**halueval, "judgement_claude": spell(B, "No", "Yes")}), judges=halueval_judges
)
add_roles(
    "halueval_rater.csv", make_csv({**halueval, "claude": spell(B, "No", "Yes")}), judges=halueval_judges, ends="asked"
)
ragas = {"user_input": [f"Q{k}?" for k in range(N)], "retrieved_contexts": [[one] for one in DOCS], "response": CLAIMS}
ragas_judge = {"faithfulness": A}
verdicts = spell(L, "accurate", "inaccurate")
add_roles(
    "ragas_physician.csv",
    make_csv({**ragas, "faithfulness": FIRST_SCORES, "physician_view": verdicts}),
    judges=ragas_judge,
    ends="asked",
)
scored = {**ragas, "faithfulness": FIRST_SCORES}
add_roles("ragas_annotator.csv", make_csv({**scored, "annotator": spell(L, 1, 0)}), judges=ragas_judge, ends="asked")
letters = {**scored, "human_label": spell(L, "C", "I")}
add_roles("ragas_letters.csv", make_csv(letters), judges=ragas_judge, ends="asked")
langsmith = {"id": [f"run{k}" for k in range(N)], "inputs.context": DOCS, "outputs.answer": CLAIMS}
turned = {"feedback.has_hallucination": spell(A, 0, 1), "feedback.empty": [None] * N}
add_roles(
    "langsmith_hallucination.csv",
    make_csv({**langsmith, **turned, "feedback.human_review": spell(L, 1, 0)}),
    judges={"has_hallucination": A},
)
add_roles(
    "langsmith_thumbs.csv",
    make_csv({**langsmith, **turned, "feedback.user_score": spell(L, 1, 0)}),
    judges={"has_hallucination": A},
    ends="asked",
)
add_roles(
    "bump.csv", make_csv({"article": DOCS, "reference_summary": CLAIMS, "edited_summary": CLAIMS}), ends="are JSON"
)

# Who judged, in a column
rows = {"item": repeat_for([f"c{k}" for k in range(N)]), "claim": repeat_for([*CLAIMS]), "doc": repeat_for([*DOCS])}
mixed = [word for pair in zip(spell(L, "yes", "no"), spell(A, "yes", "no"), strict=True) for word in pair]
add_roles(
    "rater_kind.csv",
    make_csv({**rows, "rater": ["ada", "gpt4"] * N, "rater_kind": ["HUMAN", "LLM"] * N, "supported": mixed}),
    people=1,
)
add_roles(
    "score_source.csv",
    make_csv({**rows, "scoreName": ["Fine?", "gpt4"] * N, "source": ["ANNOTATION", "EVAL"] * N, "value": mixed}),
    people=1,
)

# Whose words a column holds
add_roles("key.csv", make_csv({**texts, "Key": spell(L, "T", "F"), "gpt4": spell(A, "T", "F")}), ends="asked")
keys = {"answer key": spell(L, "T", "F"), "class majority": spell(B, "T", "F"), "gpt4": spell(A, "T", "F")}
add_roles("majority_and_key.csv", make_csv({**texts, **keys}), ends="asked")
add_roles("analyst.csv", make_csv({**texts, "analyst": spell(L, "ok", "not ok"), "gpt4_score": FIRST_SCORES}))
lawyer = {**texts, "lawyer": spell(L, "sound", "unsound"), "gpt4_score": FIRST_SCORES}
add_roles("lawyer.csv", make_csv(lawyer), ends="asked")
add_roles("sure.csv", make_csv({**labelled, "gpt4_pred": firsts, "gpt4_conf": [0.7, 0.8] * 5}))
final = {**texts, "rater1": _OTHERS, "rater2": spell(L, "yes", "no"), "final": spell(L, "yes", "no")}
add_roles("final.csv", make_csv({**final, "gpt4": spell(A, "yes", "no")}), ends="asked", people=2)
codes = {**texts, "human": spell(L, 1, -1), "svm": spell(A, 1, -1), "nn": spell(B, 1, -1)}
add_roles("minus_one.csv", make_csv(codes), judges={"svm": A, "nn": B}, ends="asked")
accepted = "".join(str(int(a == b)) for a, b in zip(A, L, strict=True))
agreed = {**texts, "gpt4": spell(A, "yes", "no"), "sme_agrees": spell(accepted, "Yes", "No")}
add_roles("agrees.csv", make_csv(agreed), ends="asked")
thumbs = {**texts, "user feedback": spell(L, "👍", "👎"), "hallucination_prob": [round(1 - x, 2) for x in FIRST_SCORES]}
add_roles("users_thumbs.csv", make_csv(thumbs), judges={"hallucination": A}, ends="asked")

# Votes and lists
votes = ["Y,Y,N" if digit == "1" else "N,N,N" for digit in L]
add_roles("votes.csv", make_csv({**texts, "votes": votes, "gpt4_score": FIRST_SCORES}), ends="asked", people=3)
piped = [vote.replace(",", "|") for vote in votes]
add_roles("piped.csv", make_csv({**texts, "crowd": piped, "gpt4_score": FIRST_SCORES}), ends="asked", people=3)
pairs = [slice(k, k + 2) for k in range(0, N, 2)]
parallel = [
    {"source": DOCS[at.start], "sentences": CLAIMS[at], "human": spell(L, 1, 0)[at], "gpt4": FIRST_SCORES[at]}
    for at in pairs
]
add_roles("parallel.jsonl", "".join(json.dumps(row) + "\n" for row in parallel).encode(), ends="asked")
reviews = {
    "reviews": [
        [{"reviewer": "r0", "grounded": digit == "1"}, {"reviewer": "r1", "grounded": digit == "1"}] for digit in L
    ]
}
judge = {"judge": [{"model": "gpt4", "grounded": digit == "1"} for digit in A]}
add_roles("reviews.jsonl", make_json_lines({**texts, **reviews, **judge}), ends="asked", people=2)
spans = {"labels": [[] if digit == "1" else [{"start": 0, "label_type": "Conflict"}] for digit in L]}
add_roles("spans.jsonl", make_json_lines({**texts, **spans, "gpt4_score": FIRST_SCORES}), ends="asked")

# Tables that lie otherwise
people = {"person": [f"p{k}" for k in range(4)], **{claim: ["yes", "no", "no", "yes"] for claim in CLAIMS[:6]}}
add_roles("people_in_rows.csv", make_csv(people), ends="claims seem to stand as columns")
lying = {"": ["claim", "doc", "label"], **{f"c{k}": [CLAIMS[k], DOCS[k], 1] for k in range(6)}}
add_roles("on_its_side.csv", make_csv(lying), ends="turn the table round")

# Whose words they are, by what stands beside
form = {**texts, "Q2": spell(L, "Yes", "No"), "gpt4_verdict": spell(A, "Supported", "Unsupported")}
add_roles("form_q2.csv", make_csv(form), ends="asked")
own_words = {**texts, "human": spell(L, "toka", "muka"), "model": spell(A, "toka", "muka")}
add_roles("model_of_own_words.csv", make_csv(own_words), judges={"model": A}, ends="asked")
bare = {**texts, "rating": spell(L, 1, 0), "model_rating": spell(A, 1, 0)}
add_roles("bare_rating.csv", make_csv(bare), judges={"model": A}, ends="asked")
logits = {**labelled, "pred": spell(A, 1, 0), "logit_0": [-0.3] * N, "logit_1": [0.4 + k / 50 for k in range(N)]}
add_roles("class_logits.csv", make_csv(logits), judges={"pred": A})

# Whether a person accepted what is shown, who that was, and of which kind an error is
shown = {**texts, "label": ["SUPPORTED"] * N, "answer": [*spell(L[:-1], "accept", "reject"), "ignore"]}
prodigy = {**shown, "_annotator_id": ["ada"] * N, "hhem": FIRST_SCORES}
add_roles("prodigy.jsonl", make_json_lines(prodigy), L[:-1] + "-", {"hhem": A}, "asked", 1)
tasks = {f"INPUT:{name}": [cell for cell in cells for _ in range(3)] for name, cells in texts.items()}
answers = [word for word in spell(L, "SUPPORTED", "NOT_SUPPORTED") for _ in range(3)]
golden = [word if k < 3 else None for k, word in enumerate(answers)]
workers = {"OUTPUT:result": answers, "GOLDEN:result": golden, "ASSIGNMENT:worker_id": ["w1", "w2", "w3"] * N}
add_roles("toloka.csv", make_csv({**tasks, **workers}), judges={}, people=3)
reviewed = {**texts, "Review": spell(L, "verified", "not verified"), "gpt4": spell(A, "verified", "not verified")}
named = {"reviewer_name": ["Ana", "Ben"] * 5, "error_type": spell(L, "", "number"), "editor": ["J."] * N}
add_roles("reviewed.csv", make_csv({**reviewed, **named}), ends="asked")
noted = {**texts, "error_note": [*spell(L[:-2], "", "wrong date"), "wrong name", ""], "gpt4_score": FIRST_SCORES}
add_roles("error_notes.csv", make_csv(noted), L[:-2] + "01", ends="asked")
backed = {**texts, "Teacher": spell(L, "backed", "not backed"), "gpt4": spell(A, "backed", "not backed")}
add_roles("backed.csv", make_csv(backed), ends="asked")
add_roles(
    "verdict.csv", make_csv({**texts, "verdict": spell(L, "OK", "Wrong"), "gpt4_score": FIRST_SCORES}), ends="asked"
)
same = {**labelled, "score": firsts, "lynx_8b": spell(A, "PASS", "FAIL")}
add_roles("score_of_lynx.csv", make_csv(same), judges={"lynx_8b": A})

# Lists of what people and what programs said
kinds = {
    "annotations": [
        [
            {"name": "support", "annotator_kind": "LLM", "result": {"label": a, "score": 1.0}},
            {"name": "support", "annotator_kind": "HUMAN", "result": {"label": b, "score": None}},
        ]
        for a, b in zip(spell(A, "grounded", "ungrounded"), spell(L, "grounded", "ungrounded"), strict=True)
    ]
}
add_roles("annotator_kinds.jsonl", make_json_lines({**texts, **kinds}), judges={"LLM": A}, ends="asked", people=1)
sources = {
    "feedback_scores": [
        [{"name": "metric", "value": x, "source": "sdk"}, {"name": "Fine?", "value": float(y), "source": "ui"}]
        for x, y in zip(FIRST_SCORES, L, strict=True)
    ]
}
add_roles("score_sources.jsonl", make_json_lines({**texts, **sources}), judges={"metric": A}, ends="asked", people=1)
of_responses = [
    {
        "context": DOCS[at.start],
        "response": " ".join(CLAIMS[at]),
        "claims": [{"text": CLAIMS[k], "human_label": L[k], "verifier": A[k]} for k in range(at.start, at.start + 2)],
    }
    for at in pairs
]
lines = "".join(json.dumps(row) + "\n" for row in of_responses).encode()
add_roles("claims_of_responses.jsonl", lines, judges={"claims[].verifier": A}, ends="asked")
checked = {**scored, "checked": [digit == "1" for digit in L]}
add_roles("ragas_checked.jsonl", make_json_lines(checked), judges=ragas_judge, ends="asked")

# Those whose work it is to judge, over flags, programs and agreement; people and judges in other languages
beside = {**texts, "gpt4": spell(A, "yes", "no")}
add_roles("lawyer_flag.csv", make_csv({**beside, "lawyer": spell(L, "1", "0")}), ends="asked")
add_roles("analyst_agent.csv", make_csv({**beside, "analyst_agent": spell(L, "yes", "no")}), ends="asked")
add_roles("nurse_agrees.csv", make_csv({**beside, "nurse_agrees": spell(L, "agree", "disagree")}), ends="asked")
anotator = {**texts, "anotátor": spell(L, "podloženo", "nepodloženo"), "予測": spell(A, "はい", "いいえ")}
add_roles("anotator.csv", make_csv(anotator), judges={"予測": A})
suggested = {**texts, "label": spell(A, "SUPPORTED", "REFUTED"), "hhem": FIRST_SCORES}
add_roles(
    "prodigy_suggested.jsonl",
    make_json_lines({**suggested, "answer": spell(accepted, "accept", "reject"), "_annotator_id": ["ada"] * N}),
    judges={"hhem": A},
    ends="asked",
    people=1,
)
