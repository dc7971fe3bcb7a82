"""The commands of the pages, run as they stand on files of the names that they use, beside the output that is shown.

``python tests/doc_pages.py --write`` writes what they print now into the pages; without it the script shows what
differs; a page may be named. Shown output stands in a block of ``console`` after ``$ command``; a line ``[...]``
stands for lines that are left out. A block of ``csv`` is the file that the words before it name.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import io
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pandas as pd
from llm_server import FaultServer, Plan

import factaudit
from factaudit.cli import main
from factaudit.estimate.sample import read_sample

ROOT = Path(__file__).resolve().parents[1]
#: Published files, which are part of no checkout (as in tests/conftest.py).
TOFUEVAL = Path(os.environ.get("FACTAUDIT_SHARED_DATA", ROOT.parent / "shared" / "data")) / "tofueval"
PAGES = sorted(
    [
        ROOT / "README.md",
        *(page for page in ROOT.rglob("docs/**/*.md") if page.name not in ("audits.md", "commands.md", "data.md")),
        ROOT / "experiments/README.md",
    ]
)
#: What cannot run here, by what the command line holds; its words are checked all the same.
NOT_RUN = {
    "factaudit view": "serves until it is stopped",
    "factaudit demo": "tests/test_shipped_experiments.py runs it",
    "convert tofueval --out": "needs all published files of the format",
    "published.yaml": "needs published files",
    "minicheck": "needs the extra [hf] and weights",
    "--on ray": "needs a cluster",
}
if not TOFUEVAL.is_dir():
    NOT_RUN["convert tofueval"] = "needs published files"
#: Its commands are examples of formats that others publish: they are checked, and each format has its own tests.
NOT_RUN_PAGES = ("reference.md",)
#: Needed before a command, by its first word.
_RUNS_BEFORE = {"diff": ("runs/trusted", "runs/judge-v1", "runs/judge-v2"), "export": ("runs/a", "runs/b")}
_LEFT_OUT = "[...]"


@dataclass(frozen=True)
class ShownCommand:
    """A command of a page; ``output``: what is shown of its output, and ``lines``: where; None where nothing is."""

    line: str
    output: str | None = None
    lines: tuple[int, int] | None = None


def list_commands(page: Path) -> list[ShownCommand]:
    """The lines of a page's code blocks that begin with ``factaudit``, steps of a workflow among them."""
    commands: list[ShownCommand] = []
    language, command, start = None, "", 0
    page_lines = page.read_text(encoding="utf-8").splitlines()
    for at, text in enumerate([*page_lines, "```"]):
        if language == "console" and command and (text.startswith(("$ ", "```"))):
            shown = "\n".join(page_lines[start:at]).rstrip("\n")
            commands.append(ShownCommand(command, shown, (start, at)))
            command = ""
        if text.startswith("```"):
            language = None if language is not None else text[3:].strip()
        elif language == "console":
            if text.startswith("$ factaudit "):
                command, start = text[2:], at + 1
        elif language not in (None, "python") and (
            # What the shell does with the output is no argument.
            found := re.match(r"(?:\s*- run: )?(factaudit .+?)(?: >> .+)?$", text)
        ):
            commands.append(ShownCommand(found[1].strip()))
    return commands


@functools.cache
def judge_minibench() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims and verdicts of the pages' commands."""
    claims = factaudit.read_claims(ROOT / "data/minibench/claims.jsonl.gz")
    systems = [f"s{number % 3}" for number in range(len(claims))]
    claims = claims.assign(dataset="minibench", system=systems, response_id=None)
    return claims, factaudit.judge(claims, ["rouge2", "unigram"])


def make_page_files(page: Path) -> None:
    """Write into the working folder each file that the pages' commands read."""
    claims, verdicts = judge_minibench()
    claims.to_parquet("claims.parquet")
    claims.to_json("claims.jsonl", orient="records", lines=True)
    verdicts.to_parquet("verdicts.parquet")
    Path("verdicts").mkdir()
    verdicts.to_parquet("verdicts/all.parquet")
    labels = claims[["claim_id", "label"]].dropna()
    for name in (
        "labels-ann.jsonl",
        "labels-ben.jsonl",
        "more-ann.jsonl",
        "labels.jsonl",
        "more.jsonl",
        "ann.csv",
        "ben.csv",
    ):
        said = labels.assign(annotator="ben" if "ben" in name else "ann")
        said.to_csv(name, index=False) if name.endswith("csv") else said.to_json(name, orient="records", lines=True)
    judged = verdicts[verdicts["evaluator"] == "unigram"].head(90)
    answers = claims[["claim_id", "claim", "doc", "label", "system", "dataset"]].head(90)
    answers.merge(judged[["claim_id", "score"]].rename(columns={"score": "judge"})).to_csv("answers.csv", index=False)
    rates = {"labelled_error_rate": [0.1, 0.2], "predicted_error_rate": [0.2, 0.25]}
    pd.DataFrame({"dataset": "d", "system": ["a", "b"], "evaluator": "e", "n": 100} | rates).to_csv(
        "leaderboard.csv", index=False
    )
    for name in ("pages.jsonl", "biographies.jsonl"):
        shutil.copy(ROOT / "data/people" / name, ".")
    with Path("pages.jsonl").open("a", encoding="utf-8") as pages:
        pages.write('{"title": "Rain", "text": "Rain is water. It falls."}\n')
    Path("responses.jsonl").write_text('{"topic": "Elena Varga (botanist)", "output": "She was a botanist."}\n')
    turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada was a painter here."}]
    Path("talks.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    claims.to_json("labelled.jsonl", orient="records", lines=True)
    Path("my_metric.py").write_text("def numbers(claim, doc):\n    return 0.5\n\n\nnumbers_agree = numbers\n")
    (judge,) = re.findall(
        r"^```yaml\n# judge.yaml\n(.*?)^```", (ROOT / "docs/guides/judge-in-ci.md").read_text("utf-8"), re.M | re.S
    )
    Path("judge.yaml").write_text(judge + "replicates: 20\n")
    Path("trusted.yaml").write_text(Path("judge.yaml").read_text())
    for name in ("judge-v1", "judge-v2", "a", "b"):
        Path(f"{name}.yaml").write_text("claims: claims.parquet\nevaluators: [unigram, rouge2]\nreplicates: 20\n")
    evaluator = "llm: {model: gpt-4o-mini}" if page.name == "faq.md" else "unigram"
    Path("experiment.yaml").write_text(
        f"claims: answers.csv\nmapping: auto\nevaluators: [{evaluator}]\nreplicates: 20\n"
    )
    if page.name == "faq.md":
        grades = [{"sentence": f"It is {n}.", "context": "It is 3.", "human_grade": n % 5 + 1} for n in range(20)]
        pd.DataFrame(grades).assign(judge=[n / 20 for n in range(20)]).to_csv("answers.csv", index=False)
        facts = {"topic": "Rain", "output": "Rain is water.", "facts": ["Rain is water."]}
        Path("responses.jsonl").write_text(json.dumps(facts) + "\n")
        Path("experiment.yaml").write_text(f"claims: labelled.jsonl\nevaluators: [{evaluator}]\n")
    for name, text in re.findall(r"`([\w.-]+\.csv)`[^`]*^```csv\n(.*?)^```", page.read_text("utf-8"), re.M | re.S):
        Path(name).write_text(text, encoding="utf-8")
    if TOFUEVAL.is_dir():
        shutil.copytree(TOFUEVAL, Path(os.environ["XDG_CACHE_HOME"]) / "factaudit" / "published" / "tofueval")
        shutil.copy(TOFUEVAL / "mediasum_factual_eval_dev.csv", ".")
    for name in ("data", "factaudit", "experiments"):
        Path(name).symlink_to(ROOT / name)


def _answer(body: dict, attempt: int) -> Plan:
    """What the scripted model says: a title where a topic is asked for, facts where facts are, else Yes."""
    text = body["messages"][-1]["content"]
    if "topic" in text.lower() and "True or False" not in text:
        return Plan(text="Elena Varga (botanist)")
    return Plan(
        text="- She was a botanist.\n"
        if "breakdown" in text or "independent facts" in text
        else "True"
        if "True or False" in text
        else "Yes"
    )


def _label_drawn_claims(sample: Path, prefixes: tuple[str, ...], labelled: set[str]) -> None:
    """Keep of the label files what was newly drawn: what people who open the page would have labelled."""
    drawn = set(read_sample(sample).rows["claim_id"]) - labelled
    for path in Path().glob("*.jsonl"):
        if path.name.startswith(prefixes):
            rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
            path.write_text("".join(row for row in rows if json.loads(row)["claim_id"] in drawn), encoding="utf-8")
    labelled |= drawn


def _run_command_line(words: list[str]) -> tuple[int, str]:
    """The exit code of a command and what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            main(words)
        except SystemExit as stop:
            code = stop.code
    return int(code or 0), printed.getvalue()


def run_page(page: Path, folder: Path) -> Iterator[tuple[ShownCommand, int, str]]:
    """Run a page's commands in a folder of their own; each with its exit code and output."""
    environment = {
        "FACTAUDIT_CACHE": str(folder / "cache.sqlite"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        "FACTAUDIT_OFFLINE": "1",
        "AZURE_OPENAI_API_KEY": "scripted",
    }
    with (
        FaultServer(plan=_answer) as server,
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "path", [str(folder), *sys.path]),
        contextlib.chdir(folder),
        contextlib.ExitStack() as stack,
    ):
        stack.callback(sys.modules.pop, "my_metric", None)
        for name in ("FACTSCORE_DB_PATH", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
            os.environ.pop(name, None)
        if page.name != "faq.md":
            os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="scripted")
        make_page_files(page)
        labelled: set[str] = set()
        for command in list_commands(page):
            if any(part in command.line for part in NOT_RUN):
                continue
            words = shlex.split(re.sub(r"https?://[^ ,]*/v1", server.url, command.line), comments=True)[1:]
            for run in _RUNS_BEFORE.get(words[0], ()):
                if not Path(run).exists():
                    code, told = _run_command_line(["run", f"{Path(run).name}.yaml", "--out", run])
                    assert code == 0, told
            code, told = _run_command_line(words)
            yield command, code, told.replace(server.url, "http://127.0.0.1:8000/v1")
            if words[0] == "sample" and not {"--plan", "--split"} & {*words} and code == 0:
                names = ("more",) if "--then" in words else ("labels",)
                _label_drawn_claims(Path(words[words.index("--out") + 1]), names, labelled)
            for part in (2, 3) if "--shard" in words else ():
                other = command.line.replace("1/3", f"{part}/3").replace("verdicts-1", f"verdicts-{part}")
                assert _run_command_line(shlex.split(other, comments=True)[1:])[0] == 0


def shorten_output(told: str, shown: str) -> str:
    """The output as the page shows it: of its lines those that the page does not leave out."""
    lines = [line.rstrip() for line in told.strip("\n").splitlines()]
    shown_lines = shown.splitlines()
    if _LEFT_OUT in shown_lines:
        at = shown_lines.index(_LEFT_OUT)
        n_last = len(shown_lines) - at - 1
        lines = [*lines[:at], _LEFT_OUT, *lines[len(lines) - n_last :]]
    return "\n".join(lines)


def describe_difference(command: ShownCommand, told: str) -> str:
    """What a page shows of a command's output against what it prints: a diff, "" where they are the same."""
    if command.output is None:
        return ""
    now = shorten_output(told, command.output).splitlines()
    return "\n".join(difflib.unified_diff(command.output.splitlines(), now, "shown", "printed", lineterm=""))


def main_script(arguments: list[str]) -> int:
    """Show what differs, or write it."""
    write, names = "--write" in arguments, [one for one in arguments if not one.startswith("--")]
    n_different = 0
    for page in PAGES:
        if (names and page.name not in names) or not any(one.output is not None for one in list_commands(page)):
            continue
        page_lines = page.read_text(encoding="utf-8").splitlines()
        with tempfile.TemporaryDirectory() as folder:
            ran = list(run_page(page, Path(folder)))
        for command, code, told in reversed(ran):
            if difference := describe_difference(command, told):
                n_different += 1
                print(f"{page.relative_to(ROOT)}: {command.line} (exit {code})\n{difference}\n")
                start, end = command.lines
                page_lines[start:end] = shorten_output(told, command.output).splitlines()
        if write:
            page.write_text("\n".join(page_lines) + "\n", encoding="utf-8")
    return 0 if write else int(n_different > 0)


if __name__ == "__main__":
    sys.exit(main_script(sys.argv[1:]))
