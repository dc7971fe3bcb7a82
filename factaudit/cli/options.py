"""What do the verbs share? How groups list them, how their help ends, and options that several of
them take."""

from __future__ import annotations

import functools
import inspect
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli.output import ARGUMENTS_KEY, ColumnOption, Verb
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError, suggest_known_name
from factaudit.files import check_no_pipe

if TYPE_CHECKING:
    from factaudit.tables.questions import AmbiguousReadingError, PossibleReading


class _CommandFilePathType(click.Path):
    """A path that is not a pipe; reading a pipe would wait forever."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = Path(str(super().convert(value, param, ctx)))
        check_no_pipe(path)
        return path


PATH_TYPE: click.ParamType = _CommandFilePathType(path_type=Path)

#: A larger number would take hours and change no digit that is shown
#: (`factaudit.experiment.folder.MAX_REPLICATES`).
REPLICATES_TYPE = click.IntRange(0, 1_000_000)

RUN_FOLDER_OPTION = click.option("--out", type=PATH_TYPE, required=True, help="The run folder.")
OVERWRITE_OPTION = click.option(
    "--overwrite",
    is_flag=True,
    help="Replace a run in this folder that was made from other inputs or settings.",
)
SETTINGS_OPTION = click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Override a key of the experiment YAML.",
)
DRY_RUN_OPTION = click.option(
    "--dry-run",
    is_flag=True,
    help=(
        "Only say how many calls to language models there will be at most, and what they will cost"
        " if that is known. Nothing is sent."
    ),
)


def _apply_offline_option(
    context: click.Context, parameter: click.Parameter, offline: bool
) -> None:
    """With ``--offline``, fetch nothing during this command. Another command of the same process
    may still fetch."""
    from factaudit.publications.fetching import OFFLINE_VARIABLE

    before = os.environ.get(OFFLINE_VARIABLE)
    if offline:
        os.environ[OFFLINE_VARIABLE] = "1"
        context.call_on_close(lambda: os.environ.update({OFFLINE_VARIABLE: before or "0"}))


OFFLINE_OPTION = click.option(
    "--offline",
    is_flag=True,
    expose_value=False,
    callback=_apply_offline_option,
    help="Download nothing; say what is missing instead.",
)
SPLIT_OPTION = click.option(
    "--split",
    metavar="NAME",
    help="Use only the claims of this split, for example train, dev or test.",
)
SEED_OPTION = click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="The seed for all random draws.",
)
LEVEL_OPTION = click.option(
    "--level",
    type=click.Choice(["claim", "response"]),
    default="claim",
    show_default=True,
    help=(
        "The unit of the rates: single claims, or whole responses. A response is an error if one of"
        " its claims is."
    ),
)
LABEL_RULE_HELP = (
    "How the labels of several annotators become one label: majority, any_unattributable (0 if"
    " anybody says 0), all_attributable (1 only if all say 1 and nobody is undecided), or the name"
    " of the annotator whose labels to use."
)
LABEL_RULE_OPTION = click.option(
    "--label-rule",
    "rule",
    default="majority",
    show_default=True,
    metavar="RULE",
    help=LABEL_RULE_HELP,
)
SAMPLE_OPTION = click.option(
    "--sample",
    type=PATH_TYPE,
    help=(
        "The sample that `factaudit sample` wrote for these labels. Without it, the labelled claims"
        " are treated as a random sample."
    ),
)
CLAIMS_ARGUMENT = click.argument("claims", type=PATH_TYPE)
VERDICTS_ARGUMENT = click.argument("verdicts", type=PATH_TYPE, nargs=-1)
MAIN_EVALUATOR_OPTION = click.option(
    "--main",
    metavar="EVALUATOR",
    help=(
        "The main evaluator: its scores count most for the sample and the estimates.  [default: the"
        " first in the file]"
    ),
)
STRATA_OPTION = click.option(
    "--strata",
    multiple=True,
    metavar="COLUMN",
    help=(
        "A column whose values divide the claims into groups (strata) with different error rates."
        " Can be repeated."
    ),
)
LABEL_FILES_OPTION = click.option(
    "--label-file",
    "label_files",
    type=PATH_TYPE,
    multiple=True,
    help="A file with human labels, for example one that the label page saved. Can be repeated.",
)


def add_mapping_options(command_function: Any) -> Any:
    """Add the options that say how to read files whose columns have other names; the verb receives
    them as ``mapping``.

    A verb whose parameter ``evaluators`` means something else, because it judges, keeps its own
    ``--evaluator``. If files can be read in two ways, the user is asked and the verb runs again
    with the answer; without a terminal it fails and names the commands that would work.
    """
    has_own_evaluators = "evaluators" in inspect.signature(command_function).parameters
    wanted = [row for row in _MAPPING_OPTIONS if row[0] != "evaluator" or not has_own_evaluators]

    @functools.wraps(command_function)
    def with_mapping(**given: Any) -> Any:
        from factaudit.tables.mapping_options import parse_column_mapping_options
        from factaudit.tables.questions import AmbiguousReadingError, merge_mapping_data

        settings = {name: given.pop(name) for name, *_ in wanted}
        mapping = parse_column_mapping_options(**settings)
        while True:
            try:
                return command_function(mapping=mapping, **given)
            except AmbiguousReadingError as error:
                if not (sys.stdin.isatty() and sys.stdout.isatty()):
                    raise UsageError(
                        error.format_message(_format_command_with_chosen_reading)
                    ) from None
                data = merge_mapping_data(
                    mapping.model_dump(exclude_defaults=True, mode="json"), _ask_user(error)
                )
                mapping = type(mapping).from_source(data)

    for name, metavar, is_multiple, text in reversed(wanted):
        option = f"--{name.replace('_', '-')}"
        decorate = click.option(
            option, cls=ColumnOption, metavar=metavar, multiple=is_multiple, help=text
        )
        with_mapping = decorate(with_mapping)
    return with_mapping


def _format_command_with_chosen_reading(reading: PossibleReading) -> str:
    """The current command line, extended by the options that settle its question."""
    context = click.get_current_context()
    verb = context.command_path.partition(" ")[2]
    typed = context.meta[ARGUMENTS_KEY]
    pairs = [reading.options[at : at + 2] for at in range(0, len(reading.options), 2)]
    known = [list(typed[at : at + 2]) for at in range(len(typed))]
    more = [part for pair in pairs if pair not in known for part in pair]
    return shlex.join(["factaudit", *verb.split(), *typed, *more])


def _ask_user(error: AmbiguousReadingError) -> dict[str, Any]:
    """The user's answer to each question, as a part of a mapping."""
    from factaudit.tables.questions import PossibleReading, merge_mapping_data

    print_line(error.format_questions())
    said: dict[str, Any] = {}
    for question in error.questions:
        if len(error.questions) > 1:
            print_line(question.text)
        for number, answer in enumerate(question.answers, start=1):
            print_line(f"  {number}  {shlex.join(PossibleReading(answer).options)}")
        chosen = click.prompt("which", type=click.IntRange(1, len(question.answers)))
        said = merge_mapping_data(said, question.answers[chosen - 1])
    return said


#: How the user's columns are read: the parameter, the placeholder for its value, whether it can be
#: repeated, and its help.
_MAPPING_OPTIONS = (
    ("label", "COLUMN", False, "The column with the human labels."),
    (
        "evaluator",
        "COLUMN",
        True,
        (
            "A column with the scores or verdicts of an evaluator, or the name of an evaluator in"
            " the verdicts file. Can be repeated."
        ),
    ),
    ("claim", "COLUMN", False, "The column with the claims."),
    ("doc", "COLUMN", False, "The column with the documents that the claims are checked against."),
    ("system", "COLUMN", False, "The column that says which system wrote the claim."),
    ("response", "COLUMN", False, "The column with the ids of whole responses."),
    ("id", "COLUMN", False, "The column with the ids of the claims."),
    ("dataset", "COLUMN", False, "The column with the names of the data sets."),
    (
        "people",
        "COLUMN",
        True,
        "A column with the labels of one annotator. Repeat it for several people.",
    ),
    ("ignore", "COLUMN", True, "A column to ignore. Can be repeated."),
    (
        "labels",
        "WORD=1,WORD=0",
        True,
        "Which label words mean supported (1) and unsupported (0), e.g. good=1,bad=0.",
    ),
    (
        "scale",
        "NAME=LOW:HIGH",
        True,
        "The scale of an evaluator's scores, e.g. gpt4_score=1:5. NAME=logit means log-odds.",
    ),
    (
        "high_is_error",
        "NAME",
        True,
        "An evaluator or column for which 1, or a high score, means an error.",
    ),
    (
        "threshold",
        "NAME=NUMBER",
        True,
        (
            "Scores above this number mean supported, e.g. gpt4_score=3.5. For a label column,"
            " grades above this number mean supported.  [default: the middle of the scale]"
        ),
    ),
    ("sheet", "TEXT", False, "The sheet of an Excel file."),
    (
        "columns",
        "FILE|FIELD=COLUMN",
        True,
        (
            "A mapping that `inspect --write` wrote, or FIELD=COLUMN for a field that has no option"
            " of its own, e.g. split=fold."
        ),
    ),
)


class CommandGroup(click.Group):
    """Commands under headings, each a `Verb`, with a hint for a misspelt command."""

    command_class = Verb

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.headings: dict[str, list[str]] = {}

    def add_section(self, heading: str, commands: Sequence[click.Command]) -> None:
        """Add commands that the help lists under a heading."""
        self.headings[heading] = [str(one.name) for one in commands]
        for one in commands:
            self.add_command(one)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in self.headings.items():
            with formatter.section(heading):
                formatter.write_dl(
                    [(name, self.commands[name].get_short_help_str(80)) for name in names]
                )

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            ctx.fail(f"no command {args[0]!r}{suggest_known_name(args[0], list(self.commands))}")
        return super().resolve_command(ctx, args)


def check_out_is_given(out: Path | None, option: str = "--out") -> Path:
    """Raise `UsageError` if a verb that writes was not told where to write. A dry run needs no
    place."""
    if out is None:
        raise UsageError(f"expected {option}: the place to write to")
    return out
