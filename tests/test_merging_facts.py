"""The published decisions of Merging Facts as tables: totals to the last digit, lost facts, names
of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from audit_tables import compute, find, join

from factaudit import convert
from factaudit.datasets.merging_facts import parse_merging_facts_system

Row = dict[str, Any]


@pytest.fixture(scope="module")
def published(shared):
    return convert("merging-facts", [shared / "dfactscore" / "results"])


@pytest.fixture(scope="module")
def rows(published):
    judged = join(published.claims, published.verdicts)
    return compute("dfactscore", judged, link="given", replicates=200)


@pytest.fixture(scope="module")
def totals(shared: Path) -> dict[str, Row]:
    """What the files say of themselves, by system."""
    paths = sorted((shared / "dfactscore" / "results").glob("*.json"))
    return {parse_merging_facts_system(path): json.loads(path.read_text()) for path in paths}


@pytest.mark.slow
def test_figures_equal_the_files_own_totals(rows, totals):
    assert {row["system"] for row in rows} == {"__all__", *totals}
    for system, total in totals.items():
        row = find(rows, system=system)
        for ours, theirs in (
            ("init_factscore", "init_score"),
            ("init_dfactscore", "init_global_score"),
            ("n_entities", "num_supporting_topics"),
            ("n_biographies", "num_groups"),
            ("respond_ratio", "respond_ratio"),
            ("facts_per_response", "num_facts_per_response"),
        ):
            assert row[ours] == pytest.approx(total[theirs], abs=1e-9)
        for name in ("init_factscore", "init_dfactscore", "gap", "share_merged"):
            assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
            assert row[f"{name}_min"] <= row[name] <= row[f"{name}_max"]
        # A lost fact may have been supported or not.
        assert row["init_dfactscore_min"] < row["init_dfactscore"] < row["init_dfactscore_max"]


@pytest.mark.slow
def test_table_4_to_the_printed_digit(rows, root):
    """Of the five systems' ten files four are at hand: 16 of the 40 printed figures."""
    ours = {row["system"]: row for row in rows}
    printed = pd.read_csv(root / "data/published/mf_table4.csv", dtype="str")
    here = printed[printed["system"].isin(ours)]
    assert (len(printed), len(here)) == (40, 16)
    for system, figure, value in here[["system", "figure", "value"]].itertuples(index=False):
        unit = 100 if figure.startswith("init_") else 1
        decimals = len(value.partition(".")[2])
        assert round(unit * ours[system][figure], decimals) == float(value), (system, figure)


@pytest.mark.slow
def test_lost_facts_are_counted(published):
    lost = {
        note.split(": ")[1].split(", 500 resp")[0]: note.split(", ")[-1].split()[0]
        for note in published.notes
    }
    assert lost == {
        "Llama-2-13b-chat, no ambiguity": "601",
        "Llama-2-13b-chat (facts by ChatGPT)": "585",
        "Llama-2-13b-chat": "518",
        "Llama-2-70b-chat": "633",
        "gpt-3.5-turbo-0301 (facts by ChatGPT)": "449",
        "gpt-3.5-turbo-0301": "449",
    }
    claims = published.claims
    facts = claims[claims["fact_id"].notna()].drop_duplicates("fact_id")
    for system, number in lost.items():
        own = facts[facts["system"] == system]
        # What the grouping invented makes up for none.
        assert own["group"].isna().sum() == int(number)


@pytest.mark.slow
def test_merged_responses_are_those_with_a_fact_of_somebody_else(rows):
    assert find(rows, system="gpt-3.5-turbo-0301")["share_merged"] == pytest.approx(65 / 397)
    assert {row["system"]: row["n_elsewhere"] for row in rows if row["system"] != "__all__"} == {
        "Llama-2-13b-chat, no ambiguity": 1545,
        "Llama-2-13b-chat (facts by ChatGPT)": 836,
        "Llama-2-13b-chat": 969,
        "Llama-2-70b-chat": 1258,
        "gpt-3.5-turbo-0301 (facts by ChatGPT)": 288,
        "gpt-3.5-turbo-0301": 147,
    }


def test_systems_by_file_name():
    assert parse_merging_facts_system(
        "bioqa-vicuna-7b-v1.5-16k-gtr-careful-shot2-ndoc5-42_factscore_output.json"
    ).endswith(", careful")
    assert parse_merging_facts_system("anything.json") == "anything"
