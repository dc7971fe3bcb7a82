"""A folder of small valid inputs for every verb (`inputs/`), and the commands that read them
(`golden/commands.yaml`)."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import yaml

HERE = Path(__file__).parent
#: Verb and arguments, and the files that it reads.
COMMANDS = [
    (one["command"], tuple(one["reads"]))
    for one in yaml.safe_load((HERE / "golden/commands.yaml").read_text(encoding="utf-8"))
]
#: Those that write, of the conversions one: all are written alike.
WRITING_COMMANDS = [
    command for command, _ in COMMANDS if "--out" in command or command.startswith("export")
]


def write_inputs(folder: Path) -> None:
    """Write the files. The working directory must be the folder: runs are made with the verbs
    themselves."""
    from conftest import run_command

    from factaudit import judge, read_claims
    from factaudit.llm.chat_types import ChatReply
    from factaudit.llm.store import ReplyStore

    shutil.copytree(HERE / "inputs", folder, dirs_exist_ok=True)
    for name in ("inspect.json", "phoenix.csv", "promptfoo.json"):
        shutil.copy(HERE / "logs" / name, folder)
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
