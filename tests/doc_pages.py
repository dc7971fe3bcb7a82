"""Do the commands of our pages print what the pages show?

The pages are those of the documentation and those of ``tests/approved``, which hold whole outputs
that a reviewer reads when a change changes words. Shown output stands in a block of ``console``
after ``$ command``; a line ``[...]`` stands for lines that are left out. In ``tests/approved`` a
block such as ``csv five.csv`` is a file that the commands read, ``$ text FILE`` shows the words of
a file that was written, and a command that fails ends with its exit code.

``python tests/doc_pages.py`` shows what differs, of all pages or of those that are named. ``make
approve`` shows it, asks, and writes it into the pages.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import html
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
from factaudit import read_sample
from factaudit.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    [
        ROOT / "README.md",
        *(
            page
            for page in ROOT.rglob("docs/**/*.md")
            if page.name not in ("audits.md", "commands.md", "data.md")
        ),
        ROOT / "experiments/README.md",
    ]
)
#: What cannot run here, by what the command line holds; its words are checked all the same.
NOT_RUN = {"factaudit run demo": "tests/test_shipped_experiments.py runs it"}
#: Pages of outputs that are approved as a whole.
APPROVED_PAGES = sorted((ROOT / "tests/approved").glob("*.md"))
_LEFT_OUT = "[...]"


@dataclass(frozen=True)
class ShownCommand:
    """A command of a page; ``output``: what is shown of its output, and ``lines``: where; None
    where nothing is."""

    line: str
    output: str | None = None
    lines: tuple[int, int] | None = None


def list_commands(page: Path) -> list[ShownCommand]:
    """The lines of a page's code blocks that begin with ``factaudit``, steps of a workflow among
    them."""
    commands = []
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
            if text.startswith(("$ factaudit ", "$ text ")):
                command, start = text[2:], at + 1
        elif language not in (None, "python"):
            # What the shell does with the output is no argument.
            found = re.match(r"(?:\s*- run: )?(factaudit .+?)(?: >> .+)?$", text)
            if found:
                commands.append(ShownCommand(found[1].strip()))
    return commands


@functools.cache
def judge_minibench() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims and verdicts of the pages' commands."""
    claims = factaudit.read_claims(ROOT / "data/minibench/claims.jsonl.gz")
    systems = [f"s{number % 3}" for number in range(len(claims))]
    claims = claims.assign(dataset="minibench", system=systems, response_id=None)
    return claims, factaudit.judge(claims, ["rouge2", "unigram"])


def make_page_files() -> None:
    """Write into the working folder each file that the pages' commands read."""
    claims, verdicts = judge_minibench()
    claims.to_parquet("claims.parquet")
    for name in ("claims.jsonl", "labelled.jsonl"):
        claims.to_json(name, orient="records", lines=True)
    verdicts.to_parquet("verdicts.parquet")
    labels = claims[["claim_id", "label"]].dropna()
    for name in ("ann", "ben"):
        labels.assign(annotator=name).to_json(f"labels-{name}.jsonl", orient="records", lines=True)
    for name in ("pages.jsonl", "biographies.jsonl"):
        shutil.copy(ROOT / "data/people" / name, ".")
    Path("responses.jsonl").write_text(
        '{"topic": "Elena Varga (botanist)", "output": "She was a botanist."}\n'
    )
    Path("my_metric.py").write_text("def numbers_agree(claim, doc):\n    return 0.5\n")
    page = (ROOT / "docs/guides/judge-in-ci.md").read_text(encoding="utf-8")
    (judge,) = re.findall(r"^```yaml\n# judge.yaml\n(.*?)^```", page, re.M | re.S)
    Path("judge.yaml").write_text(judge + "replicates: 20\n")
    for name in ("data", "factaudit", "experiments"):
        Path(name).symlink_to(ROOT / name)


def write_shown_files(page: Path) -> None:
    """Write the files that a page of ``tests/approved`` shows, such as a block that begins with
    ``csv five.csv``."""
    for name, text in re.findall(
        r"^```\w+ (\S+)\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S
    ):
        Path(name).write_text(text, encoding="utf-8")


def read_words(path: Path) -> str:
    """What a file says: of a page of HTML the text, one line for each paragraph, heading or row of
    a table."""
    if not path.exists():
        return "no such file"
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".html":
        return text.replace("```", "~~~")
    text = re.sub(r"<(style|script|svg)\b.*?</\1>", "", text, flags=re.S)
    text = re.sub(r"\s+", " ", text)
    text = re.sub(r"</(p|h\d|tr|li|summary|figcaption|div|caption)>", "\n", text)
    text = html.unescape(
        re.sub(r"</?(?:a|b|code|em|span|strong)\b[^>]*>", "", text).replace("<", " <")
    )
    text = re.sub(r"<[^>]+>", "", text)
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _answer(body: dict, attempt: int) -> Plan:
    """What the scripted model says: a title where a topic is asked for, facts where facts are, else
    Yes."""
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


def _label_drawn_claims(sample: Path) -> None:
    """Keep of the labels those of claims that were drawn: what people who open the page would have
    labelled."""
    drawn = set(read_sample(sample).rows["claim_id"])
    for path in Path().glob("labels-*.jsonl"):
        rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text(
            "".join(row for row in rows if json.loads(row)["claim_id"] in drawn), encoding="utf-8"
        )


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
    }
    with (
        FaultServer(plan=_answer) as server,
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "path", [str(folder), *sys.path]),
        contextlib.chdir(folder),
        contextlib.ExitStack() as stack,
    ):
        stack.callback(sys.modules.pop, "my_metric", None)
        os.environ.pop("FACTSCORE_DB_PATH", None)
        os.environ.update(OPENAI_BASE_URL=server.url, OPENAI_API_KEY="scripted")
        make_page_files()
        if page in APPROVED_PAGES:
            write_shown_files(page)
        for command in list_commands(page):
            if any(part in command.line for part in NOT_RUN):
                continue
            words = shlex.split(
                re.sub(r"https?://[^ ,]*/v1", server.url, command.line), comments=True
            )[1:]
            if command.line.startswith("text "):
                yield command, 0, read_words(Path(words[0])).replace(f"{folder.resolve()}/", "")
                continue
            if words[0] == "diff" and page not in APPROVED_PAGES:
                code, told = _run_command_line(["run", "judge.yaml", "--out", "runs/trusted"])
                assert code == 0, told
            code, told = _run_command_line(words)
            if code and page in APPROVED_PAGES:
                told += f"\nexit code {code}"
            yield (
                command,
                code,
                told.replace(server.url, "http://127.0.0.1:8000/v1").replace(
                    f"{folder.resolve()}/", ""
                ),
            )
            if words[0] == "sample" and code == 0:
                _label_drawn_claims(Path(words[words.index("--out") + 1]))


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
    """What a page shows of a command's output against what it prints: a diff, "" where they are the
    same."""
    if command.output is None:
        return ""
    now = shorten_output(told, command.output).splitlines()
    return "\n".join(
        difflib.unified_diff(command.output.splitlines(), now, "shown", "printed", lineterm="")
    )


def main_script(arguments: list[str]) -> int:
    """Show what differs; with ``--write`` ask, where there is somebody to ask, and write it."""
    names = [one for one in arguments if not one.startswith("--")]
    changed = {}
    for page in [*PAGES, *APPROVED_PAGES]:
        if (names and page.name not in names) or not any(
            one.output is not None for one in list_commands(page)
        ):
            continue
        page_lines = page.read_text(encoding="utf-8").splitlines()
        with tempfile.TemporaryDirectory() as folder:
            ran = list(run_page(page, Path(folder)))
        for command, code, told in reversed(ran):
            if difference := describe_difference(command, told):
                print(f"{page.relative_to(ROOT)}: {command.line} (exit {code})\n{difference}\n")
                start, end = command.lines
                page_lines[start:end] = shorten_output(told, command.output).splitlines()
                changed[page] = page_lines
    if "--write" not in arguments or not changed:
        return int(bool(changed))
    if sys.stdin.isatty() and input("Write this into the pages? [y/N] ").strip().lower() != "y":
        return 1
    for page, page_lines in changed.items():
        page.write_text("\n".join(page_lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main_script(sys.argv[1:]))
