"""The commands that the pages show work, one after the other as they stand, and print what the pages show.

A model is the scripted server of tests/llm_server.py. ``python tests/doc_pages.py --write`` writes shown output anew.
"""

from __future__ import annotations

import re
import shlex

import pytest
from doc_pages import NOT_RUN, PAGES, ROOT, describe_difference, list_commands, run_page

from factaudit.cli import cli

COMMANDS = {(name,): command for name, command in cli.commands.items()}
RUN_PAGES = [
    page for page in PAGES if any(not any(part in one.line for part in NOT_RUN) for one in list_commands(page))
]


def check_command_is_understood(line: str) -> None:
    """Each option is there, and takes what is given to it."""
    words = shlex.split(line, comments=True)[1:]
    path = next((path for path in COMMANDS if tuple(words[: len(path)]) == path), None)
    if path is None:
        pytest.fail(f"no such command: {line}")
    COMMANDS[path].make_context("factaudit", words[len(path) :])


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_of_a_page_are_understood(page):
    for command in list_commands(page):
        check_command_is_understood(command.line)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_commands_within_the_text_of_a_page_are_understood(page):
    """``factaudit VERB`` alone names a verb; with more words it is a command as one would type it."""
    text = re.sub(r"^```.*?^```|^### .*?$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for line in re.findall(r"`(factaudit [^`]+)`", text):
        words = line.split()[1:]
        if words[0].startswith("-"):
            continue
        assert any(tuple(words[: len(path)]) == path or (words[0],) == path[:1] for path in COMMANDS), line
        if "--" in line and "..." not in line and "…" not in line:
            check_command_is_understood(re.sub(r"\s+", " ", line))


@pytest.mark.parametrize(
    "page",
    # The README's commands are what a newcomer types first; those of the other pages take a minute together.
    [page if page.name == "README.md" else pytest.param(page, marks=pytest.mark.slow) for page in RUN_PAGES],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_commands_of_a_page_work_as_they_stand_and_print_what_it_shows(page, tmp_path):
    for command, code, told in run_page(page, tmp_path):
        assert code == 0, f"{command.line}\n{told}"
        difference = describe_difference(command, told)
        assert not difference, f"{command.line}\n{difference}\nrun: python tests/doc_pages.py --write {page.name}"
