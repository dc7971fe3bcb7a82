"""Rules that change one thing of a claim: what they make, and above all what they leave alone."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import factaudit as fa
from factaudit import InputError
from factaudit.perturb.rule_list import PERTURBATION_RULES
from factaudit.perturb.variants import add_claim_variants, select_claims_with_variants

ROOT = Path(__file__).parents[1]


def edits(kind: str, claim: str, doc: str = "") -> set[str]:
    """All that a rule makes of a claim; of one on documents all documents."""
    return set(PERTURBATION_RULES[kind].list_edits(claim, doc or claim, Random(0)))


EDITS = yaml.safe_load(
    (Path(__file__).parent / "golden" / "perturbations.yaml").read_text(encoding="utf-8")
)
MADE = [(kind, *row) for kind, rows in EDITS["made"].items() for row in rows]
LEFT_ALONE = [(kind, claim) for kind, claims in EDITS["left_alone"].items() for claim in claims]


@pytest.mark.parametrize(("kind", "claim", "becomes"), MADE)
def test_a_rule_makes_what_it_says(kind, claim, becomes):
    made = edits(kind, claim)
    assert made
    assert claim not in made
    if becomes is not None:
        assert becomes in made


@pytest.mark.parametrize(("kind", "claim"), LEFT_ALONE)
def test_a_rule_leaves_alone_what_it_does_not_surely_fit(kind, claim):
    assert edits(kind, claim) == set()


def test_a_changed_number_is_in_no_document_and_greater():
    for seed in range(60):
        (text,) = PERTURBATION_RULES["number_changed"].list_edits(
            "The trial lasted 9 weeks.",
            "It took nine weeks; 10, 11 and 12 were planned.",
            Random(seed),
        )
        assert int(re.findall(r"\d+", text)[0]) in range(13, 19)


def test_a_number_that_the_document_lacks_is_left_alone():
    assert edits("number_changed", "The trial lasted nine weeks.", "It lasted two months.") == set()
    assert edits("date_changed", "The mill closed in 1911.", "It closed.") == set()


def test_no_rule_adds_anything_but_its_edit_to_a_document():
    doc = "Rain fell.\n\nThe mill closed in 1911.\n\nSnow fell."
    asides = edits("aside_added", "The mill closed in 1911.", doc)
    assert asides
    assert all(doc in text for text in asides)
    assert not any(
        "postcards" in text
        for text in edits("aside_added", "The kiosk sells lighthouse postcards.", doc)
    )


PIECES = [
    *"aeiT .,\n\"'“”’()-–%$€0129\u200e\x00Ж中ß",
    " not ",
    " is ",
    " because ",
    "Passage 1:",
    " 5 kg ",
]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@settings(max_examples=60)
@given(HOSTILE, HOSTILE)
def test_no_text_breaks_a_rule(claim, doc):
    for rule in PERTURBATION_RULES.values():
        for text in rule.list_edits(claim, doc, Random(0)):
            assert isinstance(text, str)


# ---- tables


@pytest.fixture(scope="module")
def minibench() -> pd.DataFrame:
    return fa.read_claims(ROOT / "data" / "minibench" / "claims.jsonl.gz")


def test_variants_are_claims_with_one_thing_changed(minibench):
    table = add_claim_variants(minibench, per_kind=5, seed=1)
    plain, made = table[table["variant_of"].isna()], table[table["variant_of"].notna()]
    assert sorted(plain["claim_id"]) == sorted(minibench["claim_id"])
    assert table["claim_id"].is_unique
    assert made["label"].isna().all()
    whole = minibench.set_index("claim_id")
    for row in made.itertuples():
        original, rule = whole.loc[row.variant_of], PERTURBATION_RULES[row.kind]
        assert row.expected == rule.expected
        assert (row.claim == original["claim"], row.doc == original["doc"]) == (
            rule.changes == "doc",
            rule.changes == "claim",
        )
    assert made.groupby(["dataset", "kind"]).size().max() == 5
    # A claim's variants with its own document stand right behind it.
    for before, row in zip(table.itertuples(), table.iloc[1:].itertuples(), strict=False):
        if isinstance(row.variant_of, str) and PERTURBATION_RULES[row.kind].changes == "claim":
            assert row.variant_of in (before.claim_id, before.variant_of)
    pairs = select_claims_with_variants(table)
    assert set(pairs["claim_id"]) == set(made["variant_of"]) | set(made["claim_id"])


def test_what_is_drawn_follows_from_seed_kind_and_claim_alone(minibench):
    def ids_and_texts(table):
        made = table[table["variant_of"].notna() & (table["kind"] == "number_changed")]
        return set(zip(made["claim_id"], made["claim"], strict=True))

    found = ids_and_texts(add_claim_variants(minibench, ["number_changed"], seed=3))
    assert found == ids_and_texts(
        add_claim_variants(minibench, ["date_changed", "number_changed"], seed=3)
    )
    turned = minibench.iloc[::-1].reset_index(drop=True)
    assert found == ids_and_texts(add_claim_variants(turned, ["number_changed"], seed=3))
    assert found != ids_and_texts(add_claim_variants(minibench, ["number_changed"], seed=4))
    few = ids_and_texts(add_claim_variants(minibench, ["number_changed"], per_kind=4, seed=3))
    assert few < found


def test_the_command_writes_pairs_that_are_judged_and_audited_like_any_claims(
    tmp_path, call, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    source = ROOT / "data" / "minibench" / "claims.jsonl.gz"
    code, out, err = call(
        "perturb", source, "--kinds", "same,negation_added", "--per-kind", "3", "--out", "p.parquet"
    )
    assert code == 0, err
    assert "the meaning changes: 12 negation_added" in out
    assert call("judge", "p.parquet", "--evaluator", "unigram", "--out", "v.parquet")[0] == 0
    code, out, err = call("audit", "p.parquet", "v.parquet", "--out", "run", "--replicates", "0")
    assert code == 0, err
    assert re.search(r"claims +\d+ in 4 data sets, and \d+ variants", out)
    rows = fa.Results.load("run").rows("invariance", kind="negation_added")
    # Words alone tell nothing.
    assert [(row["failure_rate"], row["expected"]) for row in rows] == [(1.0, "changed")]
    code, out, err = call("perturb", source, "--kinds", "nagation_added", "--out", "q.parquet")
    assert code == 2
    assert "did you mean 'negation_added'" in err


@pytest.mark.slow
def test_an_experiment_makes_variants_of_its_claims(tmp_path):
    source = ROOT / "data" / "minibench" / "claims.jsonl.gz"
    text = (
        f"claims: {source}\nlimit_documents: 1\nevaluators: [unigram]\nreplicates: 0\nperturb:"
        " {per_kind: 2}\n"
    )
    path = tmp_path / "e.yaml"
    path.write_text(text)
    results = fa.run(path, out=tmp_path / "run")
    alone = fa.run(path, out=tmp_path / "alone", settings={"perturb": None})
    assert results.rows("rates") == alone.rows("rates"), "variants are in no other audit"
    assert results.rows("invariance")
    assert "invariance" not in alone.audits
    for settings_of, said in (
        ({"perturb": {"kinds": ["spellin"]}}, "unknown kind 'spellin'"),
        (
            {"evaluators": [], "verdicts": [str(tmp_path / "run" / "verdicts.parquet")]},
            "perturb: expected evaluators",
        ),
    ):
        with pytest.raises(InputError, match=said):
            fa.run(path, out=tmp_path / "other", settings=settings_of)
