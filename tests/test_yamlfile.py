"""Experiment YAMLs: what is wrong is said in one line, with the line of the file and a hint."""

from __future__ import annotations

from pathlib import Path

import pytest

from factaudit import InputError, UsageError
from factaudit.experiment.run import read_experiment

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
        read_experiment(path, **settings)
    return str(caught.value).removeprefix(f"{path}: ")


def test_paths_are_relative_to_the_file_and_one_may_stand_without_a_list(write, tmp_path):
    experiment = read_experiment(write("claims: claims.jsonl\nevaluators: [rouge2]\n"))
    assert experiment.claims == [str(tmp_path / "claims.jsonl")]


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


def test_settings_override_keys(write, tmp_path):
    path = write("claims: claims.jsonl\nevaluators:\n  - rouge2\nseed: 1\n")
    assert read_experiment(path, {"seed": 7}).seed == 7
    with pytest.raises(InputError, match="unknown key 'sede'"):
        read_experiment(path, {"sede": 7})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Claims: claims.jsonl\n", "line 1: unknown key 'Claims' (did you mean 'claims'?)"),
        (
            "claims: {fromat: wice, source: claims.jsonl}\n",
            "unknown key 'claims.0.fromat' (did you mean 'format'?)",
        ),
        (
            "claims: {format: wice, source: claims.jsonl, options: {lvl: 1}}\n",
            "format 'wice' has no option 'lvl'",
        ),
        (
            "claims: [{format: wice, source: claims.jsonl, extra: 1}]\n",
            "line 1: unknown key 'claims.0.extra'",
        ),
        ("claims: true\n", "line 1: claims: expected a valid list, found True"),
        (
            "claims: claims.jsonl\naudits: [{rates: {}, ranking: {}}]\n",
            "line 2: audit: expected one NAME: {options}",
        ),
        ("claims: claims.jsonl\naudits: [rates, rates]\n", "line 2: audit 'rates' is named twice"),
        (
            "claims: claims.jsonl\nevaluators: [rouge2: {name: ''}]\n",
            "option name: '' is reserved or empty; choose another name",
        ),
    ],
)
def test_more_that_is_wrong_is_one_clear_line(write, text, said):
    told = problem(write(text))
    assert said in told
    assert "valid string" not in told, "an object is meant, though a text would do"


def test_settings_reach_into_lists_and_are_named_in_problems(write, tmp_path, monkeypatch):
    path = write("claims: claims.jsonl\nevaluators:\n  - random: {seed: 0}\n  - rouge2\n")
    assert read_experiment(path, {"evaluators.0.random.seed": 5}).evaluators == [
        {"random": {"seed": 5}},
        "rouge2",
    ]
    assert read_experiment(path, {"evaluators.1": "unigram"}).evaluators[1] == "unigram"
    assert problem(path, settings={"seed": "many"}).startswith(
        "--set seed: expected a valid integer"
    )
    for key in ("evaluators.2", "evaluators.x", "evaluators.1.seed"):
        with pytest.raises(UsageError, match=f"--set {key}"):
            read_experiment(path, {key: 1})
    # Paths that are given from outside are relative to where the user stands.
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "mine.jsonl").write_text(CLAIMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path / "here")
    assert read_experiment(path, {"claims": "mine.jsonl"}).claims == [
        str(tmp_path / "here" / "mine.jsonl")
    ]


def test_data_stands_for_a_folder(write, tmp_path, monkeypatch):
    path = write("claims: ${data}/claims.jsonl\n")
    assert "line 1: ${data} is used, but 'data' is not set" in problem(path)
    monkeypatch.chdir(tmp_path)
    assert read_experiment(path, {"data": "."}).claims == [str(tmp_path / "claims.jsonl")]


# ---- what is a path


@pytest.mark.parametrize(
    "base_url",
    [
        "https://api.example.com/v1",
        "http://10.0.0.7:8000/v1",
        pytest.param("local", marks=pytest.mark.local),
    ],
)
@pytest.mark.parametrize(
    "spec",
    [
        "'llm:model=smollm2,base_url=URL'",
        "llm: {model: smollm2, base_url: 'URL'}",
        "chunked: {evaluator: {llm: {model: smollm2, base_url: 'URL'}}}",
        "ensemble: {evaluators: [rouge2, 'llm:model=smollm2,base_url=URL']}",
    ],
)
def test_an_address_is_no_path(write, base_url, spec):
    experiment = read_experiment(
        write(f"claims: claims.jsonl\nevaluators:\n  - {spec}\n".replace("URL", base_url))
    )
    assert base_url in str(experiment.evaluators)


def test_paths_of_options_are_found_however_deep_they_stand(write, tmp_path):
    (tmp_path / "v.jsonl").write_text('{"claim_id": "a", "evaluator": "e", "score": 1}\n')
    file = str(tmp_path / "v.jsonl")
    for spec in (
        "npm: {stopwords: v.jsonl}",
        "'npm:stopwords=./v.jsonl'",
        "chunked: {evaluator: {npm: {stopwords: v.jsonl}}}",
        "'chunked:evaluator=npm:stopwords=v.jsonl'",
        "ensemble: {evaluators: [rouge2, {npm: {stopwords: v.jsonl}}]}",
        "'ensemble:evaluators=rouge2+npm:stopwords=v.jsonl'",
    ):
        assert file in str(
            read_experiment(write(f"claims: claims.jsonl\nevaluators:\n  - {spec}\n")).evaluators
        ), spec
    joined = (
        "claims: {format: aggrefact, source: claims.jsonl, options: {join: 'tofueval:v.jsonl'}}\n"
    )
    assert f"tofueval:{file}" in str(read_experiment(write(joined)).claims)
    expected = f"line 3: no such file: {tmp_path / 'gone.jsonl'}"
    for spec in (
        "npm: {stopwords: gone.jsonl}",
        "chunked: {evaluator: {npm: {stopwords: gone.jsonl}}}",
    ):
        assert expected in problem(write(f"claims: claims.jsonl\nevaluators:\n  - {spec}\n"))


def test_text_that_begins_like_a_path_is_none_where_none_is_declared(write):
    text = (
        "claims: claims.jsonl\nevaluators: [rouge2: {name: ../mine}, llm: {model: /models/llama,"
        " revision: ./2}]\n"
    )
    experiment = read_experiment(write(text))
    assert experiment.evaluators[0] == {"rouge2": {"name": "../mine"}}
    assert experiment.evaluators[1] == {"llm": {"model": "/models/llama", "revision": "./2"}}


# ---- aliases


def test_an_alias_that_is_used_as_meant_stays(write):
    text = "claims: claims.jsonl\nevaluators:\n  - rouge2: &o {threshold: 0.3}\n  - unigram: *o\n"
    assert read_experiment(write(text)).evaluators == [
        {"rouge2": {"threshold": 0.3}},
        {"unigram": {"threshold": 0.3}},
    ]
