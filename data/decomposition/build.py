"""Writes responses.jsonl of source.txt: `python data/decomposition/build.py`. The rules of
README.md plant faults."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

HERE = Path(__file__).parent
FAULTS = {
    "-": [],
    "i": ["invented"],
    "j": ["joined"],
    "r": ["repeated"],
    "u": ["unclear"],
    "t": ["trivial"],
}
#: Of a demonstration that is in the prompt, and what a model copies of it.
LEAKED = (
    "Maren Oldkirk was born on 4 March 1951.",
    "{topic} served as the director of the Halvard Polar Station.",
    "{topic} is a Norlandic glaciologist.",
    "Her measurements of the Tessel ice shelf were published in 1979.",
    "Brandolf designed the backup valve of the Lantern II probe.",
    "{topic} was chosen by the Corvane Institute in 2004.",
)


def read_source() -> list[dict]:
    responses: list[dict] = []
    for line in (HERE / "source.txt").read_text(encoding="utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark == "#":
            responses.append({"topic": text, "sentences": [], "facts": []})
        elif mark in (">", ">-"):
            responses[-1]["sentences"].append({"text": text, "uncovered": mark == ">-"})
        elif mark:
            place = len(responses[-1]["sentences"]) - 1
            responses[-1]["facts"].append(
                {"text": text, "sentence": place, "faults": list(FAULTS[mark])}
            )
    return responses


def pick_facts(response: dict, faults: str) -> list[dict]:
    """The facts without a fault, and those with one of these."""
    return [
        dict(fact)
        for fact in response["facts"]
        if not fact["faults"] or fact["faults"][0] in faults.split()
    ]


def make_fact(text: str, sentence: int, *faults: str) -> dict:
    return {"text": text, "sentence": sentence, "faults": list(faults)}


def plant_inventions(number: int, response: dict, other: dict, draw: random.Random) -> list[dict]:
    """Another year in the place of a year, facts of another topic under this name, facts of the
    demonstrations."""
    topic, facts = response["topic"], pick_facts(response, "invented")
    clean = [fact for fact in facts if not fact["faults"]]
    dated = [fact for fact in clean if re.search(r"\b(1[89]|20)\d\d\b", fact["text"])]
    for fact in draw.sample(dated, min(2, len(dated))):
        year = str(draw.randint(1700, 1760))
        facts.append(
            make_fact(
                re.sub(r"\b(1[89]|20)\d\d\b", year, fact["text"]), fact["sentence"], "invented"
            )
        )
    theirs = [
        one
        for one in other["facts"]
        if not one["faults"] and one["text"].startswith(other["topic"] + " ")
    ]
    for fact in draw.sample(theirs, min(3, len(theirs))):
        facts.append(
            make_fact(
                topic + fact["text"].removeprefix(other["topic"]), fact["sentence"], "invented"
            )
        )
    for text in (LEAKED[number % len(LEAKED)], LEAKED[(number + 1) % len(LEAKED)]):
        unclear = ["unclear"] if text.startswith("Her") else []
        facts.append(make_fact(text.format(topic=topic), 0, "invented", "leaked", *unclear))
    return facts


def plant_repetitions(response: dict, draw: random.Random) -> list[dict]:
    """Facts word for word again, and again with another ending."""
    facts = pick_facts(response, "repeated")
    clean = [fact for fact in facts if not fact["faults"]]
    for fact in draw.sample(clean, 3):
        facts.append(make_fact(fact["text"], fact["sentence"], "repeated"))
    for fact in draw.sample(clean, 2):
        facts.append(make_fact(fact["text"].rstrip(".") + " too.", fact["sentence"], "repeated"))
    return facts


def plant_forms(response: dict, draw: random.Random) -> list[dict]:
    """A pronoun in the place of the topic, and two facts as one."""
    topic, facts = response["topic"], pick_facts(response, "joined unclear trivial")
    own = [fact for fact in facts if not fact["faults"] and fact["text"].startswith(topic + " ")]
    chosen = draw.sample(own, min(4, len(own)))
    for fact in chosen[:2]:
        fact["text"], fact["faults"] = "It" + fact["text"].removeprefix(topic), ["unclear"]
    if len(chosen) == 4:
        one, two = chosen[2:]
        one["text"], one["faults"] = f"{one['text'].rstrip('.')}, and {two['text']}", ["joined"]
        facts.remove(two)
    return facts


def build() -> list[dict]:
    draw, source, responses = random.Random(0), read_source(), []
    for number, one in enumerate(source):
        for kind in ("inventions", "repetitions", "forms"):
            if kind == "inventions":
                facts = plant_inventions(number, one, source[(number + 3) % len(source)], draw)
            else:
                facts = (
                    plant_repetitions(one, draw)
                    if kind == "repetitions"
                    else plant_forms(one, draw)
                )
            sentences = [dict(sentence) for sentence in one["sentences"]]
            if kind == "repetitions":  # a sentence without its facts
                place = next(at for at in (number % 4, 1, 2, 0) if at < len(sentences))
                facts = [fact for fact in facts if fact["sentence"] != place]
                sentences[place]["uncovered"] = True
            output = " ".join(sentence["text"] for sentence in sentences)
            key = {
                "response_id": f"r{number:02d}-{kind}",
                "topic": one["topic"],
                "kind": kind,
                "output": output,
            }
            responses.append(key | {"sentences": sentences, "facts": facts})
    return responses


if __name__ == "__main__":
    lines = [json.dumps(one, ensure_ascii=False) + "\n" for one in build()]
    (HERE / "responses.jsonl").write_text("".join(lines), encoding="utf-8")
