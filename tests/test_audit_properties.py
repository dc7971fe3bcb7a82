"""What holds of every audit on any tables: order, bounds, nulls, degenerate cases."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from audit_tables import collect_findings, compute, join, judged, tables
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from factaudit import Judgements
from factaudit.audit import list_computable_audits
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]
SMALL = ClusterBootstrap(replicates=20, seed=1)
#: Without shrinking: an example of these tables is small, and shrinking runs every audit for
#: minutes.
QUICK = settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
ROW = st.fixed_dictionaries(
    {
        "dataset": st.sampled_from("xy"),
        "task": st.sampled_from(["t", None]),
        "system": st.sampled_from(["a", "b", "c", None]),
        "response_id": st.sampled_from(["1", "2", None]),
        "doc_id": st.sampled_from(["p", "q", None]),
        "variant": st.sampled_from(["base", "v", None]),
        "variant_of": st.sampled_from(["c0", "c1", None, None]),
        "kind": st.sampled_from(["passages", "numbers"]),
        "expected": st.sampled_from(["same", "changed"]),
        "claim": st.sampled_from(["the cat sat on the mat", "a dog ran", "word"]),
        "doc": st.sampled_from(["the cat sat on the mat . a dog barked .", "a dog ran away", None]),
        "grade": st.sampled_from([1, 2, 3.5, None]),
        "label": st.sampled_from([0, 1, None]),
        "e": st.sampled_from([0, 1, None]),
        "f": st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0, None]),
        "chunked-f": st.sampled_from([0.1, 0.9, None]),
    }
)
EVALUATORS = ("e", "f", "chunked-f")
ROWS = st.lists(ROW, min_size=1, max_size=14)
#: What no row of a dataset has.
COLUMNS = ["system", "response_id", "doc_id", "label", "doc", "task", *EVALUATORS]
LACKS = st.sets(st.sampled_from(COLUMNS), max_size=4).map(dict.fromkeys)


NAMES = tuple(list_computable_audits())


@pytest.fixture(scope="module", params=[NAMES], ids=[" ".join(NAMES)])
def names(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """All audits; with ``-k NAME`` that one."""
    return tuple(name for name in NAMES if name == request.config.option.keyword) or NAMES


def run(
    table: Judgements, intervals: ClusterBootstrap | None = SMALL, names: Sequence[str] = NAMES
) -> dict[str, list[Row]]:
    return {
        name: list_computable_audits()[name].compute(table, intervals=intervals) for name in names
    }


def figures(row: Row) -> Iterable[str]:
    """The keys of a row's numbers that aren't counts, bounds or ends."""
    for key, value in row.items():
        if isinstance(value, float) and not key.endswith(("_min", "_max", "_low", "_high")):
            yield key


def check_rows(audits: dict[str, list[Row]]) -> None:
    for name, rows in audits.items():
        for row in rows:
            assert all(
                type(value) in (int, float, str, bool, type(None)) for value in row.values()
            ), (name, row)
            for key, value in row.items():
                assert not isinstance(value, float) or math.isfinite(value), (name, key, row)
                ends = key.endswith(("_min", "_max", "_low", "_high"))
                if (
                    value is None
                    and not ends
                    and key not in ("reason", "system", "task", "response_id", "name")
                ):
                    assert row["reason"], (name, key, row)
            for key in figures(row):
                check_ends(name, key, row)
            check_biases(row, "labelled_error_rate", "predicted_error_rate")
            check_biases(row, "labelled", "predicted")
    json.dumps({name: list(rows) for name, rows in audits.items()}, allow_nan=False)
    for finding in collect_findings(audits):
        assert list(finding) == ["id", "severity", "evaluator", "dataset", "statement", "evidence"]
        assert finding["severity"] in ("fail", "warn", "ok")
        assert "None" not in finding["statement"]
        assert "nan" not in finding["statement"].split()
    json.dumps(collect_findings(audits), allow_nan=False)


def check_ends(name: str, key: str, row: Row) -> None:
    """A figure lies in its bounds and in its interval, whose width is 0 only where nothing could
    vary."""
    least, most, low, high = (row.get(f"{key}_{end}") for end in ("min", "max", "low", "high"))
    if least is not None and most is not None:
        assert least - 1e-12 <= row[key] <= most + 1e-12, (name, key, row)
        if row.get("n_unscored") == 0 and not row.get("n_guessed"):
            assert (least, most) == (pytest.approx(row[key], abs=1e-12),) * 2, (name, key, row)
    if low is not None and high is not None:
        assert low - 1e-12 <= row[key] <= high + 1e-12, (name, key, row)
        # The order of systems is settled or open: tau is made of those that are settled. The best
        # is not behind itself. (Scores of responses are bootstrapped: their intervals are another
        # file's.)
        assert low < high or key in ("kendall_tau", "behind") or "factscore" in name, (
            name,
            key,
            row,
        )


def check_biases(row: Row, labelled: str, predicted: str) -> None:
    """A bias is no farther off than both rates could be, each at the end of its own interval."""
    keys = (
        "bias_low",
        "bias_high",
        f"{labelled}_low",
        f"{labelled}_high",
        f"{predicted}_low",
        f"{predicted}_high",
    )
    ends = [row[key] for key in keys if row.get(key) is not None]
    if len(ends) == len(keys):
        low, high, labelled_low, labelled_high, predicted_low, predicted_high = ends
        assert min(predicted_low - labelled_high, 0) - 1e-12 <= low
        assert high <= max(predicted_high - labelled_low, 0) + 1e-12


def check_labels(table: Judgements, audits: dict[str, list[Row]]) -> None:
    """What the labels say is over all of them, and the same whichever evaluator stands beside
    them."""
    said: dict[Any, set[Any]] = {}
    labels = (
        "labelled_error_rate",
        "labelled_error_rate_low",
        "labelled_error_rate_high",
        "labelled",
        "labelled_order",
    )
    labels += ("p_labelled", "orderable", "labelled_system")
    for name in ("quantification", "headroom", "ranking_pairs"):
        for row in audits.get(name, ()):
            about = tuple(
                row.get(k) for k in ("dataset", "level", "system", "group", "system_a", "system_b")
            )
            for key in labels:
                if key in row:
                    said.setdefault((name, key, *about), set()).add(row[key])
    assert {key: values for key, values in said.items() if len(values) > 1} == {}
    whole = table.claims.assign(label=table.label)
    for row in audits.get("quantification", ()):
        if row["level"] == "claim":
            mine = whole[whole["dataset"] == row["dataset"]]
            mine = mine if row["system"] == "__all__" else mine[mine["system"] == row["system"]]
            of = mine["label"][mine["label"] >= 0]
            assert row["n_labelled"] == len(of)
            assert row["labelled_error_rate"] == (
                pytest.approx((of == 0).mean()) if len(of) else None
            )


@pytest.mark.slow
@settings(QUICK, max_examples=25)
@given(ROWS)
def test_every_row_of_every_audit_is_flat_finite_and_says_why_it_lacks_a_figure(names, rows):
    table = judged(rows, *EVALUATORS)
    audits = run(table, names=names)
    check_rows(audits)
    check_labels(table, audits)


@pytest.mark.slow
@settings(QUICK, max_examples=25)
@given(ROWS, ROWS, LACKS, LACKS)
def test_a_dataset_has_the_same_rows_alone_and_beside_one_that_lacks_whole_columns(
    names, mine, others, lacks, they_lack
):
    mine = [
        row | {"dataset": "x", "claim_id": f"x{at}", "variant_of": None} | lacks
        for at, row in enumerate(mine)
    ]
    others = [row | {"dataset": "a", "variant_of": None} | they_lack for row in others]
    alone, both = (run(judged(rows, *EVALUATORS), names=names) for rows in (mine, [*others, *mine]))
    check_rows(both)
    for name in alone:
        found, expected = (
            [row for row in of[name] if row.get("dataset") == "x"] for of in (both, alone)
        )
        assert [list(row.values()) for row in found] == [
            [
                pytest.approx(value, abs=1e-9) if isinstance(value, float) else value
                for value in row.values()
            ]
            for row in expected
        ], name


@pytest.mark.slow
@settings(QUICK, max_examples=15)
@given(ROWS, st.randoms(use_true_random=False))
def test_any_permutation_of_rows_gives_the_same_results(names, rows, random):
    rows = [{"claim_id": f"c{number}"} | row for number, row in enumerate(rows)]
    claims, verdicts = tables(rows, EVALUATORS)
    expected = run(join(claims, verdicts), names=names)
    order, other = list(range(len(claims))), list(range(len(verdicts)))
    random.shuffle(order)
    random.shuffle(other)
    shuffled = join(
        claims.iloc[order].reset_index(drop=True), verdicts.iloc[other].reset_index(drop=True)
    )
    found = run(shuffled, names=names)
    assert found.keys() == expected.keys()
    for name in expected:
        assert found[name] == expected[name], name
    assert collect_findings(found) == collect_findings(expected)


@pytest.mark.slow
@settings(QUICK, max_examples=30)
@given(ROWS, ROW)
def test_an_unscored_claim_changes_only_n_unscored_and_bounds(rows, extra):
    """And what the labels say, where it has one. Of a dataset and system that are labelled, and in
    no response."""
    first = next((row for row in rows if row["label"] is not None), rows[0])
    extra |= {
        "dataset": first["dataset"],
        "e": None,
        "f": None,
        "chunked-f": None,
        "response_id": None,
    }
    rows, extra = [row | {"variant_of": None} for row in rows], extra | {"variant_of": None}
    extra |= {
        "system": first["system"],
        "task": first["task"],
        "label": extra["label"] if first["label"] else None,
    }
    of_labels = {
        "n_labelled",
        "labelled",
        "labelled_system",
        "labelled_error_rate",
        "bias",
    }
    for audit in (
        "rates",
        "consistency",
        "differences",
        "headroom",
        "quantification",
    ):
        before, after = (
            compute(audit, judged(each, *EVALUATORS)) for each in (rows, [*rows, extra])
        )
        assert len(before) == len(after)
        for old, new in zip(before, after, strict=True):
            # Sums over further claims may round otherwise.
            kept = {
                key: pytest.approx(old[key]) if isinstance(old[key], float) else old[key]
                for key in new
            }
            changed = {key for key in new if new[key] != kept[key]}
            allowed = {"n_unscored", "n_unlabelled", "reason"} | (
                of_labels if extra["label"] is not None else set()
            )
            assert all(key in allowed or key.endswith(("_min", "_max")) for key in changed), (
                audit,
                old,
                new,
            )


@settings(QUICK, max_examples=25)
@given(ROWS, st.sets(st.integers(0, 13)))
@pytest.mark.slow
def test_a_guess_counts_as_unscored_in_the_bounds(rows, guessed):
    """The figures are as if the guesses were verdicts, the bounds as if they were none."""
    claims, verdicts = tables(rows, EVALUATORS)
    at = [i for i in guessed if i < len(verdicts) and pd.notna(verdicts["prediction"].iloc[i])]
    read, none = verdicts.copy(), verdicts.copy()
    for table in (read, none):
        table.loc[table.index[at], "status"] = "unparsed"
    none.loc[none.index[at], ["prediction", "score"]] = None
    for audit in ("rates", "quantification", "consistency", "differences"):
        as_is, as_guess, as_nothing = (
            compute(audit, join(claims, each)) for each in (verdicts, read, none)
        )
        for plain, guess, nothing in zip(as_is, as_guess, as_nothing, strict=True):
            assert {k: v for k, v in guess.items() if k in figures(plain)} == {
                k: plain[k] for k in figures(plain)
            }
            if plain["dataset"] == "__macro__":
                # A mean over fewer datasets, where one has no figure, widens its own bounds.
                continue
            for key in [key for key in guess if key.endswith(("_min", "_max"))]:
                if guess[key.rpartition("_")[0]] is not None and nothing[key] is not None:
                    assert guess[key] == pytest.approx(nothing[key]), (audit, key, guess, nothing)


def completions(table: Judgements) -> Iterable[Judgements]:
    gaps = table.prediction < 0
    for guess in itertools.product((0, 1), repeat=int(gaps.sum())):
        complete = table.prediction.copy()
        complete[gaps] = guess
        yield replace(table, prediction=complete, status=table.status * 0)


FEW = st.lists(
    st.fixed_dictionaries(
        {
            "system": st.sampled_from(["a", "b"]),
            "label": st.sampled_from([0, 1, 1, None]),
            "e": st.sampled_from([0, 1, None]),
            "f": st.sampled_from([0, 1, None]),
        }
    ),
    min_size=1,
    max_size=7,
).filter(lambda rows: sum(row[name] is None for row in rows for name in ("e", "f")) <= 3)

_BOUNDED = (
    "rates",
    "consistency",
    "differences",
    "quantification",
    "headroom",
)


def check_bounds(audit: str, table: Judgements, **options: Any) -> None:
    """Bounds are the least and the greatest value over all ways to complete what is missing, and
    have the figure."""
    finished = [compute(audit, each, **options) for each in completions(table)]
    for at, row in enumerate(compute(audit, table, **options)):
        for key in [key[:-4] for key in row if key.endswith("_min")]:
            values = [others[at][key] for others in finished if others[at][key] is not None]
            if not values:
                assert row[f"{key}_min"] is row[f"{key}_max"] is None, (audit, key, row)
                continue
            values += [] if row[key] is None else [row[key]]
            assert row[f"{key}_min"] == pytest.approx(min(values), abs=1e-12), (audit, key, row)
            assert row[f"{key}_max"] == pytest.approx(max(values), abs=1e-12), (audit, key, row)


@settings(QUICK, max_examples=15)
@given(FEW)
def test_bounds_hold_every_completion_and_are_reached(rows):
    table = judged(rows, "e", "f")
    for audit in _BOUNDED:
        options = {"levels": ["claim"]} if audit in ("quantification", "headroom") else {}
        check_bounds(audit, table, **options)


_WORDS = [f"w{at}" for at in range(11)]
#: Claims that share 0 to 9 of ten bigrams with the document; four have no verdict.
_BY_OVERLAP = [
    {
        "label": 1,
        "e": said,
        "doc": " ".join(_WORDS),
        "claim": " ".join([*_WORDS[: shared + 1], *"abcdefghij"[shared:]]),
    }
    for shared, said in zip(
        (0, 1, 3, 4, 6, 8, 9, 2, 5, 7, 2, 5, 7, 1),
        (0, None, 1, None, 0, 1, None, 1, 0, 1, 1, 0, 0, 1),
        strict=True,
    )
]
_BY_KIND = [
    {
        "label": int(at % 3 > 0),
        "e": None if at in (0, 10, 21) else int(at * 7 % 5 > 1),
        "kind": "ab"[at % 2],
    }
    | {"number": at % 7}
    for at in range(60)
]
#: All claims need both chunks of their document.
_OF_CHUNKS = [
    {
        "label": 1,
        "doc": "The cat sat. A dog ran.",
        "claim": "cat sat a dog",
        "e": plain,
        "chunked-e": chunked,
    }
    for plain, chunked in ((1, 0), (1, None), (None, 0), (None, None), (0, 1), (1, 1))
]


@pytest.mark.parametrize(
    ("audit", "rows", "options"),
    [
        ("surface_bias", _BY_OVERLAP, {"bins": 2}),
        ("covariates", _BY_OVERLAP, {}),
        ("covariates", _BY_KIND, {"columns": ["kind", "number"]}),
        ("chunking", _OF_CHUNKS, {"size": 3}),
    ],
)
def test_bounds_hold_every_completion_on_tables_that_an_audit_needs(audit, rows, options):
    table = judged(rows, *(name for name in ("e", "chunked-e") if name in rows[0]))
    assert any(
        row[key] is not None
        for row in compute(audit, table, **options)
        for key in row
        if key.endswith("_min")
    )
    check_bounds(audit, table, **options)


def of(n: int = 12, **columns: Any) -> list[Row]:
    """n rows: 2 systems, 3 responses each, both classes, scores that differ; columns override,
    maybe by functions."""
    rows = []
    for i in range(n):
        row: Row = {
            "system": "ab"[i % 2],
            "response_id": str(i // 4),
            "doc_id": str(i // 2),
            "label": i % 3 % 2,
        }
        row |= {
            "claim": f"the cat number {i} sat here",
            "doc": "the cat number 3 sat here . dogs sat here .",
        }
        row |= {"e": i % 2, "f": (i + 0.5) / n, "chunked-f": i / n}
        rows.append(
            row | {key: value(i) if callable(value) else value for key, value in columns.items()}
        )
    return rows


DEGENERATE = {
    "one class only": of(label=1),
    "the other class only": of(label=0),
    "one system": of(system="a"),
    "no system": of(system=None),
    "all scores equal": of(f=0.5, e=1, **{"chunked-f": 0.5}),
    "all claims unscored": of(e=None, f=None, **{"chunked-f": None}),
    "one evaluator unscored": of(e=None),
    "TNR = FNR": [
        {"system": s, "label": label, "e": e, "f": float(e), "chunked-f": float(e)}
        for s in "ab"
        for label in (0, 1)
        for e in (0, 1)
    ],
    "a system with one claim": of(system=lambda i: "a" if i else "lone"),
    "no labels": of(label=None),
    "no responses": of(response_id=None),
    "no bigram": of(claim="word"),
    "no document": of(doc=None),
    "one cluster": of(doc_id="1"),
    "one claim": of(1),
    "both rates 0": of(label=1, e=1, f=1.0),
    "both rates 1": of(label=0, e=0, f=0.0),
}


@pytest.mark.parametrize(
    ("case", "intervals"),
    [
        *((case, SMALL) for case in DEGENERATE),
        *(
            (case, None)
            for case in ("one class only", "all claims unscored", "no labels", "one claim")
        ),
    ],
)
def test_degenerate_cases_give_nulls_with_reasons(names, case, intervals):
    table = judged(DEGENERATE[case], *EVALUATORS)
    audits = run(table, intervals, names)
    always = ("rates", "consistency", "quantification", "headroom", "ranking", "adjustment")
    assert all(audits[name] for name in always if name in names)
    check_rows(audits)


def test_a_missing_interval_is_told_by_its_own_cause():
    """Not as too few clusters to resample, where nothing is resampled or nothing varies."""
    audits = run(judged(DEGENERATE["one cluster"], *EVALUATORS), names=["rates", "differences"])
    assert (
        "no interval for tpr, tnr, fpr, fnr, bacc, ppr, gap: fewer than two clusters"
        in audits["rates"][0]["reason"]
    )
    assert (
        audits["differences"][0]["reason"]
        == "no interval for difference: fewer than two clusters (of a class)"
    )
    lone = run(judged(of(label=lambda i: int(i > 0)), *EVALUATORS), names=["discrimination"])[
        "discrimination"
    ]
    assert "all claims of one class are of one document" in lone[0]["reason"]
    same = [
        row
        for row in run(judged(of(24, e=1), *EVALUATORS))["adjustment"]
        if row["evaluator"] == "e"
    ]
    still = [row for row in same if row["adjusted_error_rate"] == 0 and row["method"] == "none"]
    assert still
    for row in still:
        assert "no interval for adjusted_error_rate" in row["reason"]
        assert "only claims have one, after adjusted counts" in row["reason"]


def test_all_unscored_is_undefined_and_never_0():
    audits = run(judged(DEGENERATE["all claims unscored"], *EVALUATORS))
    for name in ("rates", "consistency", "differences", "quantification", "headroom", "ranking"):
        for row in audits[name]:
            # What the labels say does not depend on predictions.
            assert not [key for key in figures(row) if not key.startswith("labelled")], (name, row)
    found = collect_findings(audits)
    assert {
        f["evaluator"] for f in found if f["id"] == "unscored" and f["severity"] == "fail"
    } == set(EVALUATORS)


def test_responses_are_labelled_whole_and_predicted_as_soon_as_known_by_brute_force():
    cases = list(itertools.product(itertools.product((0, 1, None), repeat=3), repeat=2))
    rows = [
        {"response_id": f"{number:03}", "label": label, "e": said}
        for number, case in enumerate(cases)
        for label, said in zip(*case, strict=True)
    ]
    responses = judged(rows, "e").responses
    assert responses.claims["response_id"].tolist() == [
        f"{number:03}" for number in range(len(cases))
    ]
    for number, case in enumerate(cases):
        labels, predictions = case
        assert responses.label[number] == (-1 if None in labels else int(all(labels)))
        guesses = itertools.product(
            *[(0, 1) if value is None else (value,) for value in predictions]
        )
        outcomes = {int(all(guess)) for guess in guesses}
        assert responses.prediction[0, number] == (outcomes.pop() if len(outcomes) == 1 else -1)
