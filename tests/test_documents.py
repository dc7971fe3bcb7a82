"""Documents that many claims share: held once, and the same in every figure and file."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from factaudit import InputError, compare, judge, write_table
from factaudit.tables import (
    documents,
    make_claim_ids,
    read_claims,
    read_verdicts,
    validate_claims,
)
from factaudit.tables.digest import compute_table_digest


def table(n: int = 60) -> pd.DataFrame:
    texts = [
        "the cat sat on the mat, é",
        "a dog\nbarks at the moon",
        "",
        None,
        "no \U0001f600 end " * 9,
    ]
    return pd.DataFrame(
        {
            "claim_id": [f"c{i}" for i in range(n)],
            "dataset": [f"d{i % 2}" for i in range(n)],
            "system": [f"s{i % 3}" for i in range(n)],
            "claim": ["the cat sat", "a dog barks at", "no \U0001f600 end no", "the moon"]
            * (n // 4),
            "doc": [texts[i // 3 % 5] for i in range(n)],
            "label": [i % 2 for i in range(n)],
            "note": [f"n{i}" for i in range(n)],
        }
    )


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl.gz"])
def test_claims_of_one_document_share_its_text(tmp_path, suffix):
    path = tmp_path / f"claims{suffix}"
    write_table(table(), path)
    claims = read_claims(path)
    texts = claims["doc"].dropna()
    assert len({id(text) for text in texts}) == texts.nunique()
    again = tmp_path / "again.parquet"
    write_table(claims, again)
    as_text = claims.astype({"doc": claims["claim"].dtype})
    pd.testing.assert_frame_equal(pd.read_parquet(again), as_text)
    pd.testing.assert_frame_equal(read_claims(again), claims)
    assert compute_table_digest(as_text) == compute_table_digest(claims)
    ids = make_claim_ids(claims)
    assert make_claim_ids(as_text).tolist() == ids.tolist()


@pytest.mark.parametrize("kind", ["int64", "float64", "Int64", "category"])
def test_documents_that_are_numbers_are_text(kind):
    given = table(4).assign(doc=pd.Series([7, 8, 7, 7]).astype(kind))
    assert validate_claims(given)["doc"].tolist() == ["7", "8", "7", "7"]
    with pytest.raises(InputError, match="row 2, column 'doc': expected text"):
        validate_claims(given.assign(doc=[1, 1.5, 2, 3]))


def test_figures_and_verdicts_are_the_same(tmp_path, monkeypatch):
    path = tmp_path / "claims.parquet"
    write_table(table(), path)
    random = np.random.default_rng(0)
    for name in ("x", "chunked-x"):
        verdicts = pd.DataFrame(
            {"claim_id": table()["claim_id"], "evaluator": name, "score": random.random(60)}
        )
        write_table(verdicts, tmp_path / f"{name}.parquet")

    def figures():
        claims = read_claims(path)
        verdicts = read_verdicts(
            tmp_path / "x.parquet", tmp_path / "chunked-x.parquet", claims=claims
        )
        audits = [
            "surface_bias",
            {"chunking": {"size": 3}},
            {"chunking_rates": {"size": 3}},
            "rates",
        ]
        found = compare(claims, verdicts, audits=audits, replicates=50)
        judged = judge(claims, ["rouge2"])
        return found.to_dict(), judged.to_dict("list")

    plain = figures()
    monkeypatch.setattr(documents, "BLOCK_CHARACTERS", 50)
    long = figures()
    assert json.dumps(long[0]) == json.dumps(plain[0])
    pd.testing.assert_frame_equal(pd.DataFrame(long[1]), pd.DataFrame(plain[1]))
