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
#: How the errors begin that the same call would meet again: what the server refuses, and a prompt
#: that it cut. Several samples' replies are in one text.
_LASTING_ERROR = (
    r"""^(?:\["|the sentence was not decomposed: )?(?:HTTP 4|the server cut the prompt)"""
)


def format_unscored_verdicts(verdicts: pd.DataFrame, judged_now: Collection[str] = ()) -> list[str]:
    """A line for each evaluator and each of: calls that failed, replies that were cut off, others
    that could not be read, guesses.

    judged_now: the evaluators that were asked in this run, and will be asked again by the same
    command.
    """
    n_verdicts = verdicts["evaluator"].value_counts(sort=False)
    doubtful = verdicts[
        verdicts["status"] != "ok"
    ]  # mostly few: to group all would copy millions of rows
    lines = []
    for name, n in n_verdicts.items():
        own = doubtful[doubtful["evaluator"] == name]
        raw = own["raw"].fillna("").astype(str)
        failed = raw[own["status"] == "error"]
        unparsed = raw[(own["status"] == "unparsed") & own["prediction"].isna()]
        # Several samples' replies are in one text.
        is_lasting, is_cut = (
            failed.str.contains(_LASTING_ERROR),
            unparsed.str.contains(CUT_OFF_PREFIX, regex=False),
        )
        again = ": run the same command again to retry them" if name in judged_now else ""
        for errors, ending in (
            (failed[is_lasting], " and would fail again"),
            (failed[~is_lasting], again),
        ):
            if len(errors):
                why = cut_text(put_on_one_line(errors.mode().iloc[0]), 3 * _SHOWN_CHARACTERS)
                lines.append(
                    f"{name}: {len(errors):,} of {n:,} calls"
                    f" failed{f' ({why})' if why else ''}{ending}"
                )
        if n_cut := int(is_cut.sum()):
            lines.append(
                f"{name}: {n_cut:,} of {n:,} replies were cut off and are unscored: raise"
                " max_tokens (max_completion_tokens for a model that reasons), or ask for less"
                " reasoning"
            )
        if n_unread := len(unparsed) - n_cut:
            such = [f", such as {_quote_reply(text)}" for text in unparsed[~is_cut].head(1) if text]
            lines.append(
                f"{name}: {n_unread:,} of {n:,} replies hold no answer and are"
                f" unscored{''.join(such)}"
            )
        if (n_guesses := int(own["prediction"].notna().sum())) > MAX_SILENT_GUESS_SHARE * n:
            lines.append(
                f"{name}: {n_guesses:,} of {n:,} predictions are guesses: the reply does not"
                " clearly state an answer; they are within the bounds, and with parser: strict"
                " they are unscored"
            )
    return lines


def _quote_reply(text: str) -> str:
    """The beginning of a reply; of one in JSON also its fields, of which the template has to name
    one."""
    fields = ", ".join(list_json_fields(text))
    hint = (
        f". It is JSON: let the template say `json: FIELD` with one of its fields ({fields})"
        if fields
        else ""
    )
    return repr(cut_text(put_on_one_line(text), _SHOWN_CHARACTERS)) + hint
