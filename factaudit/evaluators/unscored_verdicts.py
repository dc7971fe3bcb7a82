"""Which verdicts are missing, or were guessed? What a user is told of them."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from factaudit.text.display_text import cut_text, format_count, put_on_one_line
from factaudit.text.stated_verdicts import list_json_fields

#: Guesses up to this share are told in the report only.
MAX_SILENT_GUESS_SHARE = 0.01
#: So much of a reply or a reason is shown in a line.
_SHOWN_CHARACTERS = 150
#: How the reason begins of a request that its server rejects (HTTP 400, say), and would again; and
#: what says that a failure may pass: of all others only the same can come when asked again.
_REJECTED_PREFIX, _MAY_PASS = "HTTP 4", "gave up after"
_STATUS_WORDS = {
    "error": "failed",
    "unparsed": "without an answer that can be read",
    "refused": "refused",
    "skipped": "skipped",
}


def format_unscored_verdicts(
    verdicts: pd.DataFrame, judged_now: Collection[str] = (), notes: Collection[str] = ()
) -> list[str]:
    """A line for each evaluator with verdicts that are unscored, by status, each with the most
    frequent reason; or with many guesses.

    judged_now: the evaluators that were asked in this run, and will be asked again by the same
    command. notes: what the user is told beside these lines: such a reason is not said again.
    """
    lines = []
    for name, own in verdicts.groupby("evaluator", sort=False):
        unscored = own[own["prediction"].isna()]
        parts, hint = [], ""
        for status, words in _STATUS_WORDS.items():
            raw = unscored["raw"][unscored["status"] == status].fillna("").astype(str)
            if raw.empty:
                continue
            said = raw.mode().iloc[0]
            shown = cut_text(put_on_one_line(said), _SHOWN_CHARACTERS)
            often = "most often " if raw.nunique() > 1 else ""
            is_told = any(note in said for note in notes)  # a longer reason may hold it
            why = f" ({often}{shown!r})" if shown and not is_told else ""
            parts.append(f"{len(raw):,} {words}{why}")
            if status == "unparsed" and (fields := ", ".join(list_json_fields(said))):
                hint += (
                    " The reply is JSON: let the template say `json: FIELD` with one of its fields"
                    f" ({fields})."
                )
            if status == "error" and name in judged_now:
                if n_rejected := int(raw.str.startswith(_REJECTED_PREFIX).sum()):
                    hint += (
                        f" The server rejects {format_count(n_rejected, 'request')} and would do so"
                        " again: change what its message names (the model, params or the template)."
                    )
                if raw.str.contains(_MAY_PASS, regex=False).any():
                    hint += " To retry what failed, run the same command again."
        if parts:
            n_unscored = f"{len(unscored):,} of {len(own):,} verdicts are unscored"
            lines.append(f"{name}: {n_unscored}: {', '.join(parts)}.{hint}")
        n_guesses = int((own["status"] != "ok").sum()) - len(unscored)
        if n_guesses > MAX_SILENT_GUESS_SHARE * len(own):
            lines.append(
                f"{name}: {n_guesses:,} predictions are guesses, because the reply does not clearly"
                " state an answer; they are within the bounds, and with parser: strict they are"
                " unscored"
            )
    return lines
