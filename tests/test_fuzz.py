"""Any input at all: a result, or an error that names the file. Replies have theirs in test_replies.py."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factaudit.engines.responses import ANNOTATED_FACT_SOURCES, read_response_file
from factaudit.errors import FactauditError, InputError
from factaudit.experiment import read_experiment
from factaudit.knowledge.docdb import DocDB
from factaudit.knowledge.knowledge_builder import build_knowledge_source
from factaudit.tables import read_claims, read_verdicts
from factaudit.tables.table_loading import load_tables as load_tables

CLAIM = {"dataset": "D", "claim": "It rains.", "doc": "Rain.", "label": 1, "system": "s"}
#: What a user may have written for anything.
TEXTS = [
    "",
    " ",
    "1",
    "null",
    "nan",
    "__macro__",
    "\x00",
    "\u202e",
    "\ud800",
    "../x",
    "${data}/x",
    "~nobody/x",
    "{",
    "=1",
]
ODD = st.sampled_from([None, True, 0, 1, -1, 0.5, 10**400, [], [[]], {}, {"": ""}, [None], {"a": [1, {}]}, *TEXTS])
VALUES = st.recursive(
    ODD | st.text(max_size=8) | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def rows(known: dict[str, st.SearchStrategy[Any]], least: tuple[str, ...] = ()) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of the known keys, mostly with what belongs there."""
    fields = {key: st.one_of(value, value, value, VALUES) for key, value in known.items()}
    some = st.fixed_dictionaries(
        {key: fields[key] for key in least}, optional={key: fields[key] for key in fields if key not in least}
    )
    return st.builds(lambda own, more: {**more, **own}, some, st.dictionaries(st.text(max_size=4), VALUES, max_size=1))


def mangled(text: str, cut: float, byte: int, place: float) -> bytes:
    """A file as disks and editors leave it: cut short, with a byte that does not belong."""
    data = text.encode("utf-8", "surrogatepass")
    at = math.floor(place * len(data))
    return (data[:at] + bytes([byte]) + data[at + 1 :])[: math.ceil(cut * len(data))]


MANGLED = st.tuples(st.floats(0, 1), st.integers(0, 255), st.floats(0, 1)) | st.none()


def written(path: Path, text: str, how: tuple[float, int, float] | None) -> Path:
    path.write_bytes(text.encode("utf-8", "surrogatepass") if how is None else mangled(text, *how))
    return path


def jsonl(items: list[Any]) -> str:
    return "".join(json.dumps(item) + "\n" for item in items)


def named(error: FactauditError, path: Path) -> None:
    """That an error is one that a user can act on."""
    said = str(error)
    assert said.strip()
    assert "Traceback" not in said
    assert not isinstance(error, InputError) or path.name in said, said


NAMES = st.sampled_from(["rates", "rouge2", "random", "stored", "llm", "x", "claims.jsonl", "retrieval", "one-group"])
SPEC = NAMES | st.dictionaries(
    NAMES, st.dictionaries(st.sampled_from(["path", "model", "seed", "x"]), VALUES), max_size=2
)
BLOCK = st.dictionaries(
    st.sampled_from(
        ["responses", "biographies", "knowledge", "llm", "verifiers", "verifier", "k", "facts", "groupers"]
    ),
    SPEC | st.lists(SPEC, max_size=2) | VALUES,
    max_size=4,
)
EXPERIMENT = {
    "title": st.text(max_size=5),
    "data": st.just("."),
    "claims": st.just("claims.jsonl") | st.dictionaries(st.sampled_from(["format", "source", "options"]), VALUES),
    "verdicts": st.just("claims.jsonl") | st.just([]),
    "evaluators": st.lists(SPEC, max_size=3),
    "audits": st.lists(SPEC, max_size=3),
    "replicates": st.integers(-1, 10),
    "seed": st.integers(-1, 10),
    "confidence": st.floats(0, 1),
    "estimate": st.dictionaries(st.sampled_from(["labels", "methods", "main", "target"]), VALUES, max_size=2),
    "columns": st.dictionaries(st.sampled_from(["claim", "claims", "auto"]), VALUES, max_size=2),
    "counts": VALUES,
    "factscore": BLOCK,
    "dfactscore": BLOCK,
}


@QUICK
@given(rows(EXPERIMENT), MANGLED)
def test_any_experiment_is_loaded_or_refused_with_its_line(tmp_path: Path, experiment: Any, how: Any) -> None:
    (tmp_path / "claims.jsonl").write_text(jsonl([CLAIM]))
    path = written(tmp_path / "e.yaml", yaml.safe_dump(experiment, allow_unicode=True), how)
    try:
        read_experiment(path)
    except FactauditError as error:
        named(error, path)


@QUICK
@given(st.text(st.sampled_from("&*[]{}:-,a1\n !|>'\"%@`\t?#~.<"), max_size=60))
def test_any_text_is_yaml_or_refused(tmp_path: Path, text: str) -> None:
    path = written(tmp_path / "e.yaml", text, None)
    with pytest.raises(FactauditError) as caught:
        read_experiment(path)  # none of these has claims
    named(caught.value, path)


TABLE = {
    "claim_id": st.sampled_from(["a", "b", "c", 1]),
    "dataset": st.just("D"),
    "claim": st.text(max_size=5),
    "doc": st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=2),
    "label": st.sampled_from([0, 1, None, True, "1", 0.0]),
    "system": st.sampled_from(["s", None]),
    "abstained": st.sampled_from([0, 1, None]),
    "evaluator": st.sampled_from(["e", "f"]),
    "score": st.floats(0, 1) | st.none(),
    "prediction": st.sampled_from([0, 1, None]),
    "status": st.sampled_from(["ok", "error", None, "unparsed"]),
    "repeat": st.integers(0, 2),
    "chunk_scores": st.lists(st.floats(0, 1), max_size=2),
}


@QUICK
@given(st.lists(rows(TABLE), max_size=4), MANGLED)
def test_any_table_is_read_or_refused(tmp_path: Path, items: list[Any], how: Any) -> None:
    path = written(tmp_path / "t.jsonl", jsonl(items), how)
    for reader in (read_claims, read_verdicts, lambda one: load_tables([one])):
        try:
            reader(path)
        except FactauditError as error:
            named(error, path)


def test_one_score_for_all_claims_tells_no_scale(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"claim_id": "a", "evaluator": "e", "score": -2.0}\n', encoding="utf-8")
    with pytest.raises(FactauditError, match="expected a number from 0 to 1"):
        load_tables([path])


@QUICK
@given(st.lists(st.lists(st.text(max_size=4), min_size=1, max_size=4), max_size=4), st.sampled_from(",;\t|"), MANGLED)
def test_any_csv_is_read_or_refused(tmp_path: Path, cells: list[list[str]], separator: str, how: Any) -> None:
    lines = ["dataset,claim,label,score".replace(",", separator), *(separator.join(row) for row in cells)]
    path = written(tmp_path / "t.csv", "\n".join(lines), how)
    for reader in (read_claims, lambda one: load_tables([one])):
        try:
            reader(path)
        except FactauditError as error:
            named(error, path)


RESPONSE = {
    "topic": st.just("Rain"),
    "input": st.text(max_size=5),
    "output": st.text(max_size=9),
    "facts": st.lists(st.text(max_size=5) | st.fixed_dictionaries({"text": st.text(max_size=5)}), max_size=3),
    "annotations": VALUES,
    "system": st.just("s"),
    "name": st.just("Rain"),
    "docs": st.lists(st.fixed_dictionaries({"title": st.text(max_size=3), "text": st.text(max_size=3)}), max_size=2),
    "candidates": st.lists(st.text(max_size=3), max_size=2),
}


@QUICK
@given(st.lists(rows(RESPONSE, ("output",)), max_size=3), MANGLED, st.sampled_from([None, *ANNOTATED_FACT_SOURCES]))
def test_any_file_of_responses_is_read_or_refused(tmp_path: Path, items: list[Any], how: Any, facts: Any) -> None:
    path = written(tmp_path / "r.jsonl", jsonl(items), how)
    try:
        read_response_file(path, facts=facts)
    except FactauditError as error:
        named(error, path)


PAGE = {
    "title": st.text(min_size=1, max_size=5),
    "text": st.text(max_size=20) | st.lists(st.text(max_size=9), max_size=2),
    "passages": st.lists(st.text(max_size=9), max_size=3),
    "redirect": st.text(max_size=5),
}


@pytest.mark.slow
@QUICK
@given(st.lists(rows(PAGE, ("title",)) | rows(PAGE, ("title", "text")), max_size=4), MANGLED)
def test_any_pages_become_a_knowledge_source_or_are_refused(tmp_path: Path, items: list[Any], how: Any) -> None:
    path = written(tmp_path / "pages.jsonl", jsonl(items), how)
    made = tmp_path / "pages.db"
    for old in tmp_path.glob("pages.db*"):
        old.unlink()
    try:
        build_knowledge_source(path, made)
    except FactauditError as error:
        named(error, path)
        assert not made.exists()
        return
    with DocDB(made) as source:
        for item in items:
            title = item.get("title")
            if isinstance(title, str):
                page = source.find(title)
                assert page is None or all(passage.strip() for passage in page.passages)


@QUICK
@given(st.binary(max_size=300))
def test_any_bytes_are_no_knowledge_source(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(b"SQLite format 3\0" + data)
    with pytest.raises(FactauditError), DocDB(path) as source:
        source.find("Rain")
