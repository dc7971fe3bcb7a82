"""Replies of batch APIs (OpenAI, Anthropic, Gemini): a line has a request's id, the model, and what it replied."""

from __future__ import annotations

from typing import Any

import pandas as pd

#: Where a line, flattened, has the request's id, the model's name and its reply.
_IDS = ("custom_id", "key")
_MODELS = ("response.body.model", "result.message.model", "response.modelVersion")
_REPLIES = (
    "response.body.choices.message.content",
    "response.body.output.content.text",
    "result.message.content.text",
    "response.candidates.content.parts.text",
)
#: Of models that think aloud a list, in which a message is the reply.
_REPLY_LISTS = ("response.body.output", "result.message.content")


def name_batch_replies_by_model(table: pd.DataFrame) -> pd.DataFrame:
    """The ids of a table of batch replies with a column for each model, of what it replied; another table as it is.

    A reply that is JSON has a column for each key (``gpt-4o.verdict``).
    """
    key, model = (next((name for name in names if name in table), None) for names in (_IDS, _MODELS))
    if key is None or model is None:
        return table
    replies = {
        name.removeprefix(path): table[name]
        for path in _REPLIES
        for name in map(str, table.columns)
        if name == path or name.startswith(f"{path}.")
    }
    for path in [one for one in _REPLY_LISTS if one in table]:
        replies[""] = table[path].map(_find_message_text)
    models = table[model]
    columns = {
        f"{name}{end}": values.where(models == name, None)
        for name in models.dropna().unique()
        for end, values in replies.items()
    }
    return pd.DataFrame({key: table[key], **columns}) if columns else table


def _find_message_text(items: Any) -> Any:
    """The text of the last message of a list, past what the model thought."""
    messages = [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []
    texts = (one.get("text") or _find_message_text(one.get("content")) for one in reversed(messages))
    return next((text for text in texts if text), None)
