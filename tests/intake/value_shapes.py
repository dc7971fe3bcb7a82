"""Values of judgements as people and models write them: replies, scales of words, grades, and judges that failed. Each
with its right reading, written down beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from generated_shapes import FIRST_SCORES, GPT4, A, FileShape, L, labelled, make_csv, spell, texts

VALUE_SHAPES: list[FileShape] = []


def add_judge(name: str, cells: Sequence[Any], says: str = A, ends: str = "right") -> None:
    """A table whose judge "gpt4" says cells."""
    VALUE_SHAPES.append(FileShape(name, make_csv({**labelled, "gpt4": cells}), L, {"gpt4": says}, ends))


def add_labels(name: str, column: str, cells: Sequence[Any], labels: str = L, ends: str = "asked") -> None:
    """A table whose labels are in a column of cells."""
    content = make_csv({**texts, "gpt4": spell(A, "yes", "no"), column: cells})
    VALUE_SHAPES.append(FileShape(name, content, labels, GPT4, ends))


def reply(one: str, zero: str) -> list[str]:
    """Replies that differ in each row."""
    return [f"{text} [{k}]" for k, text in enumerate(spell(A, one, zero))]


# Replies of judges: marked, in sentences, in other languages
tagged = "<thinking>When does it open?</thinking><verdict>{}</verdict>"
add_judge("reply_tags.csv", reply(tagged.format("yes"), tagged.format("no")), ends="asked")
add_judge("reply_boxed.csv", reply(r"Step 1: see. So \boxed{Yes}", r"Step 1: see. So \boxed{No}"), ends="asked")
add_judge("reply_json.csv", reply('So: {"verdict": "yes"}', 'So: {"verdict": "no"}'), ends="asked")
add_judge("reply_bold.csv", reply("I think **supported** is it", "I think **not supported** is it"), ends="asked")
add_judge("reply_sentence.csv", reply("The text supports the claim.", "The claim is not supported."), ends="asked")
add_judge("reply_zh.csv", reply("是。文中提到了这一点。", "否。文中没有这一点。"), ends="asked")
add_judge("reply_ja.csv", reply("はい、文書によります。", "いいえ、文書によります。"), ends="asked")
add_judge("reply_fr.csv", reply("Le texte en parle. Réponse : oui", "Le texte en parle. Réponse : non"), ends="asked")
add_judge("score_out_of.csv", reply("Score: 4/5, mostly right", "Score: 1/5, the day is off"))

# A judge that failed is no verdict, but one that says "error" of a claim is one
add_judge("failed.csv", [*spell(A[:9], "yes", "no"), "Error"], A[:9] + "-", "asked")
add_judge("error_is_verdict.csv", spell(A, "no error", "error"))
add_judge("signs.csv", spell(A, 1, -1))
add_judge("codes_of_nli.csv", [*spell(A[:9], 0, 2), 1], ends="asked")

# Scales of words and grades of a school, of which each cut is offered; kinds of errors, and none
scale = ["stimme voll zu", "stimme eher zu", "stimme eher nicht zu", "stimme gar nicht zu"]
steps = [scale[k] for k in (0, 1, 2, 0, 3, 1, 1, 3, 2, 0)]
add_labels("scale_de.csv", "Mensch", steps)
add_labels("scale_of_stranger.csv", "Marie", steps)
add_labels("grades_of_school.csv", "teacher grade", ["A", "B", "C", "A-", "F", "B+", "A+", "D", "C-", "B"])
add_labels("initials.csv", "human", [*spell(L[:9], "e", "n"), "c"], L[:9] + "0")
add_labels("options.csv", "human", spell(L, "A) Supported", "B) Not supported"), ends="right")
kinds = [None if x == "1" else ("intrinsic", "extrinsic")[k % 2] for k, x in enumerate(L)]
add_labels("kinds_or_null.csv", "hallucination_type", kinds)
add_labels("school_grades.csv", "Schulnote (1-6)", [1, 2, 4, 1, 6, 2, 1, 5, 4, 2])
add_labels("range_in_name.csv", "human (0-2)", [2, 2, 1, 2, 0, 2, 2, 0, 1, 2])
add_labels("not_ok.csv", "human", spell(L, "ok", "not ok"), ends="right")
# What denies a verdict, and errors that are there or not; not what denies a word that nothing knows, or half a verdict
add_labels("in_document.csv", "human", spell(L, "in document", "not in document"), ends="right")
add_labels("errors_es.csv", "humano", spell(L, "sin alucinación", "con alucinación"), ends="right")
add_labels("errors_zh.csv", "人工", spell(L, "无错误", "有错误"), ends="right")
add_labels("altered.csv", "human", spell(L, "not altered", "altered"))
add_labels("contradiction.csv", "human", spell(L, "no contradiction", "contradiction"))
add_judge("no_with_reason.csv", spell(A, "YES - the context states it", "NO - not in the context"))
named = {**labelled, "gpt4 (0-10)": [round(10 * x) for x in FIRST_SCORES]}
VALUE_SHAPES.append(FileShape("range_of_judge.csv", make_csv(named), L, GPT4))
logs = {**labelled, "gpt4_logprob": [round(math.log(x), 3) for x in FIRST_SCORES]}
VALUE_SHAPES.append(FileShape("logprob.csv", make_csv(logs), L, {"gpt4_logprob": A}, "asked"))

# A model's name with its version behind, and in brackets that hold no range
versions = {**labelled, "gpt4o": spell(A, 1, 0)}
VALUE_SHAPES.append(FileShape("version.csv", make_csv(versions), L, {"gpt4o": A}))
made_up = {"Made up? (human)": spell(L, "no", "yes"), "Made up? (GPT-4)": spell(A, "no", "yes")}
VALUE_SHAPES.append(FileShape("in_brackets.csv", make_csv({**texts, **made_up}), L, {"Made up? (GPT-4)": A}))

# What a name that nothing knows says of both, each on a scale of its own
weak = {**texts, "weak_human": spell(L, "0", "1"), "weak_gpt4": [1, 2, 5, 1, 2, 1, 2, 5, 4, 5]}
VALUE_SHAPES.append(FileShape("weak.csv", make_csv(weak), L, {"weak_gpt4": A}, "asked"))

# Codes that a name or a file explains, and the code of calls that failed
coded = {
    **texts,
    "Support (1 = supported, 2 = not supported, 9 = missing)": spell(L[:9] + "-", 1, 2, 9),
    "GPT4 (1 = supported, 2 = not supported)": spell(A, 1, 2),
}
judge = {"GPT4 (1 = supported, 2 = not supported)": A}
VALUE_SHAPES.append(FileShape("codes_in_names.csv", make_csv(coded), L[:9] + "-", judge))
explained = make_csv(
    {**texts, "human": spell(L, 1, 2), "gpt4": spell(A, 1, 2)}, before="# 1 = supported, 2 = not supported\n"
)
VALUE_SHAPES.append(FileShape("codes_1_and_2.csv", explained, L, GPT4))
add_judge("failed_score.csv", [*FIRST_SCORES[:9], -1], A[:9] + "-")
