"""The first screen: what it says of many kinds of runs, and what it must not say."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from factaudit import compare
from factaudit.arrays.judgements import Judgements
from factaudit.audit import make_audited_run
from factaudit.audit.first_screen import MAX_EVALUATORS, FirstScreen, compose_first_screen
from factaudit.audit.quantification import decide_on_quantification
from factaudit.audit.rates import AUDIT as RATES_AUDIT
from factaudit.cli.first_screen_text import SCREEN_WIDTH, format_terminal_first_screen
from factaudit.errors import UsageError
from factaudit.estimate.rate_estimation import estimate_rates
from factaudit.report.claim_browser import ClaimBrowser
from factaudit.report.report_document import _explain_report_claims_labels_and_intervals
from factaudit.report.summary import build_report_evaluator_overview
from factaudit.results import Results
from factaudit.tables import validate_claims, validate_verdicts

SYSTEMS = ("ada", "bea", "cid", "dan", "eva", "fay")


def make_tables(rates, n=600, error_share=0.3, systems=SYSTEMS, datasets=("d",), seed=0, labelled=True):
    """Claims, and verdicts of evaluators with these (TPR, TNR)."""
    random = np.random.default_rng(seed)
    labels = (random.random(n) >= error_share).astype(int)
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{i:05}" for i in range(n)],
            "dataset": [datasets[i % len(datasets)] for i in range(n)],
            "doc": [f"document {i // 3}" for i in range(n)],
            "claim": [f"claim {i}" for i in range(n)],
            "label": labels if labelled else None,
        }
    )
    if systems:
        claims["system"] = [systems[i % len(systems)] for i in range(n)]
    verdicts = []
    for name, (tpr, tnr) in rates.items():
        hit = random.random(n)
        said = np.where(labels == 1, hit < tpr, hit >= tnr).astype(int)
        verdicts.append(
            pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": name, "prediction": said, "status": "ok"})
        )
    return claims, pd.concat(verdicts, ignore_index=True)


def screen_of(results: Results) -> FirstScreen:
    return compose_first_screen(results.to_dict())


def advice_of(screen: FirstScreen, word: str) -> list[str]:
    return [str(one.sentence) for one in screen.advice if one.word == word]


def column_of(screen: FirstScreen, head: str) -> list[str]:
    (at,) = [i for i, lines in enumerate(screen.columns) if head in " ".join(lines)]
    return [row[at] for row in screen.rows]


def test_a_clear_best_one_and_one_to_avoid():
    results = compare(*make_tables({"good": (0.95, 0.6), "always": (0.05, 0.99)}), replicates=200)
    screen = screen_of(results)
    assert advice_of(screen, "Best") == ["good: significantly more accurate than always."]
    assert not advice_of(screen, "Use"), "no decision is “yes”"
    (avoid,) = advice_of(screen, "Avoid")
    tpr = next(row["tpr"] for row in results.audits["rates"] if row["evaluator"] == "always")
    assert avoid == f"always: it flags {round(100 * (1 - tpr))} of 100 correct claims."
    tnr = next(row["tnr"] for row in results.audits["rates"] if row["evaluator"] == "good")
    assert advice_of(screen, "Not for")[0] == (
        f"flagging single errors: good misses {round(100 * (1 - tnr))} of 100 errors."
    )
    assert column_of(screen, "misses")[0] == f"{100 * (1 - tnr):.0f}"


@pytest.mark.parametrize("n_errors", [2, 30])
def test_labels_without_a_verdict_are_no_lack_of_labels(n_errors):
    claims, verdicts = make_tables({"cut": (0.9, 0.9)}, n=60)
    claims["label"] = [0] * n_errors + [1] * (60 - n_errors)
    scored = [*range(2), *range(n_errors, n_errors + 11)]
    cut = ~verdicts.index.isin(scored)
    verdicts["prediction"] = verdicts["prediction"].astype("Int64").mask(cut)
    verdicts.loc[cut, "status"] = "unparsed"
    screen = screen_of(compare(claims, verdicts, replicates=200))
    rest = f"these figures rest on 2 of {n_errors} labelled errors and 11 of {60 - n_errors} labelled correct claims."
    judge = "47 labelled claims again: cut has no verdict on them"
    if n_errors == 2:
        assert advice_of(screen, "Label") == [f"new claims: {rest}"]
        assert advice_of(screen, "Judge") == [f"{judge}."]
    else:
        assert not advice_of(screen, "Label"), "with verdicts these labels are enough"
        assert advice_of(screen, "Judge") == [f"{judge}: {rest}"]


def test_rates_that_unscored_claims_leave_open_are_called_so():
    claims, verdicts = make_tables({"e": (0.97, 0.58)}, n=1500, systems=("x", "y"))
    lost = verdicts.index % 19 == 0
    verdicts["prediction"] = verdicts["prediction"].astype("Int64").mask(lost)
    verdicts.loc[lost, "status"] = "error"
    results = compare(claims, verdicts, replicates=200)
    decision = decide_on_quantification(make_audited_run(results.audits, results.about), "e")
    assert decision is not None
    assert decision.may == "cannot tell"
    text = str(decision.sentence)
    assert re.search(
        r"farther off. After the correction for \d+ tests none is, whatever the unscored claims are: \d+ of", text
    ), text
    (advice,) = [one for one in advice_of(screen_of(results), "Beware") if one.startswith("error rates")]
    assert advice.endswith("none significantly by over 5 whatever the unscored claims are.")


def test_unscored_claims_are_not_blamed_where_the_correction_alone_decides():
    """A bias of 13 points whose bounds are 12 and 14 is over the limit whatever the unscored claims are."""
    claims, verdicts = make_tables(dict.fromkeys("abcdef", (0.86, 0.92)), n=600)
    lost = (verdicts["evaluator"] == "a") & (verdicts.index % 100 == 0)
    verdicts["prediction"] = verdicts["prediction"].astype("Int64").mask(lost)
    verdicts.loc[lost, "status"] = "error"
    results = compare(claims, verdicts, replicates=0)
    run = make_audited_run(results.audits, results.about)
    rows = [row for row in run.rows("quantification") if row["evaluator"] == "a" and row["level"] == "claim"]
    for row in rows:  # one rate that is farther off by its own interval, and by no corrected test
        half = 0.005 if row["system"] != "ada" else 0.078
        row |= {"bias": 0.0 if row["system"] != "ada" else 0.135, "p_bias": 0.9 if row["system"] != "ada" else 0.0005}
        row |= {"bias_low": row["bias"] - half, "bias_high": row["bias"] + half, "n_clusters": 100}
        row |= {"bias_min": row["bias"] - 0.005, "bias_max": row["bias"] + 0.005, "n_unscored": 1}
    decision = decide_on_quantification(run, "a")
    assert decision is not None
    assert re.search(r"1 of 6 is farther off. After the correction for \d+ tests none is\.$", str(decision.sentence))


def test_who_of_equals_flags_single_errors_is_named_and_what_has_no_label_is_to_be_labelled():
    """Of two that do not differ one finds 80 % of both classes: "Use" alone does not say which."""
    claims, verdicts = make_tables({"fit": (0.9, 0.89), "loose": (0.98, 0.83)}, n=900)
    claims["label"] = claims["label"].astype("Int64").mask(claims.index >= 840)
    screen = screen_of(compare(claims, verdicts, replicates=200))
    (use,) = advice_of(screen, "Use") + advice_of(screen, "Best")
    assert {"fit", "loose"} <= set(use.replace(":", "").split())
    told = "flagging single errors: fit finds significantly more than 80 % of the errors, and passes as large a share "
    assert told + "of the correct claims." in advice_of(screen, "Good for")
    assert not any("new claims" in one for one in advice_of(screen, "Instead"))
    biased = make_tables({"fit": (0.75, 0.89)}, n=900)
    full = screen_of(compare(*biased, replicates=200))
    assert any("a sample of new claims" in one for one in advice_of(full, "Instead"))
    biased[0]["label"] = claims["label"].where(claims["label"].isna(), biased[0]["label"])
    part = screen_of(compare(*biased, replicates=200))
    assert any("a sample of the unlabelled claims" in one for one in advice_of(part, "Instead"))


def test_who_of_equals_ranks_systems_is_named():
    """Of two that do not differ one has no verdict on a seventh of the claims: whether it ranks nobody can tell."""
    random, n = np.random.default_rng(1), 3000
    claims, verdicts = make_tables({"a": (0.95, 0.95), "b": (0.95, 0.95)}, n=n)
    share = np.array([0.05, 0.2, 0.35, 0.5, 0.65, 0.8])[np.arange(n) % 6]
    claims["label"] = (random.random(n) >= share).astype(int)
    for name in "ab":
        said = np.where(random.random(n) < 0.05, 1 - claims["label"], claims["label"])
        verdicts.loc[verdicts["evaluator"] == name, "prediction"] = said
    full = screen_of(compare(claims, verdicts, replicates=100))
    assert not any("ranking" in one for one in advice_of(full, "Good for")), "of both it is so"
    lost = (verdicts["evaluator"] == "b") & (verdicts.index % 7 == 0)
    verdicts["prediction"] = verdicts["prediction"].astype("Int64").mask(lost)
    verdicts.loc[lost, "status"] = "refused"
    assert "ranking systems: a." in advice_of(screen_of(compare(claims, verdicts, replicates=100)), "Good for")


def test_rates_of_whole_data_sets_are_counted_as_such_and_two_systems_are_no_pairs():
    claims, verdicts = make_tables({"e": (0.85, 0.93)}, n=1200, datasets=("d", "f"))
    claims["system"] = np.array([f"s{at}" for at in range(30)])[np.arange(len(claims)) // 2 % 30]
    results = compare(claims, verdicts, audits=["rates", "quantification"], replicates=50)
    (line,) = [one for one in advice_of(screen_of(results), "Beware") if "all systems together" in one]
    assert line.startswith("error rates: those of all systems together by e are significantly off")
    two = make_tables({"e": (0.9, 0.9)}, systems=("x", "y"), n=300)
    beware = advice_of(screen_of(compare(*two, replicates=200)), "Beware")
    assert "these labels do not order the two systems." in beware


def test_equals_are_both_recommended_and_none_where_all_guess():
    equal = screen_of(compare(*make_tables({"a": (0.9, 0.9), "b": (0.9, 0.9)}), replicates=200))
    (use,) = advice_of(equal, "Use")
    assert use in (
        "a or b: the difference is not significant.",
        "b or a: the difference is not significant.",
    )
    assert any("flagging single errors" in text for text in advice_of(equal, "Good for"))
    guessing = screen_of(compare(*make_tables({"a": (0.5, 0.5), "b": (0.5, 0.5)}), replicates=200))
    assert not advice_of(guessing, "Use")
    assert advice_of(guessing, "Do not use") == ["any of them as they are: none is shown to be better than guessing."]


def test_use_is_said_where_each_that_it_names_may_be_used():
    """ "Use a or b" of two of which one may be used for nothing: the reader may take either."""
    claims, verdicts = make_tables({"a": (0.9, 0.9), "b": (0.9, 0.9)})
    verdicts["prediction"] = verdicts["prediction"].astype("Int64")
    lost = (verdicts["evaluator"] == "b") & (verdicts.index % 8 == 0)
    verdicts.loc[lost, "prediction"] = None
    verdicts.loc[lost, "status"] = "refused"
    results = compare(claims, verdicts, audits=["rates"], replicates=200)
    run = make_audited_run(results.audits, results.about)
    (decision,) = RATES_AUDIT.decides
    answers = {name: decision.answer(run, name).may for name in ("a", "b")}
    assert answers == {"a": "yes", "b": "cannot tell"}
    screen = screen_of(results)
    assert not advice_of(screen, "Use")
    (best,) = advice_of(screen, "Best")
    assert {"a", "b"} <= set(best.replace(":", "").split())


def test_one_that_is_of_use_is_named_where_a_noisy_one_stands_above_it():
    claims, verdicts = make_tables({"useful": (0.75, 0.7), "noisy": (1.0, 0.9)})
    verdicts = verdicts[(verdicts["evaluator"] == "useful") | (verdicts.index % 75 == 0)]
    screen = screen_of(compare(claims, verdicts, replicates=200))
    assert [row[0] for row in screen.rows] == ["noisy", "useful"]
    assert advice_of(screen, "Do not use") == []
    assert advice_of(screen, "Best") == ["useful: it alone is shown to be better than guessing."]


def test_one_evaluator_and_no_systems():
    screen = screen_of(compare(*make_tables({"only": (0.9, 0.9)}, systems=()), replicates=200))
    assert advice_of(screen, "Use") == ["only, the only evaluator here: it is better than guessing."]
    heads = " ".join(" ".join(lines) for lines in screen.columns)
    assert "reversed" not in heads
    assert "rates off" not in heads


def test_without_intervals_no_difference_is_claimed():
    screen = screen_of(compare(*make_tables({"a": (0.95, 0.9), "b": (0.2, 0.2)}), replicates=0))
    assert not {"Use", "Avoid", "Not for", "Good for", "Do not use"} & {one.word for one in screen.advice}
    (best,) = advice_of(screen, "Best")
    assert best.startswith("a has the highest balanced accuracy; no interval was computed")
    assert "CI" not in " ".join(" ".join(lines) for lines in screen.columns)


def test_a_half_is_rounded_up():
    """A published 70.5 stood as 70 on the first screen."""
    rows = [{"dataset": name, "evaluator": "a", "n": 400, "n_unscored": 0} for name in ("d", "e", "__macro__")]
    rows = [
        row | {"n_attributable": 200, "n_unattributable": 200, "bacc": 0.705, "tpr": 0.625, "tnr": 0.785}
        for row in rows
    ]
    screen = compose_first_screen({"audits": {"rates": rows}, "about": {"evaluators": [{"name": "a", "verdicts": {}}]}})
    (row,) = screen.rows
    assert row == ["a", "71", "22", "38"]


def test_without_labels_it_says_what_to_label():
    screen = screen_of(compare(*make_tables({"a": (0.9, 0.9), "b": (0.9, 0.9)}, labelled=False), replicates=200))
    assert "none labelled" in screen.size
    two = screen_of(compare(*make_tables({"a": (0.9, 0.9)}, datasets=("d", "f"), labelled=False), replicates=200))
    assert "2 data sets, none labelled." in two.size  # of what rates would be means is not said where there are none
    assert [one.word for one in screen.advice] == ["Label"]
    assert screen.rows == []


def test_few_errors_are_counted_not_shared():
    claims, verdicts = make_tables({"a": (0.95, 0.7)}, n=300, error_share=0.05)
    errors = int((claims["label"] == 0).sum())
    assert 5 < errors < 30
    screen = screen_of(compare(claims, verdicts, replicates=200))
    missed = int(verdicts["prediction"][(claims["label"] == 0).to_numpy()].sum())
    assert column_of(screen, f"{errors} errors") == [str(missed)]
    assert f"only {errors} labelled errors." in advice_of(screen, "Beware")


def test_with_a_handful_of_labels_it_says_to_label_and_names_no_best_one():
    claims, verdicts = make_tables({"a": (0.9, 0.9), "b": (0.9, 0.9)})
    claims["label"] = claims["label"].astype("Int64")
    kept = [claims.index[claims["label"] == value][0] for value in (0, 1)]
    claims.loc[~claims.index.isin(kept), "label"] = pd.NA
    screen = screen_of(compare(claims, verdicts, audits=["rates"], replicates=50))
    assert screen.size.endswith("2 labelled: one is an error.")
    assert [one.word for one in screen.advice] == ["Label"]
    (label,) = advice_of(screen, "Label")
    assert label.endswith("rest on 1 labelled error and 1 labelled correct claim.")
    heads = " ".join(" ".join(lines) for lines in screen.columns)
    assert "misses, of 1 error " in heads
    assert "1 errors" not in heads


def test_equals_without_intervals_have_no_best_one():
    claims, verdicts = make_tables({"a": (0.9, 0.8)})
    both = pd.concat([verdicts, verdicts.assign(evaluator="b")])
    screen = screen_of(compare(claims, both, audits=["rates"], replicates=0))
    assert not advice_of(screen, "Best")
    assert any("No evaluator alone" in text for text in advice_of(screen, "Beware"))


def test_floors_have_no_line_beside_evaluators_and_a_single_other_is_named():
    claims, verdicts = make_tables({"good": (0.95, 0.9), "poor": (0.7, 0.6), "always-yes": (1.0, 0.0)})
    screen = screen_of(compare(claims, verdicts, audits=["rates", "differences"], replicates=100))
    assert [row[0] for row in screen.rows] == ["good", "poor"]
    assert advice_of(screen, "Use") == ["good: significantly more accurate than poor."]


def test_a_run_of_estimates_shows_the_rates_to_report():
    claims, verdicts = make_tables({"a": (0.9, 0.85)}, n=1200, systems=("ada", "bea"))
    few = claims.assign(label=claims["label"].astype("Int64").where(claims.index % 5 == 0))
    verdicts["score"] = verdicts["prediction"] * 0.8 + 0.1
    results = compare(claims, verdicts, audits=["quantification"], replicates=50)
    results.audits.update(estimate_rates(few, verdicts, levels=["claim"]).audits())
    screen = screen_of(results)
    assert [" ".join(lines).strip() for lines in screen.columns] == [
        "system",
        "error rate, % (95 % CI)",
        "as predicted",
        "by all labels",
    ]
    rows = [row for row in results.audits["quantification"] if row["system"] in ("ada", "bea")]
    by_system = {row["system"]: row for row in rows}
    assert {row[0]: row[3] for row in screen.rows} == {
        system: f"{100 * row['labelled_error_rate']:.1f}" for system, row in by_system.items()
    }
    (use,) = advice_of(screen, "Use")
    assert "240 labels give intervals" in use


def test_of_several_evaluators_the_estimates_name_the_one_that_predicts(tmp_path):
    """The foot of the page, too, speaks of a paper only where the page cites it."""
    claims, verdicts = make_tables({"a": (0.9, 0.85), "b": (0.8, 0.8)}, n=600, systems=("ada", "bea"))
    verdicts["score"] = verdicts["prediction"] * 0.8 + 0.1
    few = claims.assign(label=claims["label"].astype("Int64").where(claims.index % 3 == 0))
    results = compare(few, verdicts, audits=["quantification"], replicates=0)
    results.audits.clear()
    results.audits.update(estimate_rates(few, verdicts, levels=["claim"], main="b").audits())
    results.save(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert ["as predicted by", "b"] in [list(lines) for lines in screen_of(results).columns]
    assert "cited here" not in page
    assert "Definitions" not in page
    # On a terminal a long name is cut.
    long = "judge-of-the-longest-name-that-anybody-gave-to-a-judge"
    verdicts["evaluator"] = verdicts["evaluator"].replace("b", long)
    results.audits.update(estimate_rates(few, verdicts, levels=["claim"], main=long).audits())
    lines = list(format_terminal_first_screen(results))
    assert max(map(len, lines)) <= SCREEN_WIDTH
    assert any("judge-of-the…" in line for line in lines)


def test_estimates_of_claims_without_a_system_count_among_the_rates():
    claims, verdicts = make_tables({"a": (0.9, 0.85)}, n=600, systems=("ada", "bea"))
    claims.loc[claims["system"] == "bea", "dataset"] = "plain"
    claims.loc[claims["system"] == "bea", "system"] = None
    verdicts["score"] = verdicts["prediction"] * 0.8 + 0.1
    few = claims.assign(label=claims["label"].astype("Int64").where(claims.index % 5 == 0))
    results = compare(claims, verdicts, audits=["quantification"], replicates=50)
    results.audits.update(estimate_rates(few, verdicts, levels=["claim"]).audits())
    screen = screen_of(results)
    assert [row[0].split(", ")[1] for row in screen.rows] == ["ada", "all claims"]
    summary = {row["dataset"]: row for row in results.audits["estimate_summary"]}
    assert summary["plain"]["n_systems"] == 0
    assert "no system: there is nothing to compare" in summary["plain"]["reason"]
    (use,) = advice_of(screen, "Use")
    widths = [row["width"] for row in summary.values()]
    assert f"120 labels give intervals {100 * np.mean(widths):.1f} points wide on average" in use


def test_what_is_unscored_is_said():
    claims, verdicts = make_tables({"a": (0.95, 0.9)})
    verdicts["prediction"] = verdicts["prediction"].astype("Int64")
    verdicts.loc[:120, "prediction"] = None
    verdicts.loc[:120, "status"] = "error"
    screen = screen_of(compare(claims, verdicts, replicates=200))
    said = "121 claims of a are unscored or guessed. “Between” is what they leave possible."
    assert said in advice_of(screen, "Beware")
    assert column_of(screen, "balanced")[0].startswith("between ")


@pytest.mark.parametrize("rate", [0.95, 0.5])
def test_each_evaluator_that_has_bounds_for_figures_is_named(rate):
    """ "3,437 claims of unigram are unscored", as were two others'; "between 20 and 81", without a word."""
    claims, verdicts = make_tables({"a": (rate, rate), "b": (0.5, 0.5), "c": (0.5, 0.5)})
    verdicts["prediction"] = verdicts["prediction"].astype("Int64")
    lost = verdicts["evaluator"].isin(["b", "c"]) & (verdicts["claim_id"] < "c00121")
    verdicts.loc[lost, ["prediction", "status"]] = [None, "error"]
    screen = screen_of(compare(claims, verdicts, replicates=200, audits=["rates"]))
    assert sum(cell.startswith("between ") for cell in column_of(screen, "balanced")) == 2
    (said,) = [line for line in advice_of(screen, "Beware") if "unscored" in line]
    assert said.startswith("many claims are unscored or guessed: 121 of ")
    assert all(f"121 of {name}" in said for name in "bc")
    assert said.endswith("“Between” is what they leave possible.")


def test_a_mean_bias_over_few_scored_claims_is_told_by_its_bounds():
    """It would be the rate of the 21 scored claims minus that of 600 labels."""
    claims, verdicts = make_tables({"whole": (0.9, 0.9), "sparse": (0.9, 0.9)})
    verdicts = verdicts[(verdicts["evaluator"] == "whole") | (verdicts.index % 29 == 0)].reset_index(drop=True)
    results = compare(claims, verdicts, audits=["rates", "quantification"], replicates=0)
    rows = [
        row for row in results.rows("quantification", evaluator="sparse", level="claim") if row["system"] != "__all__"
    ]
    ends = [[abs(row[f"bias_{end}"]) for end in ("min", "max")] for row in rows]
    assert all(row["bias_min"] < 0 < row["bias_max"] for row in rows), "0 is possible for every system"
    screen = screen_of(results)
    cells = dict(zip(column_of(screen, "evaluator"), column_of(screen, "rates off by"), strict=True))
    assert cells["sparse"] == f"0.0 to {100 * np.mean([max(each) for each in ends]):.1f} points"
    assert re.fullmatch(r"\d+\.\d points", cells["whole"])
    # Of 100 correct ones, says the heading; of so few the count, and of how many.
    alarms = dict(zip(column_of(screen, "evaluator"), column_of(screen, "of 100 correct"), strict=True))
    assert re.fullmatch(r"\d+ of \d+", alarms["sparse"])
    assert re.fullmatch(r"\d+", alarms["whole"])


def test_reversed_pairs_forbid_a_ranking():
    """An evaluator that likes the system with most errors."""
    claims, verdicts = make_tables({"a": (0.95, 0.95)}, n=1200, systems=("bad", "fine"))
    random = np.random.default_rng(1)
    bad = (claims["system"] == "bad").to_numpy()
    claims["label"] = np.where(random.random(1200) < np.where(bad, 0.5, 0.1), 0, 1)
    hit = random.random(1200)
    verdicts["prediction"] = np.where(bad, hit > 0.15, (hit > 0.5) & (claims["label"] == 1)).astype(int)
    screen = screen_of(compare(claims, verdicts, audits=["rates", "quantification", "ranking"], replicates=200))
    assert column_of(screen, "reversed") == ["1 of 1"]


def test_a_reversal_that_unscored_claims_could_undo_is_called_open():
    """ "1 of 1", beside bounds of 0 to 100 % in the report's table, and “ok: 493 unscored claims cannot change …”."""
    claims, verdicts = make_tables({"a": (0.95, 0.95)}, n=1200, systems=("bad", "fine"))
    random = np.random.default_rng(1)
    bad = (claims["system"] == "bad").to_numpy()
    claims["label"] = np.where(random.random(1200) < np.where(bad, 0.5, 0.1), 0, 1)
    verdicts["prediction"] = pd.array((random.random(1200) > np.where(bad, 0.15, 0.25)).astype(int), dtype="Int64")
    audits = ["rates", "quantification", "ranking"]
    whole = compare(claims, verdicts, audits=audits, replicates=200)
    assert column_of(screen_of(whole), "reversed") == ["1 of 1"]
    is_lost = ~bad & (random.random(1200) < 0.4)
    verdicts.loc[is_lost, "prediction"] = pd.NA
    verdicts.loc[is_lost, "status"] = "error"
    lossy = compare(claims, verdicts, audits=audits, replicates=200)
    assert column_of(screen_of(lossy), "reversed") == ["0 to 1"]
    (row,) = lossy.rows("ranking", level="claim")
    assert (row["error_rate_min"], row["major_error_rate_min"], row["n_reversed"]) == (1, 0, 1)
    (found,) = [each for each in lossy.to_dict()["findings"] if each["id"] == "unscored"]
    assert "how many pairs of systems it reverses" in found["statement"]
    overview = build_report_evaluator_overview(lossy.to_dict())
    assert overview is not None
    cells = dict(zip(overview.columns, overview.rows[0], strict=True))
    assert (cells["reversed pairs"].notes, cells["ordered alike"].notes) == (["[0–1]"], [])


def test_what_an_evaluator_was_trained_on_is_a_warning():
    tables = make_tables({"a": (0.9, 0.9), "b": (0.9, 0.8)}, datasets=("RAGTruth-QA", "RAGTruth-Summary"))
    screen = screen_of(compare(*tables, replicates=200, trained_on={"b": ["ragtruth"]}))
    assert "trained on this benchmark: b." in advice_of(screen, "Beware")
    assert not any("trained" in text for text in advice_of(screen_of(compare(*tables, replicates=0)), "Beware"))
    with pytest.raises(UsageError, match="trained_on: no evaluator 'c'"):
        compare(*tables, trained_on={"c": ["x"]})


def test_many_evaluators_are_cut_and_counted():
    tables = make_tables({f"judge_{i:02}": (0.9 - 0.02 * i, 0.8) for i in range(12)})
    screen = screen_of(compare(*tables, audits=["rates", "differences"], replicates=100))
    assert len(screen.rows) == MAX_EVALUATORS
    assert {row[0] for row in (*screen.rows, *screen.more_rows)} == {f"judge_{i:02}" for i in range(12)}
    assert screen.rows[0][0] == "judge_00"
    assert len(screen.more_rows) == 4


def test_the_terminal_has_twenty_lines_of_eighty_characters(demo_results):
    lines = list(format_terminal_first_screen(demo_results))
    assert len(lines) <= 20
    assert all(len(line) <= SCREEN_WIDTH for line in lines)
    text = "\n".join(lines)
    for word in ("Best ", "Avoid ", "Not for ", "Instead ", "Beware "):
        assert f"\n{word}" in text


def test_a_long_name_is_cut_in_its_middle():
    name = "llm:SmolLM2-135M-Instruct.Q4_1:short-and-more-of-a-name-than-fits"
    results = compare(*make_tables({name: (0.9, 0.9)}), replicates=100)
    lines = list(format_terminal_first_screen(results))
    row = next(line for line in lines if "…" in line)
    assert row.startswith("llm:")
    assert all(len(line) <= SCREEN_WIDTH or name in line for line in lines)


def test_a_notebook_shows_the_first_screen_and_escapes_names():
    results = compare(*make_tables({"<script>alert(1)</script>": (0.9, 0.9)}), replicates=100)
    page = results._repr_html_()
    assert "<table" in page
    assert "<script>" not in page
    assert len(page) < 20_000
    assert len(repr(results)) < 400


@pytest.fixture(scope="module")
def demo_results(tmp_path_factory) -> Results:
    from importlib.resources import as_file, files

    from factaudit.experiment import run

    with as_file(files("factaudit.start").joinpath("demo")) as folder:
        return run(folder / "ragtruth.yaml", tmp_path_factory.mktemp("demo") / "run", settings={"replicates": 200})


def test_the_report_opens_with_it_in_at_most_120_words(demo_results):
    screen = screen_of(demo_results)
    words = [*screen.size.split(), *(word for one in screen.advice for word in (one.word, *str(one.sentence).split()))]
    assert len(words) <= 120
    assert json.loads(json.dumps([str(one.sentence) for one in screen.advice]))


def test_both_evaluators_under_use_are_named_where_both_have_a_fault(demo_results):
    """The reader may take either: what is wrong with the second is as much worth as what is wrong with the first."""
    assert advice_of(screen_of(demo_results), "Best")[0].startswith("modernbert_b or modernbert_a: ")
    assert advice_of(screen_of(demo_results), "Beware")[-1].endswith("; modernbert_a, deberta, too.")
    told = advice_of(screen_of(demo_results), "Not for")[-1]
    assert told.endswith("by over 5 points (23.3); modernbert_a: cannot tell."), "as the decision table has it"


def test_without_labels_nothing_is_found_of_labels():
    results = compare(*make_tables({"a": (0.9, 0.9)}, labelled=False), replicates=100)
    assert [finding["id"] for finding in results.finding_rows] == []


def test_what_the_model_for_trying_made_is_said_to_say_nothing():
    claims, verdicts = make_tables({"llm": (0.9, 0.9)})
    said = "the model of llm is there to try the tool: no figure that it made says anything."
    made = compare(claims, verdicts, audits=["rates"], signatures={"llm": "llm|model:SmolLM2-135M-Instruct.Q4_1"})
    assert said in advice_of(screen_of(made), "Beware")
    other = compare(claims, verdicts, audits=["rates"], signatures={"llm": "llm|model:gpt-4o-mini"})
    assert said not in advice_of(screen_of(other), "Beware")


def test_a_fact_that_stands_beside_several_people_counts_once() -> None:
    """MF's published decisions were "85,667 facts in 2 data sets": 61,117 facts, and citations that others judged."""
    people = ("Ada (poet)", "Ada (chemist)")
    rows = [
        {
            "dataset": "bios",
            "fact_id": f"{fact}",
            "entity": person,
            "group": "1",
            "doc": person,
            "claim": f"fact {fact}",
        }
        for fact in range(4)
        for person in people
    ]
    rows += [{"dataset": "citations", "claim": f"sentence {at}", "doc": "a page"} for at in range(3)]
    claims = pd.DataFrame(rows).assign(system="s", response_id="r", label=None)
    claims["claim_id"] = [f"c{at}" for at in range(len(claims))]
    verdicts = pd.DataFrame({"claim_id": claims["claim_id"], "prediction": 1, "status": "ok"})
    verdicts["evaluator"] = np.where(claims["dataset"] == "bios", "verifier", "judge")
    results = compare(claims, verdicts)
    size = "1 verifier (verifier) and 1 other evaluator (judge), 4 facts in 1 data set and 3 claims in 1 more"
    assert screen_of(results).size.startswith(size)
    assert screen_of(results).size.endswith("none labelled.")
    told = " ".join(_explain_report_claims_labels_and_intervals(results.to_dict()))
    assert "A row of the claims table is a fact of a response and one person of the name" in told
    assert "In citations label and prediction 1 are: attributable" in told
    assert "(FActScore)" not in told  # no such evaluator is here
    known = validate_claims(claims)
    said = validate_verdicts(verdicts, claims=known)
    browser = ClaimBrowser(Judgements.join(known, said), said)
    assert browser.row_explanation == "A row is a fact and one person of the name, with the verifier's verdict."
    labelled = claims[:8].assign(label=[1, None] * 4)
    size = "1 verifier (verifier), 4 facts in 1 data set, all labelled: none is an error."
    assert screen_of(compare(labelled, verdicts[:8])).size == size
