"""Judges and their own family: families by name, figures by hand, unequal error rates, other judges, words."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from audit_tables import Row, find, judged, tables

from factaudit.audit.core.statements import Statement
from factaudit.audit.findings import collect_findings
from factaudit.audit.first_screen import compose_first_screen
from factaudit.audit.quantification import compute_quantification_bias
from factaudit.audit.self_preference import MODEL_FAMILIES, compute_self_preference, find_model_family
from factaudit.errors import UsageError
from factaudit.results import compare
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

INTERVALS = ClusterBootstrap(replicates=20)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("gpt-4o-mini-2024-07-18", "GPT"),
        ("ChatGPT", "GPT"),
        ("gpt2-xl", "GPT"),
        ("gpt3_wdoc", "GPT"),
        ("text-davinci-003", "GPT"),
        ("openai/o3-mini", "GPT"),
        ("gpt-oss-20b", "GPT"),
        ("gpt-judge", "GPT"),
        ("gpt-j-6b", None),
        ("gpt-neox-20b", None),
        ("foo3", None),
        ("pro1", None),
        ("llm:model=claude-3-5-sonnet", "Claude"),
        ("gemini-1.5-pro", "Gemini"),
        ("gemma-2-9b-it", "Gemma"),
        ("Meta-Llama-3.1-8B-Instruct", "Llama"),
        ("llamaindex", None),
        ("mixtral-8x7b", "Mistral"),
        ("mistral-7B-instruct", "Mistral"),
        ("Qwen2.5-72B", "Qwen"),
        ("deepseek-v3", "DeepSeek"),
        ("deepseek-r1-distill-llama-70b", None),  # of two families
        ("command-r-plus", "Command"),
        ("command", None),
        ("phi-4", "Phi"),
        ("philosophy-1", None),
        ("grok-2", "Grok"),
        ("yi-34b", "Yi"),
        ("bespoke-minicheck-7b", None),
        ("rouge2", None),
        ("human", None),
        ("alpaca_wdoc", None),
    ],
)
def test_a_name_tells_its_family_or_none(name, family):
    assert find_model_family(name) == family
    assert family is None or family in MODEL_FAMILIES
    assert find_model_family(name, {name: "mine"}) == "mine"


SYSTEMS = ("gpt-4", "gpt-3.5", "llama-3", "mistral-7b", "model-a")


def draw_rows(seed: int, lenient: float, documents: int = 100, harder: float = 0.0) -> list[Row]:
    """Judges that see 70 % of the errors; the first passes ``lenient`` of the GPT models' claims that it would reject.

    GPT models have a third of the errors of others; ``harder``: the share of their flags that every judge drops.
    """
    random = np.random.default_rng(seed)
    rows = []
    for document, system in product(range(documents), SYSTEMS):
        is_gpt = system.startswith("gpt")
        label = int(random.random() >= (0.15 if is_gpt else 0.45))
        row: Row = {"system": system, "doc_id": str(document), "label": label, "topic": system[:3]}
        for judge in ("gpt-judge", "llama-judge", "mistral-judge"):
            flags = random.random() < (0.15 if label else 0.7)
            dropped = is_gpt * (lenient * (judge == "gpt-judge") + harder)
            row[judge] = int(not flags or random.random() < dropped)
        rows.append(row)
    return rows


JUDGES = ("gpt-judge", "llama-judge", "mistral-judge")


def test_figures_by_hand():
    rows = draw_rows(1, 0.5)
    row = find(compute_self_preference(judged(rows, *JUDGES), intervals=INTERVALS), evaluator="gpt-judge")
    known = [each for each in rows if each["system"] != "model-a"]  # of no family that is known
    own = [each for each in known if each["system"].startswith("gpt")]
    others = [each for each in known if not each["system"].startswith("gpt")]
    assert (row["family"], row["n"], row["n_others"]) == ("GPT", len(own), len(others))
    assert (row["n_systems"], row["n_other_systems"], row["n_judges"]) == (2, 2, 2)
    preference = excess = 0.0
    for label in (0, 1):
        weight = np.mean([each["label"] == label for each in known])
        for sign, group in ((1, own), (-1, others)):
            mine = [each for each in group if each["label"] == label]
            preference += sign * weight * np.mean([each["gpt-judge"] for each in mine])
            rest = [each["gpt-judge"] - (each["llama-judge"] + each["mistral-judge"]) / 2 for each in mine]
            excess += sign * weight * np.mean(rest)
    assert row["preference"] == pytest.approx(preference)
    assert row["excess"] == pytest.approx(excess)
    assert row["preference_low"] < preference < row["preference_high"]
    assert row["excess_low"] < excess < row["excess_high"]
    # The biases are those of `quantification` where a system is a family.
    table = judged([each | {"system": "GPT" if each in own else "others"} for each in known], *JUDGES)
    biases = compute_quantification_bias(table, levels=["claim"], intervals=INTERVALS)
    for key, system in (("bias_own", "GPT"), ("bias_others", "others")):
        expected = find(biases, evaluator="gpt-judge", system=system)
        for end in ("", "_min", "_max", "_low", "_high"):
            assert row[key + end] == pytest.approx(expected["bias" + end])


def say(rows: list[Row]) -> list[Row]:
    return [each for each in collect_findings({"self_preference": rows}) if each["id"] == "self_preference"]


def test_a_family_with_fewer_errors_is_not_favoured_though_its_bias_is_another():
    rows = compute_self_preference(judged(draw_rows(2, 0.0, 400), *JUDGES), intervals=INTERVALS)
    row = find(rows, evaluator="gpt-judge")
    assert row["bias_own_low"] > row["bias_others_high"]
    assert row["preference_low"] < 0 < row["preference_high"]
    assert say(rows) == []


def test_a_lenient_judge_is_named_by_a_statement_and_on_the_first_screen():
    rows = compute_self_preference(judged(draw_rows(3, 0.5), *JUDGES), intervals=INTERVALS)
    (finding,) = say(rows)
    assert (finding["severity"], finding["evaluator"]) == ("fail", "gpt-judge")
    assert isinstance(finding["statement"], Statement)
    assert "is significantly more lenient with its own family" in finding["statement"]
    assert "more of the claims of GPT models than of others' with the same label" in finding["statement"]
    # Whoever is not recommended is not spoken of.
    audits = ["rates", "differences", "self_preference"]
    lenient, fair = (
        compare(*tables(draw_rows(seed, size), JUDGES[:n]), audits=audits, replicates=50)
        for seed, size, n in ((3, 0.5, 1), (2, 0.0, 3))
    )
    lines = [line.sentence for line in compose_first_screen(lenient.to_dict()).advice if line.word == "Beware"]
    assert any("gpt-judge is significantly more lenient with its own family: on d" in line for line in lines)
    assert not any("lenient" in line.sentence for line in compose_first_screen(fair.to_dict()).advice)


def test_claims_that_are_easier_for_all_judges_are_no_preference_of_one():
    rows = compute_self_preference(judged(draw_rows(4, 0.0, 200, harder=0.5), *JUDGES), intervals=INTERVALS)
    row = find(rows, evaluator="gpt-judge")
    assert row["preference_low"] > 0
    assert row["excess_low"] < 0 < row["excess_high"]
    assert say(rows) == []
    # Without other judges the same cannot be told, and is a caveat.
    alone = compute_self_preference(judged(draw_rows(4, 0.0, 200, harder=0.5), "gpt-judge"), intervals=INTERVALS)
    assert alone[0]["reason"] == "no judge of another family to compare with"
    (finding,) = say(alone)
    assert finding["severity"] == "warn"
    assert "No judge of another family says whether these claims are easier for all." in finding["statement"]
    assert say(compute_self_preference(judged(draw_rows(3, 0.5), *JUDGES))) == []  # without intervals


def test_bounds_hold_whatever_the_missing_verdicts_are():
    rows = draw_rows(5, 0.5, 3)
    rows[0]["gpt-judge"] = rows[6]["gpt-judge"] = rows[3]["llama-judge"] = None
    row = find(compute_self_preference(judged(rows, *JUDGES)), evaluator="gpt-judge")
    assert row["n_unscored"] == 2
    gaps = [(at, judge) for at, each in enumerate(rows) for judge in JUDGES if each[judge] is None]
    for values in product((0, 1), repeat=len(gaps)):
        full = [dict(each) for each in rows]
        for (at, judge), value in zip(gaps, values, strict=True):
            full[at][judge] = value
        one = find(compute_self_preference(judged(full, *JUDGES)), evaluator="gpt-judge")
        for key in ("preference", "excess", "bias_own", "bias_others"):
            assert row[f"{key}_min"] - 1e-12 <= one[key] <= row[f"{key}_max"] + 1e-12, key


def test_a_class_that_a_family_lacks_and_no_verdict_have_reasons():
    rows = [each | {"label": 1 if each["system"].startswith("gpt") else each["label"]} for each in draw_rows(6, 0.0)]
    row = find(compute_self_preference(judged(rows, *JUDGES), intervals=INTERVALS), evaluator="gpt-judge")
    assert (row["preference"], row["preference_low"], row["excess"]) == (None, None, None)
    assert row["reason"] == "no unattributable claim of its own family (GPT) is there"
    mute = [each | {"gpt-judge": None} for each in draw_rows(6, 0.0)]
    row = find(compute_self_preference(judged(mute, *JUDGES), intervals=INTERVALS), evaluator="gpt-judge")
    assert (row["n"], row["bias_own"], row["preference"]) == (0, None, None)
    assert "no attributable claim of its own family (GPT) is scored" in row["reason"]


def test_families_can_be_named_and_be_in_a_column():
    rows = draw_rows(7, 0.5)
    named = compute_self_preference(judged(rows, *JUDGES), families={"model-a": "GPT", "llama-judge": "other"})
    assert {row["evaluator"] for row in named} == {"gpt-judge", "mistral-judge"}
    assert find(named, evaluator="gpt-judge")["n_systems"] == 3
    by_column = [row | {"maker": "GPT" if row["system"] == "model-a" else "Llama"} for row in rows]
    row = find(compute_self_preference(judged(by_column, *JUDGES), column="maker"), evaluator="gpt-judge")
    assert (row["n_systems"], row["n_other_systems"]) == (1, 4)
    with pytest.raises(UsageError, match="no evaluator or system 'model-b'"):
        compute_self_preference(judged(rows, *JUDGES), families={"model-b": "GPT"})


def test_it_is_computed_where_several_families_and_a_judge_of_one_are_there():
    rows = draw_rows(8, 0.0, 10)
    assert "self_preference" in compare(*tables(rows, JUDGES), replicates=20).audits
    alone = [row for row in rows if row["system"].startswith("gpt") or row["system"] == "model-a"]
    assert "self_preference" not in compare(*tables(alone, JUDGES), replicates=20).audits
    assert compute_self_preference(judged(alone, *JUDGES)) == []
    renamed = [row | {"judge": row["gpt-judge"]} for row in rows]
    assert compute_self_preference(judged(renamed, "judge")) == []
    unlabelled = replace(judged(rows, *JUDGES), label=np.full(len(rows), -1, dtype=np.int8))
    assert compute_self_preference(unlabelled) == []


def test_the_order_of_rows_changes_nothing():
    rows = [row | {"claim_id": f"c{at}"} for at, row in enumerate(draw_rows(9, 0.3, 40))]
    expected = compute_self_preference(judged(rows, *JUDGES), intervals=INTERVALS)
    assert compute_self_preference(judged(rows[::-1], *JUDGES), intervals=INTERVALS) == expected
