"""D-FActScore end to end: a scripted LLM, evaluators, failures, resuming, the run folder and its report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted_llm import ScriptedLLM, find_facts_to_group

from factaudit.audit.core.result_rows import Row
from factaudit.engines.dfactscore import DFactScorer
from factaudit.engines.dfactscore_report import DFACTSCORE, FACTSCORE, build_merged_paragraphs_section
from factaudit.engines.factscore_report import ScoredResponses
from factaudit.engines.responses import AtomicFact, Response
from factaudit.engines.runs import score_dfactscore_files
from factaudit.engines.settings import open_knowledge_source
from factaudit.errors import InputError, UsageError
from factaudit.knowledge.topic_lookup import TopicLookup
from factaudit.llm.chat_types import ChatModelProtocol, ChatReply

PAGES = {
    "Ann Lee (painter)": "Ann Lee was a painter. She was born in Leith in 1901. She painted harbours.",
    "Ann Lee (diver)": "Ann Lee is a diver. She was born in Perth in 1980. She dived in Oslo.",
}
MERGED = "Ann Lee was a painter. She painted harbours. She dived in Oslo."
TOLD_APART = "Ann Lee was a painter. Another Ann Lee is a diver."


@pytest.fixture
def knowledge(tmp_path: Path) -> TopicLookup:
    source = tmp_path / "pages.jsonl"
    source.write_text("".join(json.dumps({"title": t, "text": x}) + "\n" for t, x in PAGES.items()))
    return open_knowledge_source(source, out=tmp_path)


def answer(prompt: str) -> str:
    """An LLM that does all three tasks by looking at the words."""
    if "True or False?" in prompt:
        fact = prompt.rsplit("Input: ", 1)[1].split(" True or False?")[0]
        return str(fact in prompt.split("\n\nInput: ")[0])
    if (facts := find_facts_to_group(prompt)) is not None:
        return facts.replace("- Another", "- ===\n- Another")
    return "- " + prompt.rstrip("\n").rsplit("\n", 1)[-1].split("independent facts: ")[1]


def score(knowledge: TopicLookup, llm: ChatModelProtocol, given: list[Response], **settings: Any) -> ScoredResponses:
    return DFactScorer(knowledge, llm, **settings).score_responses(given)


def bios(*outputs: str, **more: Any) -> list[Response]:
    return [Response(f"r{n}", "Ann Lee", output, "s", **more) for n, output in enumerate(outputs)]


def test_one_matrix_gives_both_scores(knowledge: TopicLookup) -> None:
    llm = ScriptedLLM(answer)
    scored = score(knowledge, llm, bios(MERGED), gamma=0)
    (row,) = scored.responses
    assert row["candidates"] == ["Ann Lee (diver)", "Ann Lee (painter)"]
    assert (row["factscore"], row["dfactscore"]) == (1.0, pytest.approx(2 / 3))
    assert (row["category"], row["merged"], row["n_elsewhere"]) == ("one bio, N entities", True, 1)
    assert [fact["about"] for fact in row["facts"]] == ["Ann Lee (painter)"] * 2 + ["Ann Lee (diver)"]
    # 3 sentences, 1 paragraph, 3 facts x 2 entities: nothing is asked twice.
    assert len(llm.requests) == len(set(llm.prompts)) == 3 + 1 + 6
    asked = [prompt for prompt in llm.prompts if "True or False?" in prompt]
    assert all(prompt.startswith("Answer the question about Ann Lee based on the given context.") for prompt in asked)
    assert len(scored.claims) == len(scored.verdicts) == 6


def test_equal_facts_of_two_people_stay_and_those_of_one_do_not(knowledge: TopicLookup) -> None:
    def answer_grouping(prompt: str) -> str:
        if (asked := find_facts_to_group(prompt)) is not None:
            facts = asked.splitlines()
            return "\n".join([*facts[:3], "- ===", *facts[3:]])
        return answer(prompt)

    text = "Ann Lee was born. Ann Lee painted. Ann Lee was born. Ann Lee was born. Ann Lee dived."
    (row,) = score(knowledge, ScriptedLLM(answer_grouping), bios(text)).responses
    told = [(fact["text"], fact["group"]) for fact in row["facts"]]
    assert told == [
        ("Ann Lee was born.", 0),
        ("Ann Lee painted.", 0),
        ("Ann Lee was born.", 1),
        ("Ann Lee dived.", 1),
    ]
    assert row["n_duplicates"] == 1


def test_a_claim_is_a_fact_put_to_an_entity_and_each_verifier_judges_it(knowledge: TopicLookup) -> None:
    scored = score(knowledge, ScriptedLLM(answer), bios(MERGED), verifiers=["llm", "unigram:threshold=0.9"])
    claims = scored.claims
    assert claims["group"].tolist() == ["1"] * 6
    assert claims["fact_id"].tolist() == [f"r0.{n // 2}" for n in range(6)]
    assert claims["entity"].tolist() == ["Ann Lee (diver)", "Ann Lee (painter)"] * 3
    assert claims["entity"].tolist() == claims["doc_id"].tolist()
    assert claims["doc"].str.contains("painted harbours").tolist() == [False, True] * 3
    predictions = scored.verdicts.pivot(index="claim_id", columns="evaluator", values="prediction")
    by_claim = predictions.loc[claims["claim_id"]]
    assert by_claim["retrieval+scripted"].tolist() == [0, 1, 0, 1, 1, 0]
    assert by_claim["unigram@0.9"].tolist() == [0, 1, 0, 1, 1, 0]
    # What both scores say of each fact.
    facts, verdicts = scored.audit_tables
    assert facts["entity"].tolist() == ["Ann Lee (painter)"] * 3
    by_fact = verdicts.pivot(index="claim_id", columns="evaluator", values="prediction")
    for verifier in ("retrieval+scripted", "unigram@0.9"):
        assert by_fact[f"{FACTSCORE} ({verifier})"].tolist() == [1, 1, 1]
        assert by_fact[f"{DFACTSCORE} ({verifier})"].tolist() == [1, 1, 0]
    assert [row["evaluator"] for row in scored.summary["rows"]] == ["retrieval+scripted", "unigram@0.9"]


def test_biographies_that_tell_people_apart_lose_nothing(knowledge: TopicLookup) -> None:
    def told(prompt: str) -> str:
        # The facts say who is meant; the page does not say "Another".
        return answer(prompt.replace("Input: Another Ann Lee", "Input: Ann Lee"))

    scored = DFactScorer(knowledge, ScriptedLLM(told), groupers=("llm", "one-group"), gamma=0).score_responses(
        bios(TOLD_APART)
    )
    (row,) = scored.responses
    assert (row["factscore"], row["dfactscore"], row["category"]) == (1.0, 1.0, "N bios, N entities")
    by_grouper = {one["grouper"]: one for one in scored.summary["linking"] if one["link"] == "argmax"}
    assert by_grouper["one-group"]["dfactscore"] == 0.5
    grouping = {one["grouper"]: one for one in scored.summary["grouping"]}
    assert (grouping["llm"]["same_as_first"], grouping["one-group"]["same_as_first"]) == (1.0, 0.0)


def test_an_evaluator_verifies_without_an_llm(knowledge: TopicLookup, tmp_path: Path) -> None:
    facts = tuple(map(AtomicFact, ["Ann Lee was a painter.", "She painted harbours.", "She dived in Oslo."]))
    scorer = DFactScorer(knowledge, verifiers="unigram:threshold=0.9", groupers=("one-group",), gamma=0)
    scored = scorer.score_responses(bios(MERGED, facts=facts), journal=tmp_path / "journal")
    assert scored.responses[0]["dfactscore"] == pytest.approx(2 / 3)
    journal = sorted((tmp_path / "journal").glob("*.jsonl"))
    before = [path.read_bytes() for path in journal]
    assert sum(content.count(b'"claim_id"') for content in before) == 6
    again = scorer.score_responses(bios(MERGED, facts=facts), journal=tmp_path / "journal")
    assert [path.read_bytes() for path in journal] == before  # everything was known
    assert again.responses == scored.responses


def test_a_page_that_is_missing_leaves_its_facts_unscored(knowledge: TopicLookup) -> None:
    given = bios("Ann Lee was a painter. She flew.", candidates=("Ann Lee (painter)", "Ann Lee (ghost)"))
    scored = score(knowledge, ScriptedLLM(answer), given, gamma=0)
    (row,) = scored.responses
    # The painter's page supports the first fact; what the ghost's would have said of the second is not known.
    assert (row["n_unscored"], row["n_unscored_linked"]) == (1, 0)
    assert (row["factscore"], row["factscore_min"], row["factscore_max"]) == (0.5, 0.5, 1.0)
    assert row["dfactscore"] == 0.5
    # The ghost's page might have supported both: the group would then be linked to the ghost.
    assert (row["dfactscore_min"], row["dfactscore_max"]) == (0.5, 1.0)
    unscored = scored.verdicts[scored.verdicts["prediction"].isna()]
    assert unscored["status"].tolist() == ["skipped"] * 2
    assert "Ann Lee (ghost)" in unscored["raw"].iloc[0]


def test_a_name_that_nobody_has_is_unscored_not_unsupported(knowledge: TopicLookup) -> None:
    given = [Response("r", "Zoe Quin", "Zoe Quin sang.", "s")]
    scored = score(knowledge, ScriptedLLM(answer), given)
    assert scored.responses[0]["factscore"] is None
    assert scored.verdicts["status"].tolist() == ["skipped"]
    assert scored.claims["entity"].isna().all()
    reason = "no candidate entity: no page has this name"
    assert scored.verdicts["raw"].tolist() == [reason]
    assert (scored.responses[0]["candidates_from"], scored.responses[0]["reason"]) == ("none", reason)


def test_candidates_are_given_or_the_pages_of_the_name(knowledge: TopicLookup, tmp_path: Path) -> None:
    source = tmp_path / "bios.jsonl"
    lines: list[Row] = [{"name": "Ann Lee", "output": MERGED}]
    lines.append({"name": "Ann Lee", "output": TOLD_APART, "candidates": ["Ann Lee (diver)"]})
    lines.append({"name": "Zoe Quin", "output": "Zoe Quin sang."})
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    scorer = DFactScorer(knowledge, ScriptedLLM(answer), gamma=0, max_candidates=1)
    results = score_dfactscore_files(source, scorer, tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run/responses.jsonl").read_text().splitlines()]
    assert [row["candidates_from"] for row in rows] == ["titles", "given", "none"]
    assert [row["candidates"] for row in rows] == [["Ann Lee (diver)"], ["Ann Lee (diver)"], []]
    assert [row["n_candidates_left_out"] for row in rows] == [1, 0, 0]
    assert results.sections[0]["text"][1:] == [
        "1 responses came with their candidates.",
        "1 responses have the pages of the name as candidates.",
        "1 responses are of a name that no page has: their facts have no verdict.",
        "1 pages of a name were left out (max_candidates).",
    ]
    with pytest.raises(InputError, match="no page for the topic 'Nan of Leith'"):
        DFactScorer(TopicLookup(knowledge.db, "error"), ScriptedLLM(answer)).score_responses(
            [Response("r", "Nan of Leith", "She was born in Leith in 1901.", "s")]
        )


def test_failed_calls_are_counted_and_leave_bounds(knowledge: TopicLookup) -> None:
    def failing(task: Callable[[str], bool]) -> ScriptedLLM:
        return ScriptedLLM(lambda prompt: ChatReply("error", error="gave up") if task(prompt) else answer(prompt))

    grouping = score(knowledge, failing(lambda p: find_facts_to_group(p) is not None), bios(MERGED), gamma=0)
    (row,) = grouping.responses
    assert (row["factscore"], row["dfactscore"]) == (1.0, None)
    # One group for all the facts is the worst that the grouping might have said.
    assert (row["dfactscore_min"], row["dfactscore_max"]) == (pytest.approx(2 / 3), 1.0)
    linked = grouping.audit_tables[1][grouping.audit_tables[1]["evaluator"] == DFACTSCORE]
    assert set(linked["status"]) == {"error"}
    assert grouping.summary["n_unscored_linked"] == 3
    assert grouping.summary["grouping"][0]["n_failed"] == 1
    verifying = score(knowledge, failing(lambda p: "Input: She dived" in p), bios(MERGED), gamma=0)
    (row,) = verifying.responses
    assert (row["n_unscored"], row["n_unscored_linked"]) == (1, 1)
    assert row["dfactscore"] == row["dfactscore_min"] == pytest.approx(2 / 3)
    assert row["dfactscore_max"] == 1.0
    decomposing = score(knowledge, failing(lambda p: p.endswith("She dived in Oslo.\n")), bios(MERGED))
    assert decomposing.summary["n_failed_sentences"] == 1
    # The sentence that failed stands for its facts.
    assert (decomposing.summary["n_facts"], decomposing.summary["n_unscored"]) == (3, 1)
    assert decomposing.responses[0]["init_dfactscore_max"] == 1.0 > decomposing.responses[0]["init_dfactscore"]
    # Without any fact, because all calls failed, it did answer: its scores are somewhere in [0, 1].
    silent = DFactScorer(
        knowledge, failing(lambda p: p.startswith("Please") and find_facts_to_group(p) is None), gamma=0, replicates=20
    )
    unscored = silent.score_responses(bios(MERGED))
    nothing = unscored.summary
    assert unscored.lines == ["s: FActScore no score, D-FActScore no score"]
    assert (nothing["respond_ratio"], nothing["n_facts"], nothing["dfactscore"]) == (1.0, 3, 0.0)
    assert (nothing["dfactscore_min"], nothing["dfactscore_max"]) == (0.0, 1.0)


def test_guessed_replies_are_told_apart_in_both_verdicts(knowledge: TopicLookup) -> None:
    def vague(prompt: str) -> str:
        # Of the painter's page the model says nothing clear, which the published parser reads as True.
        return "Certainly" if "Title: Ann Lee (painter)" in prompt and "Input:" in prompt else answer(prompt)

    scored = score(knowledge, ScriptedLLM(vague), bios(MERGED), gamma=0, parser="original")
    status = scored.audit_tables[1].pivot(index="claim_id", columns="evaluator", values="status")
    assert status[DFACTSCORE].tolist() == ["unparsed"] * 3
    # The diver's page clearly supports the last fact.
    assert status[FACTSCORE].tolist() == ["unparsed", "unparsed", "ok"]
    assert (scored.responses[0]["n_unparsed"], scored.summary["n_unparsed"]) == (3, 3)


def test_a_given_entity_is_known_by_every_name_of_its_page_and_a_wrong_one_is_said_first(
    knowledge: TopicLookup,
) -> None:
    def told(entity: str) -> list[Response]:
        facts = (AtomicFact("Ann Lee was a painter.", group="a", entity=entity),)
        return bios("Ann Lee was a painter.", facts=facts, candidates=("Ann_Lee_(painter)", "Ann Lee (diver)"))

    llm = ScriptedLLM(answer)
    scorer = DFactScorer(knowledge, llm, groupers=("given",), rule="given", gamma=0)
    (row,) = scorer.score_responses(told("Ann_Lee_(painter)")).responses
    assert (row["facts"][0]["entity"], row["dfactscore"]) == ("Ann Lee (painter)", 1.0)
    asked = len(llm.prompts)
    with pytest.raises(UsageError, match=r"'r0': the given entity 'Ann Lee \(ghost\)' is not among its candidates"):
        scorer.score_responses(told("Ann Lee (ghost)"))
    assert len(llm.prompts) == asked


def test_abstentions_count_in_the_respond_ratio_only(knowledge: TopicLookup, tmp_path: Path) -> None:
    scored = score(knowledge, ScriptedLLM(answer), bios("I'm sorry, I do not know.", MERGED))
    assert scored.summary["respond_ratio"] == 0.5
    assert scored.responses[0]["abstained"] is True
    nothing = score(knowledge, ScriptedLLM(answer), bios("I'm sorry."))
    assert nothing.summary["factscore"] is None
    assert nothing.summary["respond_ratio"] == 0.0
    file = tmp_path / "bios.jsonl"
    file.write_text(json.dumps({"name": "Ann Lee", "output": "I'm sorry."}) + "\n")
    score_dfactscore_files(file, DFactScorer(knowledge, ScriptedLLM(answer)), tmp_path / "run")
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the verifier 'retrieval' needs an LLM"),
        ({"verifiers": ["llm"]}, "the verifier 'llm' needs an LLM"),
        ({"verifiers": "unigram"}, "the grouper 'llm' needs an LLM"),
        ({"verifiers": "unigram", "groupers": ("gven",)}, "groupers: expected 'llm', 'given' or 'one-group'"),
        ({"verifiers": "unigran", "groupers": ("one-group",)}, "unigram"),
        ({"verifiers": "unigram", "groupers": ("one-group",), "rule": "best"}, "rule: expected 'argmax'"),
        (
            {"verifiers": "unigram", "groupers": ("one-group",), "max_candidates": 0},
            "max_candidates: expected greater than",
        ),
    ],
)
def test_wrong_settings_are_said_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        DFactScorer(**options)


# ------------------------------------------------------------------------------------------------- run folders


def test_the_report_colours_merged_paragraphs_and_escapes_them(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    pages = {f"Ann {evil} (x)": f"Ann {evil} sang.", f"Ann {evil} (y)": f"Ann {evil} swam."}
    line = {
        "name": f"Ann {evil}",
        "system": evil,
        "output": f"Ann {evil} sang. She swam.",
        "docs": [{"title": title, "text": text} for title, text in pages.items()],
        "facts": [{"text": f"Ann {evil} sang.", "sentence": 0}, {"text": f"{evil} swam.", "sentence": 1}],
    }
    file = tmp_path / "bios.jsonl"
    file.write_text(json.dumps(line) + "\n")
    scorer = DFactScorer(verifiers="unigram:threshold=0.9", groupers=("one-group",), replicates=0)
    score_dfactscore_files(file, scorer, tmp_path / "run")
    report = (tmp_path / "run" / "report.html").read_text()
    assert 'class="person p0"' in report
    assert 'class="person p1"' in report
    assert "somebody else" in report
    assert "<script>alert" not in report


def test_a_merged_paragraph_lists_people_by_number_of_facts(knowledge: TopicLookup) -> None:
    scored = score(knowledge, ScriptedLLM(answer), bios(MERGED))
    section = build_merged_paragraphs_section(scored.responses)
    assert section is not None
    (item,) = section["merged"]
    assert [(one["title"], one["n"], one["linked"]) for one in item["people"]] == [
        ("Ann Lee (painter)", 2, True),
        ("Ann Lee (diver)", 1, False),
    ]
    assert [one["person"] for one in item["sentences"]] == [0, 0, 1]
    assert [one["elsewhere"] for one in item["facts"]] == [False, False, True]
    assert build_merged_paragraphs_section([{"merged": False}]) is None


def test_citations_annotations_and_views_stand_beside_the_scores(tmp_path: Path) -> None:
    docs = [{"title": title, "text": text} for title, text in PAGES.items()]
    line = {
        "name": "Ann Lee",
        "system": "s",
        "docs": docs,
        "output": "She painted harbours [1]. She dived in Oslo [2].",
    }
    lines = [line | {"response_id": str(n), "facts": ["She painted harbours.", "She dived in Oslo."]} for n in range(2)]
    file = tmp_path / "bios.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))
    notes = tmp_path / "notes.csv"
    header = "system,response_id,annotator,biography,entity,fact,label,page\n"
    rows = [
        f"s,{n},{a},1,Ann Lee (painter),{f},S,{p}\n"
        for n in "01"
        for a in "xy"
        for f, p in (("She painted harbours.", "Ann Lee (painter)"), ("She dived in Oslo.", "Ann Lee (diver)"))
    ]
    notes.write_text(header + "".join(rows))
    scorer = DFactScorer(verifiers="unigram:threshold=0.9", groupers=("one-group",), gamma=0, replicates=50)
    results = score_dfactscore_files(
        file, scorer, tmp_path / "run", citation_judge="unigram:threshold=0.9", annotations=notes
    )
    (citations,) = results.audits["citations"]
    assert (citations["recall"], citations["precision"]) == (1.0, 1.0)
    everyone = results.audits["dfactscore_people"][0]
    assert (everyone["n"], everyone["human_dfactscore"], everyone["dfactscore"]) == (2, 0.5, 0.5)
    assert results.audits["annotator_agreement"][0]["percent"] == 1.0
    assert len(results.about["inputs"]) == 2
    assert "People and the machine" in (tmp_path / "run/report.html").read_text()


# ---------------------------------------------------------------------------------------------------- resuming


# ----------------------------------------------------------------------------------------------- the local model
