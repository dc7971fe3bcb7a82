"""A folder of small valid inputs for every verb, and the commands that read them."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from pathlib import Path
from typing import Any

#: Verb and arguments, and the files of `write_inputs` that it reads. What it writes is called
#: ``out`` and so on.
COMMANDS: list[tuple[str, tuple[str, ...]]] = [
    ("inspect claims.csv", ("claims.csv",)),
    ("inspect e.yaml", ("e.yaml",)),
    ("inspect wide.csv", ("wide.csv",)),
    ("inspect claims.jsonl verdicts.jsonl", ("claims.jsonl", "verdicts.jsonl")),
    ("inspect wide.csv --columns mapping.yaml", ("mapping.yaml", "wide.csv")),
    ("run e.yaml --out out", ("e.yaml", "claims.jsonl", "verdicts.jsonl")),
    ("run e.yaml --dry-run", ("e.yaml",)),
    (
        "audit claims.jsonl verdicts.jsonl --replicates 0 --out out",
        ("claims.jsonl", "verdicts.jsonl"),
    ),
    (
        "judge claims.jsonl --evaluator rouge2 --out judged.jsonl",
        ("claims.jsonl", ".judged.jsonl.journal/*.jsonl"),
    ),
    (
        (
            "sample claims.jsonl verdicts.jsonl --budget 12 --one-phase --out out.parquet --page"
            " out.html"
        ),
        ("claims.jsonl",),
    ),
    (
        "labels ann.csv ben.csv --claims claims.jsonl --out out.csv --page out.html",
        ("ann.csv", "ben.csv"),
    ),
    (
        "estimate claims.jsonl verdicts.jsonl --label-file ann.csv --level claim --out out",
        ("ann.csv", "verdicts.jsonl"),
    ),
    (
        "triage claims.jsonl verdicts.jsonl --label-file ann.csv --max-error 0.4 --out out",
        ("ann.csv", "verdicts.jsonl"),
    ),
    ("convert reveal reveal_eval.csv --out out.parquet", ("reveal_eval.csv",)),
    ("inspect inspect.eval --write out.yaml", ("inspect.eval",)),
    ("inspect phoenix.csv --write out.yaml", ("phoenix.csv",)),
    ("inspect promptfoo.json --write out.yaml", ("promptfoo.json",)),
    (
        (
            "factscore responses.jsonl --knowledge pages.jsonl --verifier rouge2 --set replicates=0"
            " --out out"
        ),
        ("responses.jsonl",),
    ),
    (
        (
            "dfactscore groups.jsonl --knowledge pages.jsonl --verifier rouge2 --grouper given"
            " --set replicates=0 --out out"
        ),
        ("groups.jsonl",),
    ),
    ("knowledge pages.jsonl --out out.db", ("pages.jsonl",)),
    ("inspect wiki.db", ("wiki.db",)),
    ("export runs/a --to report", ("runs/a/results.json", "runs/a/.work/*.json")),
    ("export runs/a --to jsonl --out out.jsonl", ("runs/a/results.json", "runs/a/claims.parquet")),
    ("export runs/a --to leaderboard --out out", ("runs/a/results.json",)),
    ("diff runs/a runs/b --out out.json", ("runs/a/results.json", "runs/b/verdicts.parquet")),
    (
        "run e.yaml --out runs/a",
        ("runs/a/.work/*.json", "runs/a/results.json", "runs/a/experiment.yaml"),
    ),
]
#: Those that write, of the conversions one: all are written alike.
WRITING_COMMANDS = [
    command for command, _ in COMMANDS if ("--out" in command or command.startswith("export"))
]


def write_inputs(folder: Path) -> None:
    """Write the files. The working directory must be the folder: runs are made with the verbs
    themselves."""
    from conftest import run_command

    from factaudit import judge
    from factaudit.llm.chat_types import ChatReply
    from factaudit.llm.store import ReplyStore
    from factaudit.tables import read_claims

    draw = random.Random(0)
    claims = [
        {
            "claim_id": f"c{n}",
            "dataset": "D",
            "system": f"s{n % 2}",
            "claim": f"It rains {n} days.",
            "label": n % 3 and 1,
        }
        | {"doc": f"Rain fell {n} days.", "response_id": f"r{n // 2}"}
        for n in range(24)
    ]
    verdicts = [
        {"claim_id": claim["claim_id"], "evaluator": name, "score": round(draw.random(), 2)}
        for name in ("e0", "e1")
        for claim in claims
    ]
    annotations = {
        name: (
            "claim_id,annotator,label\n"
            + "".join(f"c{n},{name},{(n + shift) % 2}\n" for n in range(16))
        )
        for name, shift in (("ann", 0), ("ben", 1))
    }
    given = {
        "name": "Rain",
        "candidates": ["Rain"],
        "facts": [{"text": "Rain is water.", "group": "Rain"}],
    }
    files: dict[str, str | list[dict[str, Any]]] = {
        "claims.jsonl": claims,
        "claims.csv": (
            "dataset,claim,doc,label\n" + "".join(f"D,claim {n},a doc,{n % 2}\n" for n in range(9))
        ),
        "verdicts.jsonl": verdicts,
        "ann.csv": annotations["ann"],
        "ben.csv": annotations["ben"],
        "e.yaml": (
            "claims: claims.jsonl\nverdicts: verdicts.jsonl\naudits: [rates]\nreplicates: 0\n"
        ),
        "mapping.yaml": "columns: {claim: sentence, doc: context, label: human}\n",
        "wide.csv": (
            "sentence,context,human,gpt4\n"
            + "".join(f"It rains {n}.,Rain {n}.,{n % 2},0.{n}\n" for n in range(1, 9))
        ),
        "pages.jsonl": [{"title": "Rain", "text": "Rain is water. It falls."}],
        "responses.jsonl": [
            {"topic": "Rain", "output": "Rain is water.", "facts": ["Rain is water."]}
        ],
        "groups.jsonl": [given | {"output": "Rain is water."}],
        "reveal_eval.csv": (
            "answer_id,answer_model,step_idx,step,evidence,attribution_label\n"
            "a,m,0,Rain is water.,Rain is water.,Fully Attributable\n"
        ),
    }
    for name, content in files.items():
        text = (
            content
            if isinstance(content, str)
            else "".join(json.dumps(row) + "\n" for row in content)
        )
        (folder / name).write_text(text, encoding="utf-8")
    logs = Path(__file__).parent / "logs"
    for name in ("inspect.eval", "phoenix.csv", "promptfoo.json"):
        shutil.copy(logs / name, folder / name)
    for run in ("a", "b"):
        assert run_command("run", "e.yaml", "--out", f"runs/{run}") == 0
    assert run_command("knowledge", "pages.jsonl", "--out", "wiki.db") == 0
    judge(read_claims("claims.jsonl"), ["rouge2"], journal=folder / ".judged.jsonl.journal")
    with contextlib.closing(ReplyStore(folder / "cache.db")) as cache:
        for n in range(20):
            reply = ChatReply("ok", f"reply {n}", "stop", None, 3, 1)
            cache.finish(bytes([n]) * 32, "ok", reply=reply)


def read_contents(folder: Path) -> dict[str, bytes]:
    """What the files of a folder hold, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
