"""The audit of decomposition: its detectors on facts with known faults and on people's edits, rows,
sentences."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pandas as pd
from audit_tables import compute, find, join

from factaudit import Judgements, validate_claims, validate_verdicts
from factaudit.audit.decomposition import FACT_FAULTS as FAULTS
from factaudit.text.content_words import WordVocabulary, list_informative_words
from factaudit.text.demonstrations import read_fact_demonstrations
from factaudit.text.fact_faults import find_fact_faults, is_uncovered_sentence

Row = dict[str, Any]


def count_hits(found: list[bool], known: list[bool]) -> Counter[str]:
    return Counter(
        ("hit" if gold else "alarm") if flag else ("miss" if gold else "right")
        for flag, gold in zip(found, known, strict=True)
    )


def test_each_detector_has_a_precision_of_nine_and_a_recall_of_eight_tenths_on_authored_facts(
    root,
):
    demonstrations = [
        WordVocabulary([sentence, *facts]) for sentence, facts in read_fact_demonstrations().items()
    ]
    counts = {name: Counter[str]() for name in (*FAULTS, "uncovered")}
    texts = set()
    for line in (
        (root / "data/decomposition/responses.jsonl").read_text(encoding="utf-8").splitlines()
    ):
        response = json.loads(line)
        facts = [fact["text"] for fact in response["facts"]]
        texts.update(facts)
        found = find_fact_faults(facts, response["output"], response["topic"], demonstrations)
        for name in FAULTS:
            # Whose facts are said again on purpose.
            if name != "repeated" or response["kind"] != "forms":
                known = [name in fact["faults"] for fact in response["facts"]]
                counts[name] += count_hits(list(getattr(found, name)), known)
        told = WordVocabulary(facts)
        words = [
            list_informative_words(one["text"], response["topic"]) for one in response["sentences"]
        ]
        flags = [is_uncovered_sentence(each, told.list_missing_words(each)) for each in words]
        counts["uncovered"] += count_hits(
            flags, [one["uncovered"] for one in response["sentences"]]
        )
    assert len(texts) >= 300
    for name, one in counts.items():
        precision, recall = (
            one["hit"] / (one["hit"] + one["alarm"]),
            one["hit"] / (one["hit"] + one["miss"]),
        )
        line = f"| `{name}` | {one['hit'] + one['miss']} | {precision:.3f} | {recall:.3f} |"
        assert line in (root / "data/decomposition/README.md").read_text(encoding="utf-8"), line
        assert precision >= 0.9, name
        assert recall >= 0.8, name


def test_the_authored_facts_are_what_their_script_makes_of_the_source(root):
    import runpy

    built = runpy.run_path(str(root / "data/decomposition/build.py"))["build"]()
    lines = (root / "data/decomposition/responses.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == built


# ---- the audit

TEXT = "Ada Fenn was a miller in Ludlow. She sold her mill in 1911."
OWN = ("Ada Fenn was a miller.", "Ada Fenn lived in Ludlow.", "Ada Fenn sold her mill in 1911.")
INVENTED = ("Ada Fenn was a composer.", "Maren Oldkirk is a Norlandic glaciologist.")


def make_judgements(responses: list[list[tuple[str, int | None]]], **shared: Any) -> Judgements:
    """Responses of facts with what the evaluator says of each; every second one is of another
    system."""
    claims = []
    verdicts = []
    for number, facts in enumerate(responses):
        for place, (fact, prediction) in enumerate(facts):
            key = f"r{number}.{place}"
            claim = {
                "claim_id": key,
                "fact_id": key,
                "dataset": "d",
                "system": "ab"[number % 2],
                "claim": fact,
            }
            claims.append(
                claim
                | {"response_id": f"r{number}", "topic": "Ada Fenn", "response": TEXT}
                | shared
            )
            status = "ok" if prediction is not None else "error"
            verdicts.append(
                {"claim_id": key, "evaluator": "e", "prediction": prediction, "status": status}
            )
        if not facts:
            claims.append(
                {
                    "claim_id": f"r{number}",
                    "dataset": "d",
                    "system": "ab"[number % 2],
                    "claim": None,
                }
            )
            claims[-1] |= {
                "response_id": f"r{number}",
                "abstained": 1,
                "response": "I know nothing of it.",
            }
    return join(validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts)))


def test_shares_of_faulty_facts_by_hand():
    facts = [(fact, 1) for fact in (*OWN, *INVENTED, "Ada Fenn was a person.", OWN[0])]
    rows = compute("decomposition", make_judgements([facts, [(OWN[2], 1)]]), replicates=20)
    first = find(rows, system="a")
    assert {name: round(7 * first[name]) for name in FAULTS} == {
        "invented": 2,
        "leaked": 1,
        "repeated": 1,
        "trivial": 1,
    }
    assert (first["coverage"], first["uncovered"], first["n"], first["n_sentences"]) == (
        1.0,
        0.0,
        7,
        2,
    )
    assert first["reason"].startswith("no interval for invented")  # a single response
    # Ludlow is in no fact of the second response; a miller is found in a mill.
    assert (find(rows, system="b")["coverage"], find(rows, system="b")["uncovered"]) == (0.8, 0.5)
    every = find(rows, system="__all__")
    assert (every["n"], every["invented"]) == (8, 0.25)
    assert every["invented_low"] < 0.25 < every["invented_high"]


def test_the_sentences_stand_for_an_unknown_text_and_without_both_nothing_is_said():
    told = make_judgements(
        [[(fact, 1) for fact in (*OWN, *INVENTED)]], response=None, sentence=TEXT
    )
    assert find(compute("decomposition", told), system="a")["invented"] == 0.4
    assert compute("decomposition", make_judgements([[(OWN[0], 1)]], response=None)) == []


def test_a_system_that_always_abstained_has_no_fact():
    row = find(compute("decomposition", make_judgements([[(OWN[0], 1)], []])), system="b")
    assert row["reason"] == "no response has an atomic fact"


# ---- what is said of it
