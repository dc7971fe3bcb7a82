"""Which verdicts could not be read, or were guessed? What a user is told of them."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from factaudit.llm.reply import CUT_OFF_PREFIX
from factaudit.text.display_text import cut_text, put_on_one_line
from factaudit.text.stated_verdicts import list_json_fields

#: Guesses up to this share are told in the report only.
MAX_SILENT_GUESS_SHARE = 0.01
#: So much of a reply is shown in a line.
_SHOWN_CHARACTERS = 100
#: How the errors begin that the same call would meet again: what the server refuses, and a prompt that it cut. Several
#: samples' replies are in one text.
_LASTING_ERROR = r"""^(?:\["|the sentence was not decomposed: )?(?:HTTP 4|the server cut the prompt)"""


def format_unscored_verdicts(verdicts: pd.DataFrame, judged_now: Collection[str] = ()) -> list[str]:
    """A line for each evaluator and each of: calls that failed, replies that were cut off, others that could not be
    read, guesses.

    judged_now: the evaluators that were asked in this run, and will be asked again by the same command.
    """
    lines = []
    doubtful = verdicts[verdicts["status"] != "ok"]  # mostly few: to group all would copy millions of rows
    for name, n in verdicts["evaluator"].value_counts(sort=False).items():
        table = doubtful[doubtful["evaluator"] == name]
        lines += _format_failed_calls(str(name), int(n), table, name in judged_now)
        unparsed = table["status"] == "unparsed"
        # Several samples' replies are in one text.
        cut = unparsed & table["raw"].fillna("").astype(str).str.contains(CUT_OFF_PREFIX, regex=False)
        guessed = table["prediction"].notna()
        other = unparsed & ~cut & ~guessed
        if cut.any():
            lines.append(
                f"{name}: {cut.sum():,} of {n:,} replies were cut off and are unscored: raise max_tokens"
                " (max_completion_tokens for a model that reasons), or ask for less reasoning"
            )
        if other.any():
            first = table.loc[other, "raw"].dropna().astype(str).head(1)
            shown = "".join(f", such as {_quote_reply(text)}{_suggest_json_field(text)}" for text in first)
            lines.append(f"{name}: {other.sum():,} of {n:,} replies hold no answer and are unscored{shown}")
        if guessed.sum() > MAX_SILENT_GUESS_SHARE * n:
            lines.append(
                f"{name}: {guessed.sum():,} of {n:,} predictions are guesses: the reply does not clearly state an"
                " answer; they are within the bounds, and with parser: strict they are unscored"
            )
    return lines


def _format_failed_calls(name: str, n: int, table: pd.DataFrame, is_asked_again: bool) -> list[str]:
    told = table.loc[table["status"] == "error", "raw"].fillna("").astype(str)
    is_lasting = told.str.contains(_LASTING_ERROR)
    again = ": run the same command again to retry them" if is_asked_again else ""
    lines = []
    for part, ending in ((told[is_lasting], " and would fail again"), (told[~is_lasting], again)):
        if len(part):
            first = cut_text(put_on_one_line(part.mode().iloc[0]), 3 * _SHOWN_CHARACTERS)
            why = f" ({first})" if first else ""
            lines.append(f"{name}: {len(part):,} of {n:,} calls failed{why}{ending}")
    return lines


def _quote_reply(text: str) -> str:
    return repr(cut_text(put_on_one_line(text), _SHOWN_CHARACTERS))


def _suggest_json_field(reply: str) -> str:
    """For a reply in JSON: its fields, of which the template has to name one."""
    fields = list_json_fields(reply)
    named = ", ".join(fields)
    return f". It is JSON: let the template say `json: FIELD` with one of its fields ({named})" if fields else ""
