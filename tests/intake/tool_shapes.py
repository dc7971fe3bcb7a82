"""Files as evaluation tools, annotation tools and published data sets write them, each with its right reading.

Like `generated_shapes`: what was refused, asked about without a right answer, or misread when it was first tried.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from generated_shapes import (
    CLAIMS,
    DOCS,
    FIRST_SCORES,
    SECOND_SCORES,
    A,
    B,
    FileShape,
    L,
    N,
    firsts,
    labelled,
    make_csv,
    make_json_lines,
    ones,
    spell,
    texts,
)

NONE = "-" * N
#: How sure a judge is of its own verdicts, whatever it says.
SURE = [0.93, 0.81, 0.77, 0.88, 0.91, 0.66, 0.97, 0.84, 0.79, 0.9]
TOOL_SHAPES: list[FileShape] = []


def add(
    name: str,
    content: bytes | Mapping[str, Any],
    labels: str = L,
    judges: Mapping[str, str] | None = None,
    ends: str = "right",
    people: int = 0,
) -> None:
    data = content if isinstance(content, bytes) else make_csv(content)
    TOOL_SHAPES.append(FileShape(name, data, labels, judges or {}, ends, people))


def list_rows(make_row: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    return [make_row(k) for k in range(N)]


def make_lines(make_row: Callable[[int], dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in list_rows(make_row)).encode()


# A score and a verdict: of one evaluator, of two, or how sure it is
add("minicheck.csv", {**labelled, "pred_label": firsts, "raw_prob": FIRST_SCORES}, judges={"pred": A})
two = {**labelled, "pred_label": [int(x) for x in B], "raw_prob": FIRST_SCORES}
add("pred_of_another.csv", two, judges={"pred": B, "raw": A}, ends="asked")
sure = {**labelled, "judge_verdict": spell(A, "yes", "no"), "judge_prob": SURE}
add("how_sure.csv", sure, judges={"judge": A}, ends="asked")
add(
    "p_of_zero.csv",
    {**labelled, "judge_label": firsts, "judge_prob": [round(1 - x, 2) for x in FIRST_SCORES]},
    judges={"judge": A},
    ends="asked",
)
pipeline = {**texts, "label": spell(A, "ENTAILMENT", "CONTRADICTION"), "score": SURE}
add("hf_pipeline.csv", pipeline, NONE, {"hf_pipeline": A}, "asked")
one_hot = {"human_supported": ones, "human_refuted": [1 - x for x in ones], "gpt4_supported": firsts}
add("one_hot.csv", {**texts, **one_hot, "gpt4_refuted": [1 - x for x in firsts]}, judges={"gpt4_supported": A})


# Lists: of words, of verdicts of several, of claims
def quote(word: str) -> str:
    return json.dumps([word])


add("list_cells.csv", {**labelled, "human_label": spell(L, quote("supported"), quote("refuted"))})
add(
    "votes_of_words.jsonl",
    make_lines(
        lambda k: {
            "claim": CLAIMS[k],
            "context": DOCS[k],
            "human_labels": ["yes" if ones[k] else "no"] * 3,
            "gpt4_score": FIRST_SCORES[k],
        }
    ),
    L,
    {"gpt4": A},
    "asked",
    3,
)
add(
    "verdicts_of_two.jsonl",
    make_lines(
        lambda k: {
            "claim": CLAIMS[k],
            "context": DOCS[k],
            "human_label": ones[k],
            "verdicts": ["yes" if x[k] == "1" else "no" for x in (A, B)],
        }
    ),
    L,
    {"1": A, "2": B},
    "asked",
)
add(
    "lists_in_lists.jsonl",
    make_lines(lambda k: {"claim": CLAIMS[k], "human": {"response": [["yes" if ones[k] else "no"]]}}),
)
add(
    "traces.csv",
    {
        "input": [json.dumps({"context": doc}) for doc in DOCS],
        "output": CLAIMS,
        "faithfulness": [f"[{x}]" for x in FIRST_SCORES],
        "human_annotation": [f"[{x}]" for x in ones],
    },
    judges={"faithfulness": A},
)
halves = [
    {
        "response": " ".join(CLAIMS[k : k + 5]),
        "context": DOCS[k],
        "claims": [
            {"claim": CLAIMS[i], "label": "supported" if ones[i] else "refuted", "gpt4_score": FIRST_SCORES[i]}
            for i in range(k, k + 5)
        ],
    }
    for k in (0, 5)
]
add("claims_of_responses.json", json.dumps(halves).encode(), L, {"claims[].gpt4": A}, "asked")
safe = [
    {
        "prompt": "Which markets?",
        "response": " ".join(CLAIMS),
        "checked_statements": [
            {
                "sentence": claim,
                "atomic_fact": claim,
                "self_contained_atomic_fact": claim,
                "annotation": "Supported" if x else "Not Supported",
            }
            for claim, x in zip(CLAIMS, firsts, strict=True)
        ],
        "Supported": 6,
    }
]
add("safe.json", json.dumps(safe).encode(), NONE, {"SAFE": A})
scifact = make_lines(
    lambda k: {
        "id": k,
        "claim": CLAIMS[k],
        "evidence": {str(4000 + k): [{"sentences": [0, 3], "label": "SUPPORT" if ones[k] else "CONTRADICT"}]},
    }
)
add("scifact.jsonl", scifact)

# Tools
metric = [
    {"name": "Faithfulness", "success": bool(x), "score": score} for x, score in zip(firsts, FIRST_SCORES, strict=True)
]
deepeval = {
    "test_results": list_rows(
        lambda k: {
            "name": f"t{k}",
            "success": bool(firsts[k]),
            "metrics_data": [metric[k]],
            "actual_output": CLAIMS[k],
            "retrieval_context": [DOCS[k]],
        }
    )
}
add("deepeval_returned.json", json.dumps(deepeval).encode(), NONE, {"Faithfulness": A})
promptfoo = {
    "results": {
        "version": 2,
        "results": list_rows(
            lambda k: {
                "vars": {"context": DOCS[k], "human": ones[k]},
                "response": {"output": CLAIMS[k]},
                "provider": {"id": "openai:gpt-4o"},
                "gradingResult": {
                    "pass": bool(firsts[k]),
                    "componentResults": [
                        {"pass": bool(firsts[k]), "score": FIRST_SCORES[k], "assertion": {"type": "llm-rubric"}}
                    ],
                },
            }
        ),
    }
}
add("promptfoo_old.json", json.dumps(promptfoo).encode(), L, {"llm-rubric": A})
for row in promptfoo["results"]["results"]:  # type: ignore[index]
    row["testCase"] = {"metadata": {"gold": "hallucinated" if row["vars"].pop("human") == 0 else "supported"}}
add("promptfoo_metadata.json", json.dumps(promptfoo).encode(), L, {"llm-rubric": A})
feedback = {"human_label": ones, "faithfulness": FIRST_SCORES}
queue = make_lines(
    lambda k: {
        "id": f"r{k}",
        "inputs": {"context": DOCS[k]},
        "outputs": {"output": CLAIMS[k]},
        "feedback_stats": {name: {"n": 1, "avg": float(said[k])} for name, said in feedback.items()},
    }
)
add("feedback_stats.jsonl", queue, L, {"feedback_stats.faithfulness.avg": A})
lynx = {
    "document": DOCS,
    "answer": CLAIMS,
    "label": spell(L, "PASS", "FAIL"),
    "lynx_output": [json.dumps({"REASONING": ["so"], "SCORE": word}) for word in spell(A, "PASS", "FAIL")],
}
add("lynx.jsonl", make_json_lines(lynx), L, {"lynx_output": A})
grades = [3.0, *(5 if x else 2 for x in firsts[1:])]
azure = {
    "inputs.context": DOCS,
    "inputs.response": CLAIMS,
    "inputs.human_label": ones,
    "outputs.groundedness": grades,
    "outputs.gpt_groundedness": grades,
    "outputs.groundedness_result": spell(A, "pass", "fail"),
    "outputs.groundedness_threshold": [3] * N,
}
add("azure.csv", azure, L, {"outputs.groundedness": A}, "asked")
add(
    "ares.csv",
    {
        "Document": DOCS,
        "Answer": CLAIMS,
        "Answer_Faithfulness_Label": ones,
        "ARES_Answer_Faithfulness_Prediction": firsts,
    },
    L,
    {"ARES_Answer_Faithfulness": A},
    "asked",
)
add(
    "feedback_rating.csv",
    {
        "context": DOCS,
        "response": CLAIMS,
        "scores.faithfulness": FIRST_SCORES,
        "feedback.rating": spell(L, "true", "false"),
    },
    L,
    {"scores.faithfulness": A},
    "asked",
)
studio = make_lines(
    lambda k: {
        "id": k,
        "data": {"claim": CLAIMS[k]},
        "annotations": [
            {
                "completed_by": 3,
                "result": [{"from_name": "support", "value": {"choices": ["Supported" if ones[k] else "Unsupported"]}}],
            }
        ],
        "predictions": [
            {
                "score": SURE[k],
                "result": [
                    {"from_name": "support", "value": {"choices": ["Supported" if firsts[k] else "Unsupported"]}}
                ],
            }
        ],
    }
)
add("studio_predictions.jsonl", studio, L, {"predictions": A}, "asked", 1)
argilla = {
    **texts,
    "support.responses": spell(L, "supported", "unsupported"),
    "support.suggestion": spell(A, "supported", "unsupported"),
    "support.suggestion.score": SURE,
}
add("argilla_suggestions.csv", argilla, L, {"support.suggestion": A}, "asked")
workers = {f"Is the claim supported? (Worker {k})": spell(said, "Yes", "No") for k, said in ((1, L), (2, A), (3, L))}
add("workers_in_brackets.csv", {**texts, **workers}, L, {}, "right", 3)
participants = {
    "participant_id": ["p1"] * N + ["p2"] * N,
    "statement": CLAIMS * 2,
    "response": spell(L + L, "Supported", "Not supported"),
}
add("prolific.csv", participants, L, {}, "right", 2)

# Tables of people
judge = {**texts, "human": spell(L, "ja", "nej"), "model": spell(A, "ja", "nej")}
add("model_says_yes.csv", judge, L, {"model": A})
add("model_says_1.csv", {**judge, "model": firsts}, L, {"model": A}, "asked")
french = {"affirmation": CLAIMS, "contexte": DOCS, "humain": spell(L, "O", "N"), "juge": spell(A, "O", "N")}
add("juge.csv", make_csv(french, sep=";"), L, {"juge": A}, "asked")
add(
    "words_of_the_judge.csv",
    {**texts, "Čitatelj": spell(L, "jo", "nix"), "GPT-4": spell(A, "jo", "nix")},
    L,
    {"GPT-4": A},
    "asked",
)
spss = {
    "Aussage": CLAIMS,
    "Quelle": DOCS,
    "Mensch": spell(L, "1,00", "2,00"),
    "GPT4": [str(x).replace(".", ",") for x in FIRST_SCORES],
}
add("spss.csv", make_csv(spss, sep=";"), L, {"GPT4": A}, "asked")
rows = zip(CLAIMS, DOCS, ones, FIRST_SCORES, SECOND_SCORES, strict=True)
three = "Text,,Human,Judges,\nclaim,doc,label,gpt4,nli\n(text),(text),(0/1),(0-1),(0-1)\n"
three += "".join(f'{claim},"{doc}",{x},{a},{b}\n' for claim, doc, x, a, b in rows)
add("three_header_rows.csv", three.encode(), L, {"gpt4": A, "nli": "".join(str(int(x > 0.5)) for x in SECOND_SCORES)})
marked = "| claim | doc | human_label |\n|---|---|---|\n"
marked += "".join(f"| {claim} | {doc} | {x} |\n" for claim, doc, x in zip(CLAIMS, DOCS, ones, strict=True))
add("markdown.txt", marked.encode())
preferred = {"context": DOCS, "response": CLAIMS, "human_prefers_response": ones, "gpt4_prefers_response": firsts}
add("preferences.csv", preferred, NONE)
add(
    "pairs.csv",
    {"prompt": CLAIMS, "response_a": CLAIMS, "response_b": DOCS, "human_preference": spell(L, "A", "B")},
    ends="--map claim=COLUMN",
)
rates = [f"{x} %" for x in range(1, 9)]
board = {"Model": [f"m{k}" for k in range(8)], "Hallucination Rate": rates, "Factual Consistency Rate": rates[::-1]}
add("leaderboard.csv", board, ends="--map claim=COLUMN")

# Data sets
faithful = {
    "summary": CLAIMS,
    "article": DOCS,
    "Factuality": [1.0 if x else 0.333 for x in ones],
    "FactCC": FIRST_SCORES,
}
add("frank.csv", faithful, L, {"FactCC": A}, "asked")
kinds = [word for word in spell(L, "NULL", "extrinsic") for _ in range(3)]
xsum = {
    "bbcid": [k for k in range(N) for _ in range(3)],
    "summary": [claim for claim in CLAIMS for _ in range(3)],
    "hallucination_type": kinds,
    "worker_id": ["w0", "w1", "w2"] * N,
}
add("xsumfaith.csv", xsum, L, {}, "asked", 3)
questions = {f"question{k}": spell(said, "Yes", "No") for k, said in ((1, "1111111011"), (2, B), (3, L), (4, A))}
add("seahorse.csv", {"summary": CLAIMS, **questions}, L, {}, "asked")
add(
    "shroom.csv",
    {
        "hyp": CLAIMS,
        "label": spell(L, "Not Hallucination", "Hallucination"),
        "p(Hallucination)": [0.2 if x else 0.8 for x in ones],
    },
    L,
    {},
)
glue = {"sentence1": DOCS, "sentence2": CLAIMS, "gold_label": spell(L, "entailment", "neutral")}
add("glue.csv", glue)

# Tried once all of these were mended
errors = ["none", "none", "EntE", "none", "OutE", "none", "none", "CircE", "PredE", "none"]
add("error_types.csv", {**texts, "error_type": errors, "gpt4_score": FIRST_SCORES}, L, {"gpt4": A}, "asked")
prompts = {**{name: [*cells, *cells] for name, cells in labelled.items()}, "prompt": ["p1"] * N + ["p2"] * N}
second = "".join(str(int(x > 0.5)) for x in SECOND_SCORES)
add("prompts.csv", {**prompts, "gpt4_score": FIRST_SCORES + SECOND_SCORES}, L, {"p1": A, "p2": second}, "asked")
agreed = {"A1": spell(L, "yes", "no"), "A2": spell(B, "yes", "no"), "A3": spell(L, "yes", "no")}
add(
    "majority_of_three.csv",
    {**texts, **agreed, "Majority": spell(L, "yes", "no"), "ChatGPT": spell(A, "yes", "no")},
    L,
    {"ChatGPT": A},
    "right",
    3,
)
add("wins.csv", {**texts, "win": ones, "gpt4_win": firsts}, NONE)

# A model that judges: Inspect's task (its replies were refused), checked by promptfoo (all that passed was a yes)


def make_inspect_log(
    scores: Mapping[str, Any], target: str, reply: str, metadata: Mapping[str, Any], choices: list[str] | None = None
) -> bytes:
    samples = list_rows(
        lambda k: {
            "id": k,
            "epoch": 1,
            "input": f"{DOCS[k]}\nClaim: {CLAIMS[k]}\nIs the claim supported?",
            "target": spell(L, *target.split("|"))[k],
            "output": {"completion": spell(A, *reply.split("|"))[k] if reply else CLAIMS[k], "model": "gpt-4o"},
            "scores": {name: {"value": said[k]} for name, said in scores.items()},
            "metadata": {name: said[k] for name, said in metadata.items()},
            **({"choices": choices} if choices else {}),
        }
    )
    spec = {"task": "facts", "model": "openai/gpt-4o", "dataset": {"name": "facts"}}
    return json.dumps({"version": 2, "status": "success", "eval": spec, "samples": samples}).encode()


agreed = {"match": ["C" if x == y else "I" for x, y in zip(L, A, strict=True)]}
of_judge = {"gpt-4o": A}
add("inspect_judge.json", make_inspect_log(agreed, "yes|no", "Yes.|No.", {"doc": DOCS}), judges=of_judge)
thought = "The years are equal. Answer: yes|The years differ. Answer: no"
add("inspect_judge_that_thinks.json", make_inspect_log(agreed, "yes|no", thought, {"doc": DOCS}), judges=of_judge)
chosen = make_inspect_log(agreed, "A|B", "ANSWER: A|ANSWER: B", {"doc": DOCS}, ["Supported", "Not supported"])
add("inspect_choices.json", chosen, judges=of_judge)
graded = make_inspect_log({"model_graded_fact": spell(A, "C", "I")}, "1932|1932", "", {"human": spell(L, "C", "I")})
add("inspect_people_in_letters.json", graded, judges={"model_graded_fact": A})
parts = {"judge": [{"faithful": x, "minicheck": y} for x, y in zip(firsts, SECOND_SCORES, strict=True)]}
split = make_inspect_log(parts, "|", "", {"human_label": ones})
add("inspect_scores_by_name.json", split, judges={"judge.faithful": A, "judge.minicheck": B})
outputs = [f"[PASS] {word}" for word in spell(A, "supported", "not supported")]
add("promptfoo_output.csv", {**labelled, "[openai:gpt-4o] Is it?": outputs}, judges={"[openai:gpt-4o] Is it?": A})
fails = ['[FAIL] Expected output "supported"\n---\n', "[PASS] "]
outputs = [f"{fails[x == y]}{word}" for x, y, word in zip(L, A, spell(A, "supported", "not supported"), strict=True)]
add("promptfoo_checks.csv", {**labelled, "[openai:gpt-4o] Is it?": outputs}, judges={"[openai:gpt-4o] Is it?": A})
records = {"record_id": [f"r{k}" for k in range(N)], "input": CLAIMS, "output": CLAIMS, "Groundedness": FIRST_SCORES}
calls = [json.dumps([{"args": {"source": one}, "ret": 1}]) for one in DOCS]
records |= {"Groundedness_calls": calls, "Human Feedback": [float(one) for one in ones]}
records["Human Feedback_calls"] = calls
add("trulens_human_feedback.jsonl", make_json_lines(records), judges={"Groundedness": A})
of_errors = make_inspect_log(agreed, "no|yes", "No|Yes", {"doc": DOCS}).replace(
    b"Is the claim supported", b"Is it hallucinated"
)
add(
    "inspect_judge_of_errors.json",
    of_errors,
    judges=of_judge,
    ends="the prompt speaks of errors",
)

# People's answers in annotation tools: options by their ids, and a column whose name judges use, too
options = [{"id": 0, "text": "Supported"}, {"id": 1, "text": "Not supported"}]
prodigy = make_lines(
    lambda k: {
        "text": CLAIMS[k],
        "doc": DOCS[k],
        "options": options,
        "accept": [1 - ones[k]],
        "answer": "accept",
        "judge": FIRST_SCORES[k],
        "_annotator_id": "facts-ann",
    }
)
add("prodigy_option_ids.jsonl", prodigy, judges={"judge": A}, people=1)
exported = {**texts, "annotator": [1] * N, "factuality": spell(L, "Supported", "Not supported"), "lead_time": SURE}
add("label_studio_min.csv", {**exported, "minicheck": FIRST_SCORES}, judges={"minicheck": A}, people=1)
by_three = {name: list(cells) * 3 for name, cells in {**exported, "judge_score": FIRST_SCORES}.items()}
by_three["annotator"] = [person for person in ("ann@x.org", "bo@x.org", "cy@x.org") for _ in range(N)]
add("label_studio_three.csv", by_three, judges={"judge": A}, people=3)
manifest = {
    "claim": CLAIMS,
    "document": DOCS,
    "human_label": spell(L, "Supported", "Not supported"),
    "hhem": FIRST_SCORES,
}
add("output.manifest", make_json_lines(manifest), judges={"hhem": A})

# FELM with a checker's list beside that of the labels: a claim is a segment
in_pairs = [slice(k, k + 2) for k in range(0, N, 2)]
felm = {
    "index": [str(k) for k in range(N // 2)],
    "prompt": DOCS[: N // 2],
    "response": [" ".join(CLAIMS[two]) for two in in_pairs],
    "segmented_response": [CLAIMS[two] for two in in_pairs],
    "labels": [[one == "1" for one in L[two]] for two in in_pairs],
    "comment": [["", ""]] * (N // 2),
    "type": [[None, None]] * (N // 2),
    "ref": [["https://example.org"]] * (N // 2),
    "source": ["quora"] * (N // 2),
    "gpt4_preds": [[one == "1" for one in A[two]] for two in in_pairs],
}
add("felm_and_a_checker.jsonl", make_json_lines(felm), judges={"gpt4_preds": A}, ends="asked")

# A question of a survey whose name says nothing: its answers take both sides (nothing was labelled)
asked_of = {**texts, "Q5": spell(L, "Definitely supported", "Not supported"), "judge_score": FIRST_SCORES}
add("survey_of_both_sides.csv", asked_of, judges={"judge": A}, ends="asked")
