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
    doubtful = verdicts[verdicts["status"] != "ok"]  # mostly few: to group all would copy millions of rows
    raw = doubtful["raw"].fillna("").astype(str)
    has_failed, is_unparsed = doubtful["status"] == "error", doubtful["status"] == "unparsed"
    # Several samples' replies are in one text.
    is_lasting, is_cut = raw.str.contains(_LASTING_ERROR), raw.str.contains(CUT_OFF_PREFIX, regex=False)
    is_guess = doubtful["prediction"].notna()
    lines = []
    for name, n in verdicts["evaluator"].value_counts(sort=False).items():
        own = doubtful["evaluator"] == name
        again = ": run the same command again to retry them" if name in judged_now else ""
        for failed, ending in ((has_failed & is_lasting, " and would fail again"), (has_failed & ~is_lasting, again)):
            if count := int((own & failed).sum()):
                why = cut_text(put_on_one_line(raw[own & failed].mode().iloc[0]), 3 * _SHOWN_CHARACTERS)
                lines.append(f"{name}: {count:,} of {n:,} calls failed{f' ({why})' if why else ''}{ending}")
        if count := int((own & is_unparsed & is_cut).sum()):
            lines.append(
                f"{name}: {count:,} of {n:,} replies were cut off and are unscored: raise max_tokens"
                " (max_completion_tokens for a model that reasons), or ask for less reasoning"
            )
        unread = own & is_unparsed & ~is_cut & ~is_guess
        if count := int(unread.sum()):
            such = [f", such as {_quote_reply(text)}" for text in raw[unread].head(1) if text]
            lines.append(f"{name}: {count:,} of {n:,} replies hold no answer and are unscored{''.join(such)}")
        if (count := int((own & is_guess).sum())) > MAX_SILENT_GUESS_SHARE * n:
            lines.append(
                f"{name}: {count:,} of {n:,} predictions are guesses: the reply does not clearly state an"
                " answer; they are within the bounds, and with parser: strict they are unscored"
            )
    return lines


def _quote_reply(text: str) -> str:
    """The beginning of a reply; of one in JSON also its fields, of which the template has to name one."""
    fields = ", ".join(list_json_fields(text))
    hint = f". It is JSON: let the template say `json: FIELD` with one of its fields ({fields})" if fields else ""
    return repr(cut_text(put_on_one_line(text), _SHOWN_CHARACTERS)) + hint
