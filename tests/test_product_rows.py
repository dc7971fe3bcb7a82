"""Rows that are a product: pairs of systems."""

from __future__ import annotations

from audit_worlds import make_world

from factaudit import compare

PRODUCTS = ("adjustment", "ranking_pairs")


def test_there_are_none_where_they_would_be_more_than_the_limit(monkeypatch):
    monkeypatch.setattr("factaudit.audit.ranking.MOST_PRODUCT_ROWS", 10)
    short = compare(*make_world("whole"), replicates=50)
    assert not short.rows("ranking_pairs")
    assert short.rows("ranking")


def test_products_are_the_same_whoever_stands_beside_an_evaluator():
    claims, verdicts = make_world("whole")
    both = compare(claims, verdicts, replicates=20)
    alone = compare(
        claims, verdicts[verdicts["evaluator"] == "robin"].reset_index(drop=True), replicates=20
    )
    for name in PRODUCTS:
        assert alone.rows(name) == both.rows(name, evaluator="robin")
