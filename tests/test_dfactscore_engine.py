"""D-FActScore over a scripted LLM and in a run folder: groups, candidates, both scores, failures,
and its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scripted_llm import (
    AtomicFact,
    ChatReply,
    Response,
    ScriptedLLM,
    find_facts_to_group,
    make_models,
)

import factaudit
from factaudit import Judgements, Results, UsageError
from factaudit.engines.dfactscore import dfactscore
from factaudit.engines.pipeline import DFactScoreSettings, open_knowledge_source
from factaudit.engines.runs import DFactScoreExperiment
from factaudit.engines.score_rows import score_biographies

PAGES = {
    "Ann Lee (painter)": (
        "Ann Lee was a painter. She was born in Leith in 1901. She painted harbours."
    ),
    "Ann Lee (diver)": "Ann Lee is a diver. She was born in Perth in 1980. She dived in Oslo.",
}
MERGED = "Ann Lee was a painter. She painted harbours. She dived in Oslo."
TOLD_APART = "Ann Lee was a painter. Another Ann Lee is a diver."


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    return write(
        tmp_path / "pages.jsonl", *({"title": title, "text": text} for title, text in PAGES.items())
    )


@pytest.fixture
def knowledge(pages, tmp_path):
    return open_knowledge_source(pages, out=tmp_path)


def answer(prompt: str) -> str:
    """An LLM that does all three tasks by looking at the words."""
    if "True or False?" in prompt:
        fact = prompt.rsplit("Input: ", 1)[1].split(" True or False?")[0]
        return str(fact in prompt.split("\n\nInput: ")[0])
    if (facts := find_facts_to_group(prompt)) is not None:
        return facts.replace("- Another", "- ===\n- Another")
    return "- " + prompt.rstrip("\n").rsplit("\n", 1)[-1].split("independent facts: ")[1]


def bios(*outputs: str, **more: Any) -> list[Response]:
    return [Response(f"r{n}", "Ann Lee", output, "s", **more) for n, output in enumerate(outputs)]


def score(
    knowledge,
    llm,
    given,
    **options,
):
    """The tables, and the rows of the responses."""
    scored = dfactscore(
        given, make_models(DFactScoreSettings, knowledge, ScriptedLLM(llm), **options)
    )
    return scored, [one.row for one in responses_of(scored)]


def responses_of(scored):
    judged = Judgements.join(scored.claims, scored.verdicts)
    return score_biographies(judged, "argmax", gamma=0)


def audit(scored):
    """The audit's row of all responses."""
    options = {"dfactscore": {"gamma": 0}}
    return factaudit.compare(scored.claims, scored.verdicts, audits=[options], replicates=0).audits[
        "dfactscore"
    ][0]


def test_one_matrix_gives_both_scores(knowledge):
    llm = ScriptedLLM(answer)
    scored = dfactscore(bios(MERGED), make_models(DFactScoreSettings, knowledge, llm))
    ((row, *_),) = responses_of(scored)
    assert (row["factscore"], row["dfactscore"]) == (1.0, pytest.approx(2 / 3))
    assert (row["n_biographies"], row["n_entities"]) == (1, 2)
    assert (row["merged"], row["n_elsewhere"]) == (True, 1)
    # 3 sentences, 1 paragraph, 3 facts x 2 entities: nothing is asked twice.
    assert len(llm.requests) == len(set(llm.prompts)) == 3 + 1 + 6
    asked = [prompt for prompt in llm.prompts if "True or False?" in prompt]
    assert all(
        prompt.startswith("Answer the question about Ann Lee based on the given context.")
        for prompt in asked
    )
    # A claim is a fact put to an entity.
    claims = scored.claims
    assert claims["group"].tolist() == ["1"] * 6
    assert claims["fact_id"].tolist() == [f"r0.{n // 2}" for n in range(6)]
    assert (
        claims["entity"].tolist()
        == claims["doc_id"].tolist()
        == ["Ann Lee (diver)", "Ann Lee (painter)"] * 3
    )
    assert claims["doc"].str.contains("painted harbours").tolist() == [False, True] * 3
    assert scored.verdicts["prediction"].tolist() == [0, 1, 0, 1, 1, 0]


def test_equal_facts_of_two_people_stay_and_those_of_one_do_not(knowledge):
    def answer_grouping(prompt):
        if (asked := find_facts_to_group(prompt)) is not None:
            facts = asked.splitlines()
            return "\n".join([*facts[:3], "- ===", *facts[3:]])
        return answer(prompt)

    text = "Ann Lee was born. Ann Lee painted. Ann Lee was born. Ann Lee was born. Ann Lee dived."
    scored, _ = score(knowledge, answer_grouping, bios(text))
    facts = scored.claims.drop_duplicates("fact_id")
    assert list(zip(facts["claim"], facts["group"], strict=True)) == [
        ("Ann Lee was born.", "1"),
        ("Ann Lee painted.", "1"),
        ("Ann Lee was born.", "2"),
        ("Ann Lee dived.", "2"),
    ]
    assert scored.notes == ["left out: 1 repeated fact"]


def test_biographies_that_tell_people_apart_lose_nothing(knowledge):
    def told(prompt):
        # The facts say who is meant; the page does not say "Another".
        return answer(prompt.replace("Input: Another Ann Lee", "Input: Ann Lee"))

    _, (row,) = score(knowledge, told, bios(TOLD_APART))
    assert (row["factscore"], row["dfactscore"]) == (1.0, 1.0)
    assert (row["n_biographies"], row["n_entities"]) == (2, 2)


def test_a_page_that_is_missing_leaves_its_facts_unscored(knowledge):
    given = bios(
        "Ann Lee was a painter. She flew.", candidates=("Ann Lee (painter)", "Ann Lee (ghost)")
    )
    scored, (row,) = score(knowledge, answer, given)
    # The painter's page supports the first fact; what the ghost's would have said of the second is
    # not known.
    assert (row["n_unscored"], row["n_unscored_linked"]) == (1, 0)
    assert (row["factscore"], row["factscore_min"], row["factscore_max"]) == (0.5, 0.5, 1.0)
    # The ghost's page might have supported both: the group would then be linked to the ghost.
    assert (row["dfactscore"], row["dfactscore_min"], row["dfactscore_max"]) == (0.5, 0.5, 1.0)
    unscored = scored.verdicts[scored.verdicts["prediction"].isna()]
    assert unscored["status"].tolist() == ["skipped"] * 2
    assert "Ann Lee (ghost)" in unscored["raw"].iloc[0]


def test_candidates_are_given_or_the_pages_of_the_name(knowledge, monkeypatch):
    given = bios(MERGED, TOLD_APART)
    given = [
        given[0],
        *bios("x", TOLD_APART, candidates=("Ann Lee (diver)",))[1:],
        Response("z", "Zoe", "Zoe sang."),
    ]
    monkeypatch.setattr("factaudit.engines.candidates.MAX_CANDIDATES", 1)
    scored, _ = score(knowledge, answer, given)
    entities = scored.claims.groupby("response_id")["entity"].first()
    assert entities[:2].tolist() == ["Ann Lee (diver)"] * 2
    # A name that nobody has is unscored, not unsupported.
    reason = "no candidate entity: no page has the name 'Zoe'"
    last = scored.verdicts.iloc[-1]
    assert (pd.isna(entities["z"]), last["status"], last["raw"]) == (True, "skipped", reason)
    assert scored.notes == ["left out: 1 page of a name beyond 1", reason]


def test_failed_calls_are_counted_and_leave_bounds(knowledge):
    def failing(task):
        return lambda prompt: (
            ChatReply("error", error="gave up") if task(prompt) else answer(prompt)
        )

    grouping, (row,) = score(
        knowledge, failing(lambda p: find_facts_to_group(p) is not None), bios(MERGED)
    )
    assert (row["factscore"], row["dfactscore"]) == (1.0, None)
    # Without groups, nothing is known of it.
    assert (row["dfactscore_min"], row["dfactscore_max"]) == (0.0, 1.0)
    assert grouping.notes == [
        "not grouped: the facts of 1 response, as the model's replies could not be read"
    ]
    diving, (row,) = score(knowledge, failing(lambda p: "Input: She dived" in p), bios(MERGED))
    assert (row["n_unscored"], row["n_unscored_linked"]) == (1, 1)
    assert row["dfactscore"] == row["dfactscore_min"] == pytest.approx(2 / 3)
    assert row["dfactscore_max"] == 1.0
    for system, whose in (("s", "s"), (None, "texts without a system")):
        claims = diving.claims.assign(system=system)
        said = " ".join(str(factaudit.compare(claims, diving.verdicts)).split())
        assert f"the score of {whose} is between 66.7 % and 100.0 %." in said
    _, (row,) = score(
        knowledge, failing(lambda p: p.endswith("She dived in Oslo.\n")), bios(MERGED)
    )
    # The sentence that failed stands for its facts.
    assert (row["n_facts"], row["n_unscored"]) == (3, 1)
    assert row["dfactscore_max"] == 1.0 > row["dfactscore"]
    # Without any fact, because all calls failed, it did answer: its scores are somewhere in [0, 1].
    is_decomposing = failing(lambda p: p.startswith("Please") and find_facts_to_group(p) is None)
    whole = audit(score(knowledge, is_decomposing, bios(MERGED))[0])
    assert (whole["respond_ratio"], whole["n_facts"], whole["dfactscore"]) == (1.0, 3, 0.0)
    assert (whole["dfactscore_min"], whole["dfactscore_max"]) == (0.0, 1.0)


def test_a_given_entity_is_known_by_every_name_of_its_page(knowledge):
    facts = (
        AtomicFact("Ann Lee was a painter.", 1, group="a", entity="Ann_Lee_(painter)"),
        AtomicFact("She painted.", 1, group="a"),  # of whom, its group says
    )
    candidates = ("Ann_Lee_(painter)", "Ann Lee (diver)")
    given = bios("Ann Lee was a painter.", facts=facts, candidates=candidates)
    claims = score(knowledge, answer, given, grouper="given")[0].claims
    assert claims["given_entity"][:2].tolist() == ["Ann Lee (painter)"] * 2
    assert claims["label"].isna().tolist() == [False, True] * 2


def test_abstentions_count_in_the_respond_ratio_only(knowledge):
    scored, rows = score(knowledge, answer, bios("I'm sorry, I do not know.", MERGED))
    assert audit(scored)["respond_ratio"] == 0.5
    assert [row["n_facts"] for row in rows] == [0, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the verifier 'retrieval' needs an LLM"),
        ({"verifiers": ["unigram"]}, "the grouper 'llm' needs an LLM"),
        (
            {"verifiers": ["unigram"], "grouper": "gven"},
            "grouper: expected 'llm' or 'given'",
        ),
        ({"verifiers": ["unigran"], "grouper": "given"}, "unigram"),
        (
            {"verifiers": ["unigram"], "grouper": "given", "rule": "best"},
            "rule: expected 'argmax'",
        ),
    ],
)
def test_wrong_settings_are_said_at_once(options, message):
    with pytest.raises(UsageError, match=message):
        make_models(DFactScoreSettings, None, None, **options)


# ---- run folders


def run(file: Path, out: Path, **settings: Any) -> Results:
    block = {
        "responses": [str(file)],
        "verifiers": ["unigram:threshold=0.9"],
        "grouper": "given",
        "gamma": 0,
    }
    experiment = DFactScoreExperiment.model_validate(
        {"dfactscore": block | settings, "replicates": 50}
    )
    return factaudit.run(experiment, out)


def test_the_report_colours_merged_paragraphs_and_escapes_them(tmp_path):
    evil = "<script>alert(1)</script>"
    pages = {f"Ann {evil} (x)": f"Ann {evil} sang.", f"Ann {evil} (y)": f"Ann {evil} swam."}
    line = {
        "name": f"Ann {evil}",
        "system": evil,
        "output": f"Ann {evil} sang. She swam.",
        "docs": [{"title": title, "text": text} for title, text in pages.items()],
        "facts": [
            {"text": f"Ann {evil} sang.", "sentence": 0},
            {"text": f"{evil} swam.", "sentence": 1},
        ],
    }
    run(write(tmp_path / "bios.jsonl", line), tmp_path / "run")
    report = (tmp_path / "run" / "report.html").read_text()
    assert 'class="person p1"' in report
    assert 'class="person p0 other"' in report
    assert "<script>alert" not in report


def test_citations_annotations_and_views_stand_beside_the_scores(tmp_path):
    docs = [{"title": title, "text": text} for title, text in PAGES.items()]
    output = "She painted harbours [1]. She dived in Oslo [2]."
    facts = ["She painted harbours.", "She dived in Oslo."]
    line = {"name": "Ann Lee", "system": "s", "docs": docs, "output": output, "facts": facts}
    lines = [line | {"response_id": str(n)} for n in range(2)]
    pages = ("Ann Lee (painter)", "Ann Lee (diver)")
    notes = tmp_path / "notes.csv"
    rows = [
        f"s,{n},{a},1,Ann Lee (painter),{f},S,{p}\n"
        for n in "01"
        for a in "xy"
        for f, p in zip(facts, pages, strict=True)
    ]
    notes.write_text(
        "system,response_id,annotator,biography,entity,fact,label,page\n" + "".join(rows)
    )
    more = {"citation_judge": "unigram:threshold=0.9", "annotations": str(notes)}
    results = run(write(tmp_path / "bios.jsonl", *lines), tmp_path / "run", **more)
    (citations,) = results.audits["citations"]
    assert (citations["recall"], citations["precision"]) == (1.0, 1.0)
    _, people = results.audits["factscore_agreement"]
    assert people["figure"] == "init_dfactscore"
    assert (people["n"], people["human"], people["predicted"]) == (2, 0.5, 0.5)
    assert len(results.about["inputs"]) == 2
    assert "Predicted scores against people" in (tmp_path / "run/report.html").read_text()


def test_responses_that_all_abstain_make_a_report(tmp_path):
    line = {
        "name": "Ann Lee",
        "output": "I'm sorry.",
        "facts": [],
        "docs": [{"title": "Ann Lee", "text": "She sang."}],
    }
    run(write(tmp_path / "bios.jsonl", line), tmp_path / "run")
    assert (tmp_path / "run/report.html").is_file()
