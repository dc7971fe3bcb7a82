"""docs/reference.md, made of what the code declares: commands, evaluators, formats.

``make docs`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click

from factaudit.cli.app import cli
from factaudit.cli.output import JSON_FLAG
from factaudit.datasets import FORMATS
from factaudit.evaluators.registry import list_evaluators
from factaudit.files import write_text

_JSON_FORMAT_NOTE = """\
Every command takes `--format json`: standard output is then one JSON document, and what is said
goes to standard error. Its key `schema` names the command. An undefined figure is null. Where the
work fails before there is an outcome, standard output is empty; the exit code is 0 (done), 1 (the
work failed) or 2 (wrong usage) in either format.
"""
#: What the environment may set, beside options and keys of a YAML, which go before it.
_ENVIRONMENT_VARIABLES = {
    "OPENAI_API_KEY": (
        "The key of OpenAI's server, or of that of `OPENAI_BASE_URL`; sent to another one only"
        " where `api_key_env` names it."
    ),
    "OPENAI_BASE_URL": "The server of models, where no `base_url` is given.",
    "OPENAI_ORG_ID": "Sent as the header `OpenAI-Organization`.",
    "OPENAI_PROJECT_ID": "Sent as the header `OpenAI-Project`.",
    "FACTAUDIT_CACHE": "The file of replies (no folder); by default `.cache/factaudit/llm.sqlite`.",
    "FACTAUDIT_MAX_UNPACKED_MB": (
        "Megabytes that a compressed file may unpack to (500); a line may have an eighth."
    ),
    "FACTAUDIT_DATA": (
        "The folder of [published data](data.md): searched first, and fetched into; by default in"
        " the user's cache folder."
    ),
    "FACTAUDIT_DATA_URL": (
        "A mirror of published data, in place of `https://raw.githubusercontent.com`."
    ),
    "FACTAUDIT_OFFLINE": "Fetch nothing, as `--offline`: anything but 0.",
    "FACTAUDIT_WIKIPEDIA_API": (
        "A MediaWiki's API, in place of `https://en.wikipedia.org/w/api.php`."
    ),
    "FACTSCORE_DB_PATH": "The knowledge source of `factscore` without `--knowledge`.",
    "FACTSCORE_CACHE_DIR": (
        "The folder of the original's `enwiki-20230401.db`; by default `.cache/factscore`."
    ),
    "FACTSCORE_DEMONS_PATH": (
        "A JSON file of demonstrations for splitting sentences into facts, in place of our own."
    ),
    "GITHUB_SERVER_URL": "With the next two the workflow's run, which `diff --out FILE.md` links.",
    "GITHUB_REPOSITORY": "See `GITHUB_SERVER_URL`; GitHub Actions sets all three.",
    "GITHUB_RUN_ID": "See `GITHUB_SERVER_URL`; GitHub Actions sets all three.",
    "RAY_ADDRESS": "The cluster of `--on ray`, where no address is given.",
    "OMP_WAIT_POLICY": "How threads of the local model's server wait: `passive` unless you set it.",
}
_LIBRARY_VARIABLES = (
    "Libraries read their own besides: `HF_TOKEN` and `HF_HOME` (Hugging Face), `HTTP_PROXY`,"
    " `HTTPS_PROXY` and `NO_PROXY`."
)


def render_command_reference_page() -> str:
    """The whole page."""
    parts = [
        "# Reference\n",
        "<!-- Made by `make docs` from the declarations. -->\n",
        "The audits are on [a page of their own](audits.md).\n",
        "## Commands\n",
        _JSON_FORMAT_NOTE,
        *_render_command_sections(cli),
        "## Evaluators\n",
        "| name | what it does | needs | example |\n|---|---|---|---|",
        *(
            _render_markdown_row(f"`{e.name}`", e.summary, e.needs, f"`{e.example or e.name}`")
            for e in list_evaluators().values()
        ),
        "\n## Formats that are converted\n",
        *(_render_reference_of_format(name) for name in FORMATS),
        "\n## Environment variables\n",
        "Options and keys of a YAML go before them.\n",
        "| variable | |\n|---|---|",
        *(_render_markdown_row(f"`{name}`", text) for name, text in _ENVIRONMENT_VARIABLES.items()),
        f"\n{_LIBRARY_VARIABLES}",
    ]
    return "\n".join(parts) + "\n"


def _render_command_sections(group: click.Group, *parents: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _render_command_sections(command, name)
            continue
        text = cleandoc((command.help or "").replace("\b", ""))
        given = [
            one.metavar or str(one.name).upper()
            for one in command.params
            if isinstance(one, click.Argument)
        ]
        yield f"### `{' '.join(['factaudit', *parents, name, *given])}`\n\n{text}\n"
        options = [
            one for one in command.params if isinstance(one, click.Option) and one.name != JSON_FLAG
        ]
        options = [one for one in options if not one.hidden]
        if options:
            yield "| option | value | default | |\n|---|---|---|---|"
            yield from (_render_command_option_row(one) for one in options)
            yield ""


def _render_command_option_row(option: click.Option) -> str:
    """One row: names, what may stand after them, the default and the help, which may have the
    default in words."""
    help_text, _, default = (option.help or "").partition("[default: ")
    if isinstance(option.default, str | int | float | Path) and not isinstance(
        option.default, bool
    ):
        default = str(option.default)
    if option.is_flag:
        value = ""
    elif isinstance(option.type, click.Choice):
        value = ", ".join(f"`{choice}`" for choice in option.type.choices)
    else:
        value = f"`{option.metavar or option.type.name.removesuffix(' range').upper()}`"
        if isinstance(option.type, click.IntRange | click.FloatRange):
            value += _describe_command_option_range(option.type)
    value += "; may be repeated" if option.multiple else ""
    needed = "required" if option.required else default.rstrip().removesuffix("]")
    return _render_markdown_row(
        f"`{', '.join((*option.opts, *option.secondary_opts))}`", value, needed, help_text.strip()
    )


def _describe_command_option_range(number_type: click.IntRange | click.FloatRange) -> str:
    low, high = number_type.min, number_type.max
    above = "" if low is None else f" {'above' if number_type.min_open else 'from'} {low:,}"
    below = "" if high is None else f" {'below' if number_type.max_open else 'to'} {high:,}"
    return above + below


def _render_reference_of_format(format_name: str) -> str:
    one = FORMATS[format_name]
    lines = [f"### `{format_name}`\n\n{one.summary}.\n\n```\n{one.example}\n```\n"]
    if one.options:
        lines += [
            "| `--option` | |\n|---|---|",
            *(_render_markdown_row(f"`{key}`", text) for key, text in one.options.items()),
            "",
        ]
    return "\n".join(lines)


def _render_markdown_row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), render_command_reference_page())
