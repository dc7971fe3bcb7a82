"""The published human labels of FActScore, through the engine and the audits that compare with
people."""

from __future__ import annotations

import numpy as np
import pytest
from audit_tables import compute, join
from scripted_llm import make_models

from factaudit.engines.factscore import factscore
from factaudit.engines.pipeline import FactScoreSettings, open_knowledge_source
from factaudit.engines.responses import read_responses
from factaudit.knowledge.knowledge_builder import build_knowledge_source


@pytest.mark.parametrize(
    ("system", "irrelevant", "n", "score", "respond"),
    [
        ("ChatGPT", "exclude", 157, 0.6233, 157 / 183),
        ("ChatGPT", "unsupported", 157, 0.583, 157 / 183),
        ("InstructGPT", "exclude", 180, 0.4739, 182 / 183),
    ],
)
def test_the_published_human_scores(shared, system, irrelevant, n, score, respond):
    responses = read_responses([shared / f"factscore/labeled/{system}.jsonl"])
    counts = [one.human for one in responses]
    known = [
        s / (s + ns + ir * (irrelevant == "unsupported"))
        for s, ns, ir in filter(None, counts)
        if s + ns
    ]
    assert len(known) == n
    assert np.mean(known) == pytest.approx(score, abs=5e-5 if irrelevant == "exclude" else 5e-4)
    assert np.mean([one is not None for one in counts]) == pytest.approx(respond)
    assert {one.system for one in responses} == {system}


@pytest.mark.slow
def test_chatgpts_human_facts_are_verified_end_to_end(shared, tmp_path):
    build_knowledge_source(
        shared / "factscore/knowledge/passages_157_entities.jsonl", tmp_path / "wiki.db"
    )
    pages = open_knowledge_source(tmp_path / "wiki.db")
    models = make_models(FactScoreSettings, pages, None, verifiers=["rouge2", "unigram"])
    scored = factscore(
        read_responses([shared / "factscore/labeled/ChatGPT.jsonl"], facts="human"), models
    )
    assert (len(scored.claims), scored.claims["abstained"].sum()) == (5426 + 26, 26)
    assert len(scored.verdicts) == 2 * 5426
    facts = scored.claims[scored.claims["claim"].notna()]
    assert facts["doc"].notna().all()
    assert facts["label"].isna().sum() == 540
    judged = join(scored.claims, scored.verdicts)
    (whole, *_) = compute("factscore", judged)
    assert (whole["n_scored"], whole["respond_ratio"]) == (157, 157 / 183)
    rows = compute("factscore_agreement", judged)
    found = {row["evaluator"]: row for row in rows if row["figure"] == "init_score"}
    assert found["unigram"]["human"] == pytest.approx(0.6233, abs=5e-5)
    assert found["unigram"]["pearson_r"] > found["rouge2"]["pearson_r"] > 0.2
    # Of all facts 62.6 would be compared with 62.3 that people give to those that they labelled.
    assert found["unigram"]["predicted"] == pytest.approx(0.626, abs=5e-4)
    (same,) = [
        row for row in rows if row["figure"] == "same_facts" and row["evaluator"] == "unigram"
    ]
    assert (same["predicted"], same["human"]) == (
        pytest.approx(0.650, abs=5e-4),
        pytest.approx(0.6233, abs=5e-5),
    )
    auc = {one["evaluator"]: one["auc"] for one in compute("discrimination", judged)}
    assert auc["rouge2"] > 0.6
    assert auc["unigram"] > 0.6
