"""Experiment YAMLs: what is wrong is said in one line, with the line of the file and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from factaudit.errors import InputError, UsageError
from factaudit.experiment import load

CLAIMS = '{"dataset": "D", "claim": "x", "doc": "x y", "label": 1}\n'


@pytest.fixture
def write(tmp_path: Path):
    (tmp_path / "claims.jsonl").write_text(CLAIMS, encoding="utf-8")

    def written(text: str) -> Path:
        path = tmp_path / "experiment.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return written


def problem(path: Path, **settings) -> str:
    with pytest.raises(InputError) as caught:
        load(path, **settings)
    return str(caught.value).removeprefix(f"{path}: ")


def test_paths_are_relative_to_the_file_and_one_may_stand_without_a_list(write, tmp_path):
    experiment = load(write("claims: claims.jsonl\nevaluators: [rouge2]\n"))
    assert experiment.claims == [str(tmp_path / "claims.jsonl")]


def test_an_unknown_key_has_a_line_and_a_hint(write):
    path = write("title: T\nclaims: claims.jsonl\naudit:\n  - rates\n")
    assert problem(path) == "line 3: unknown key 'audit' (did you mean 'audits'?)"


def test_a_missing_file(write, tmp_path):
    path = write("title: T\nclaims:\n  - claims.jsonl\n  - other.jsonl\n")
    expected = f"line 4: no such file: {tmp_path / 'other.jsonl'} (paths are relative to {tmp_path})"
    assert problem(path) == expected


def test_a_wrong_type(write):
    assert problem(write("claims: claims.jsonl\nseed: many\n")).startswith(
        "line 2: seed: Input should be a valid integer"
    )


def test_a_missing_key(write):
    assert problem(write("title: T\n")) == "line 1: the key 'claims' is missing"


def test_a_misspelt_evaluator_audit_and_option(write):
    text = problem(
        write(
            "claims: claims.jsonl\n"
            "evaluators:\n  - rogue2\n  - rouge2: {treshold: 0.3}\n"
            "audits:\n  - rate\n  - rates: {bye: [task]}\n"
        )
    )
    assert "line 3: unknown evaluator 'rogue2' (did you mean 'rouge2'?)" in text
    assert "line 4: evaluator 'rouge2' has no option 'treshold'" in text
    assert "line 6: unknown audit 'rate' (did you mean 'rates'?)" in text
    assert "line 7: audit 'rates' has no option 'bye'" in text


def test_a_key_that_is_there_twice(write):
    assert problem(write("claims: claims.jsonl\nseed: 1\nseed: 2\n")) == "line 3: the key 'seed' is there twice"


def test_text_that_is_no_yaml(write):
    assert problem(write("claims: [a\nseed: 1\n")).startswith("line ")
    assert problem(write("")) == "the file is empty"
    assert "expected keys and values, found list" in problem(write("- a\n"))


def test_tags_make_no_objects(write):
    assert "line 1: not YAML" in problem(write("claims: !!python/object/apply:os.system ['true']\n"))


def test_settings_override_keys(write, tmp_path):
    path = write("claims: claims.jsonl\nevaluators:\n  - rouge2\nseed: 1\n")
    assert load(path, {"seed": 7}).seed == 7
    with pytest.raises(InputError, match="unknown key 'sede'"):
        load(path, {"sede": 7})


def test_data_stands_for_a_folder(write, tmp_path, monkeypatch):
    path = write("claims: ${data}/claims.jsonl\n")
    assert "line 1: ${data} is used, but 'data' is not set" in problem(path)
    monkeypatch.chdir(tmp_path)
    assert load(path, {"data": "."}).claims == [str(tmp_path / "claims.jsonl")]


def test_two_evaluators_of_one_name_are_refused(write, tmp_path):
    from factaudit.experiment import run

    path = write("claims: claims.jsonl\nevaluators: [rouge2, rouge2]\n")
    with pytest.raises(UsageError, match="two evaluators are called 'rouge2'"):
        run(path, tmp_path / "out")
