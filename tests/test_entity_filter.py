"""The original's filter of facts by dates and numbers: its rules on stand-ins for spaCy, and spaCy itself."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scripted_llm import ScriptedLLM

from factaudit.engines.entity_filter import SpacyEntityFactFilter
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.responses import make_response
from factaudit.errors import FactauditError

_MONTH = "January|May|June|August|October"
_DATE = re.compile(rf"(?:\d+ )?(?:{_MONTH})(?: \d+)?(?:, \d+)?|\d+-\d+|the 1990s|two years")


def stand_in(text: str) -> Any:
    """What spaCy would say: dates by a pattern, and a person, whom the filter does not look at."""
    people = [SimpleNamespace(text=name, label_="PERSON") for name in re.findall("Ada|Henry 8", text)]
    return SimpleNamespace(ents=[*people, *(SimpleNamespace(text=one, label_="DATE") for one in _DATE.findall(text))])


@pytest.fixture
def filter_by_rules(monkeypatch: pytest.MonkeyPatch) -> SpacyEntityFactFilter:
    meta = {"lang": "en", "name": "rules", "version": "1"}

    class Pipeline:
        def __init__(self) -> None:
            self.meta = meta

        def __call__(self, text: str) -> Any:
            return stand_in(text)

    monkeypatch.setitem(sys.modules, "spacy", SimpleNamespace(load=lambda name, exclude: Pipeline()))
    return SpacyEntityFactFilter()


BORN = "Ada was born on 4 May 1901 and served from 1914-1918."


@pytest.mark.parametrize(
    ("sentence", "facts", "left"),
    [
        # A date that the sentence does not have.
        (
            BORN,
            ["Ada was born on 4 May 1901.", "Ada served from 1914-1918.", "Ada died in 1950."],
            ["Ada was born on 4 May 1901.", "Ada served from 1914-1918."],
        ),
        # Of two numbers that stand for a span, each is one.
        (
            BORN,
            ["Ada was born on 4 May 1901.", "Ada served from 1914.", "Ada served until 1918."],
            ["Ada was born on 4 May 1901.", "Ada served from 1914.", "Ada served until 1918."],
        ),
        # A date that is cut short is completed.
        ("Ada left on 4 May 1901.", ["Ada left on 4 May."], ["Ada left on 4 May 1901."]),
        # A fact that breaks off where another goes on; a founding member is somebody.
        (
            "Ada was born in May 1901, a founding member.",
            ["Ada was born.", "Ada was born in May 1901.", "Ada was a founding member."],
            ["Ada was born in May 1901.", "Ada was a founding member."],
        ),
        ("Ada was born.", ["Ada was born."], ["Ada was born."]),
        # What passes lacks a date of the sentence: all stay as they are.
        (
            BORN,
            ["Ada was born on 4 May 1901.", "Ada died in 1950."],
            ["Ada was born on 4 May 1901.", "Ada died in 1950."],
        ),
        # Other entities are not looked at, and numbers are, whatever spaCy says of them.
        ("Henry 8 had wives.", ["Henry 8 had 6 wives.", "Henry 8 had wives."], ["Henry 8 had wives."]),
        ("She came back.", ["She came back.", "She came back in June."], ["She came back."]),
    ],
)
def test_the_originals_rules(
    filter_by_rules: SpacyEntityFactFilter, sentence: str, facts: list[str], left: list[str]
) -> None:
    assert filter_by_rules.filter_facts(sentence, facts) == left


def test_what_is_no_date_is_looked_at_word_by_word(filter_by_rules: SpacyEntityFactFilter) -> None:
    assert filter_by_rules._find_dates_and_numbers("It took two years in the 1990s, until May 3.") == ["May 3"]
    assert filter_by_rules._find_dates_and_numbers("In 1990 or 1914-1918, 19 of them.") == ["1914", "1918", "1990"]


def scorer(**options: Any) -> FactScorer:
    def answer(prompt: str) -> str:
        if prompt.startswith("Please breakdown"):
            return "- Ada was born on 4 May 1901.\n- Ada served from 1914-1918.\n- Ada died in 1950.\n"
        return "True"

    return FactScorer(None, ScriptedLLM(answer), verifiers=["no-context"], replicates=0, **options)


def test_a_run_tells_how_many_facts_it_removed(filter_by_rules: SpacyEntityFactFilter) -> None:
    plain, filtered = scorer(), scorer(entity_filter="rules")
    (all_facts,) = plain.score(["Ada"], [BORN])["responses"]
    result = filtered.score(["Ada"], [BORN])
    assert (all_facts["n_facts"], all_facts["n_filtered"]) == (3, 0)
    assert (result["responses"][0]["n_facts"], result["n_filtered"]) == (2, 1)
    told = filtered.sections(filtered.score_responses([make_response("Ada", BORN)]))[0]["text"]
    assert "Of the facts of the replies, the filters (entities, core) removed 1." in told
    (name,) = plain.names
    assert "entities" not in plain.signatures[name]
    assert "en_rules-1" in filtered.signatures[name]


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(FactauditError, match=r"pip install 'factaudit\[entities\]'"):
        scorer(entity_filter="en_core_web_sm")


def test_with_spacy_itself(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="needs the [entities] extra (spacy)")
    with pytest.raises(FactauditError, match=r"no spaCy pipeline at .*nothing.*spacy download en_core_web_sm"):
        SpacyEntityFactFilter(str(tmp_path / "nothing"))
    nlp = spacy.blank("en")
    month = {"LOWER": {"IN": ["may", "june"]}}
    nlp.add_pipe("entity_ruler").add_patterns(
        [
            {"label": "DATE", "pattern": [{"IS_DIGIT": True}, month, {"IS_DIGIT": True}]},
            {"label": "DATE", "pattern": [{"IS_DIGIT": True}, month]},
            {"label": "PERSON", "pattern": "Ada 7"},
        ]
    )
    nlp.to_disk(tmp_path / "rules")
    found = SpacyEntityFactFilter(str(tmp_path / "rules"))
    facts = ["Ada 7 left on 4 May.", "Ada 7 left.", "Ada 7 came in 1950."]
    assert found.filter_facts("Ada 7 left on 4 May 1901.", facts) == ["Ada 7 left on 4 May 1901.", "Ada 7 left."]
    assert "en_pipeline-" in found.signature
