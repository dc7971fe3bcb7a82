"""The first screen: what it says of many kinds of runs, and what it must not say."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from factaudit import Results, UsageError, compare, compare_counts, estimate_rates
from factaudit.audit.screen import MAX_EVALUATORS, Screen, compose_screen
from factaudit.report.screen_text import SCREEN_WIDTH
from factaudit.tables.counts_table import validate_counts

SYSTEMS = ("ada", "bea", "cid", "dan", "eva", "fay")


def make_tables(
    rates: dict[str, tuple[float, float]],
    n: int = 600,
    error_share: float = 0.3,
    systems: tuple[str, ...] = SYSTEMS,
    datasets: tuple[str, ...] = ("d",),
    labelled: bool = True,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims, and verdicts of evaluators with these (TPR, TNR)."""
    random = np.random.default_rng(0)
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
        rows = {
            "claim_id": claims["claim_id"],
            "evaluator": name,
            "prediction": said,
            "status": "ok",
        }
        verdicts.append(pd.DataFrame(rows).astype({"prediction": "Int64"}))
    return claims, pd.concat(verdicts, ignore_index=True)


@pytest.fixture(scope="module")
def demo_results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    from importlib.resources import as_file, files

    from factaudit import run

    with as_file(files("factaudit.start").joinpath("demo")) as folder:
        return run(
            folder / "ragtruth.yaml",
            tmp_path_factory.mktemp("demo") / "run",
            settings={"replicates": 200},
        )


def lose(verdicts: pd.DataFrame, rows: Any) -> pd.DataFrame:
    """The verdicts, some of which failed."""
    return verdicts.assign(
        prediction=verdicts["prediction"].mask(rows), status=verdicts["status"].mask(rows, "error")
    )


def compose(tables: tuple[pd.DataFrame, pd.DataFrame], **options: Any) -> Screen:
    return compose_screen(compare(*tables, **{"replicates": 100, **options}).to_dict())


def advice_of(screen: Screen, word: str) -> list[str]:
    return [one.sentence for one in screen.advice if one.word == word]


def column_of(screen: Screen, head: str) -> list[str]:
    (at,) = [i for i, lines in enumerate(screen.columns) if head in " ".join(lines)]
    return [row[at] for row in screen.rows]


WORLDS = yaml.safe_load((Path(__file__).parent / "golden/screens.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world["world"])
def test_advice(world: dict[str, Any]) -> None:
    screen = compose(make_tables(**world["tables"]))
    for word, sentence in world["says"]:
        assert any(sentence in one for one in advice_of(screen, word)), (
            word,
            sentence,
            screen.advice,
        )
    words = [one.word for one in screen.advice]
    if "Label more" in words:
        assert "Use" not in words
    for one in screen.advice:
        assert one.sentence.endswith("."), one
        assert "nan" not in one.sentence
        assert "None" not in one.sentence or one.sentence.startswith("None of")


def test_without_intervals_no_difference_is_claimed() -> None:
    screen = compose(make_tables({"a": (0.95, 0.9), "b": (0.2, 0.2)}), replicates=0)
    assert not {"Use", "Avoid", "Not for", "Good for"} & {one.word for one in screen.advice}
    assert "CI" not in str(screen.columns)


def test_unscored_claims_leave_a_range_on_any_data_set() -> None:
    """A data set without any verdict hid that another one had a fifth of its claims unscored."""
    claims, verdicts = make_tables({"a": (0.95, 0.9), "b": (0.95, 0.9)}, datasets=("d", "e"))
    of_d = verdicts["claim_id"].isin(claims.loc[claims["dataset"] == "d", "claim_id"])
    of_a = verdicts["evaluator"] == "a"
    screen = compose((claims, lose(verdicts, of_a & of_d & (verdicts.index % 5 == 0))))
    (said,) = [one for one in advice_of(screen, "Beware") if "did not score" in one]
    assert "a did not score, or only guessed, 20.0 % of 300 claims on d" in said
    empty = compose((claims, lose(verdicts, of_a & (~of_d | (verdicts.index % 5 == 0)))))
    assert any("did not score" in one for one in advice_of(empty, "Beware"))
    cells = dict(zip(column_of(empty, "evaluator"), column_of(empty, "missed"), strict=True))
    assert " to " in cells["a"]
    assert " to " not in cells["b"]


def test_pairs_in_the_same_order_are_counted_with_what_unscored_claims_leave_open() -> None:
    claims, verdicts = make_tables({"a": (0.95, 0.95)}, n=1200, systems=("bad", "fine"))
    random = np.random.default_rng(1)
    bad = (claims["system"] == "bad").to_numpy()
    claims["label"] = np.where(random.random(1200) < np.where(bad, 0.5, 0.1), 0, 1)
    said = (random.random(1200) > np.where(bad, 0.15, 0.25)).astype(int)
    verdicts["prediction"] = pd.array(said, dtype="Int64")
    audits = ["rates", "quantification", "ranking"]
    assert column_of(compose((claims, verdicts), audits=audits), "pairs of systems") == ["0 of 1"]
    lossy = lose(verdicts, random.random(1200) < 0.9)
    assert column_of(compose((claims, lossy), audits=audits), "pairs of systems") == ["0 to 1 of 1"]


def test_what_an_evaluator_was_trained_on_stands_beside_the_recommendation() -> None:
    tables = make_tables(
        {"a": (0.95, 0.95), "b": (0.7, 0.7)}, datasets=("RAGTruth-QA", "RAGTruth-Summary")
    )
    told = "trained on this benchmark, so expect lower accuracy on your data."
    (use,) = advice_of(compose(tables, trained_on={"a": ["ragtruth"]}), "Use")
    assert use.endswith(told)
    (use,) = advice_of(compose(tables, trained_on={"b": ["ragtruth"]}), "Use")
    assert told not in use
    with pytest.raises(UsageError, match="trained_on: no evaluator 'c'"):
        compare(*tables, trained_on={"c": ["x"]})


def test_many_evaluators_are_cut_and_counted() -> None:
    tables = make_tables({f"judge_{i:02}": (0.9 - 0.02 * i, 0.8) for i in range(12)})
    screen = compose(tables, audits=["rates", "differences"])
    assert len(screen.rows) == MAX_EVALUATORS
    assert {row[0] for row in (*screen.rows, *screen.more_rows)} == {
        f"judge_{i:02}" for i in range(12)
    }


def test_a_run_of_estimates_shows_the_rates_to_report() -> None:
    claims, verdicts = make_tables({"a": (0.9, 0.85)}, n=1200, systems=("ada", "bea"))
    few = claims.assign(label=claims["label"].astype("Int64").where(claims.index % 5 == 0))
    verdicts["score"] = verdicts["prediction"] * 0.8 + 0.1
    results = compare(claims, verdicts, audits=["quantification"], replicates=50)
    results.audits.update(estimate_rates(few, verdicts, levels=["claim"]).audits())
    screen = compose_screen(results.to_dict())
    heads = ["system", "estimated error rate, % (95 % CI)", "predicted by a"]
    assert [" ".join(lines).strip() for lines in screen.columns] == heads
    assert {row[0] for row in screen.rows} == {"ada", "bea"}
    (use,) = advice_of(screen, "Use")
    assert use.startswith("the estimated rates: 240 labels give 95 % CIs of ")


def test_a_table_of_error_rates_shows_how_far_they_are_off() -> None:
    rates = {
        "labelled_error_rate": [0.1, 0.2, 0.3] * 2,
        "predicted_error_rate": [0.1, 0.5, 0.25, 0.1, 0.2, 0.26],
    }
    table = pd.DataFrame(
        {"dataset": "d", "system": list("abc") * 2, "evaluator": list("eeefff"), "n": 100} | rates
    )
    screen = compose_screen(compare_counts(validate_counts(table)).to_dict())
    heads = ["system error rates off by, on average", "agrees with labels on pairs of systems"]
    assert [" ".join(lines) for lines in screen.columns[1:]] == heads
    assert [row[:2] for row in screen.rows] == [["f", "1.3 points"], ["e", "12 points"]]
    unknown = compose_screen(compare_counts(validate_counts(table.assign(n_known=0))).to_dict())
    assert advice_of(unknown, "Beware") == [
        "No intervals were computed, so differences may be due to chance."
    ]


def test_advice_to_correct_rates_beats_what_it_replaces(demo_results: Results) -> None:
    """The advice gave rates that the same screen showed to be farther off than those that it
    replaced."""
    results = deepcopy(demo_results.to_dict())
    assert any(
        "they are expected to be off by" in one
        for one in advice_of(compose_screen(results), "Instead")
    )
    for row in results["audits"]["quantification"]:
        row["bias"] /= (
            10  # now the predicted rates are nearer than the estimates are expected to be
        )
    assert not any(
        "they are expected to be off by" in one
        for one in advice_of(compose_screen(results), "Instead")
    )


def test_a_long_name_is_cut_in_its_middle() -> None:
    name = "an-evaluator-with-a-name-that-is-longer-than-any-table-has-room-for-" + "x" * 40
    results = compare(
        *make_tables({name: (0.9, 0.9), "b": (0.2, 0.2)}, n=300), audits=["rates"], replicates=50
    )
    table = [line for line in str(results).splitlines() if "%" in line and "(" in line]
    assert all(len(line) <= SCREEN_WIDTH for line in table[:3])


def test_a_notebook_shows_the_screen_and_escapes_names() -> None:
    results = compare(*make_tables({"<b>": (0.9, 0.9)}, n=300), audits=["rates"], replicates=50)
    html = results._repr_html_()
    assert "&lt;b&gt;" in html
    assert "<b>" not in html


def test_the_trial_model_is_named() -> None:
    tables = make_tables({"llm": (0.9, 0.9)})
    said = "The model of llm is only for trying factaudit; ignore its figures."
    made = compose(
        tables, audits=["rates"], signatures={"llm": "llm|model:SmolLM2-135M-Instruct.Q4_1"}
    )
    assert said in advice_of(made, "Beware")
    other = compose(tables, audits=["rates"], signatures={"llm": "llm|model:gpt-4o-mini"})
    assert said not in advice_of(other, "Beware")
