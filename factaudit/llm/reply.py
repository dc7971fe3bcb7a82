"""What does a reply say? The text, tokens and cost of a chat completion, and which part of the text
is the answer.

Not the answer are the model's thoughts, a tool call, a refusal, or a text that was cut off; and
none is the answer to a prompt of which the server has read only a part.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
from pydantic_core import from_json

from factaudit.llm.chat_types import ChatReply, ChatReplyToken, ChatRequest, check_chat_logprobs
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.store import MALFORMED
from factaudit.text.stated_verdicts import split_answer_from_thoughts

#: How the reason begins that a reply which was cut off is given; what reads verdicts back counts
#: them by it.
CUT_OFF_PREFIX = "[cut off"
#: The names that servers have for the same: the reply reached its limit of tokens.
CUT_OFF_FINISH_REASONS = ("length", "max_tokens", "model_length", "max_output_tokens")

_MARKUP_PATTERN = re.compile(
    r"<\|[^|<>\n]{1,40}\|>|</?(?:answer|response|output|final)>|</?s>", re.IGNORECASE
)
_TOOL_CALL_PATTERN = re.compile(
    r"<tool_call>.*?(?:</tool_call>|\Z)|<function=.*?(?:</function>|\Z)"
    r"|<function_calls>.*?(?:</function_calls>|\Z)"
    r"|<invoke\b.*?(?:</invoke>|\Z)|\[TOOL_CALLS\].*|<\|python_tag\|>.*|<｜tool▁calls▁begin｜>.*"
    r"|\A\s*\{\s*\"(?:name|function|tool)\"\s*:.*\"(?:arguments|parameters|args|input)\"\s*:.*\}\s*\Z",
    re.IGNORECASE | re.DOTALL,
)
_REFUSAL_PATTERN = re.compile(
    r"""\A\W*
    (?:(?:(?:i['’]?m|i\ am|we['’]?re)\s+(?:\w+\s+)?(?:sorry|afraid)|sorry
        |i\s+apologi[sz]e|(?:my\s+)?apologies|unfortunately)
      [\s,.!:–—-]*(?:but\s+|for\s+[^.!?\n]{0,40}[,.]\s*(?:but\s+)?)?(?:that\s+)?)?
    (?:as\s+an?\s+(?:ai|large\s+language\s+model|language\s+model|assistant)[^.!?\n]{0,60}?,?\s*)?
    (?:i|we)(?:['’]m|['’]re|\s+am|\s+are)?\s+
    (?:(?:simply|just|really)\s+)?
    (?:can['’]?t|cannot|can\ not|won['’]?t|will\ not|must\ decline\ to|have\ to\ decline\ to
      |(?:not\ able|unable)\ to|not\ comfortable|do\ not\ feel\ comfortable
      |don['’]t\ feel\ comfortable)\s+(?:\w+\s+){0,3}?
    (?:assist\w*|help\w*|comply\w*|fulfil\w*|provid\w*\ (?:that|this|assistance|an?\ answer)
      |engag\w*|continu\w*|do\ (?:that|this|so)|creat\w*|generat\w*|discuss\w*|complet\w*
      |process\w*|respond\w*|answer\w*\ (?:that|this|your)|break\w*\ (?:down|this|that)
      |with\ (?:that|this))\b""",
    re.IGNORECASE | re.VERBOSE,
)
#: Other servers' names of a reply that a filter took away.
_FILTER_FINISH_REASONS = (
    "content_filter",
    "safety",
    "recitation",
    "prohibited_content",
    "blocklist",
)


def parse_chat_completion(body: str) -> ChatReply | ServerAttemptFailure:
    """The reply in the body of an HTTP 200; a body that is no chat completion is a failure that may
    pass."""
    try:
        data = _parse_completion_body(body)
        choices = data["choices"]
        choice = next((one for one in choices if one.get("index") == 0), choices[0])
        message = choice["message"]
        content, refusal = _join_completion_text(message.get("content")), message.get("refusal")
        finish = choice.get("finish_reason") or "stop"
        usage = data.get("usage") or {}
        tokens = _parse_completion_logprobs(choice.get("logprobs"))
        counts = _parse_completion_token_counts(
            usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0
        )
        model, fingerprint = (
            _parse_model_name(data.get("model")),
            _parse_model_name(data.get("system_fingerprint")),
        )
        if not isinstance(finish, str):
            raise TypeError("finish_reason is not text")
        check_chat_logprobs(tokens or ())
    except (
        ValueError,
        TypeError,
        LookupError,
        AttributeError,
        RecursionError,
        OverflowError,
    ) as error:
        reason = f"not a chat completion ({error!r}): {body[:200]}"
        return ServerAttemptFailure(reason, MALFORMED)
    finish = finish if finish.lower() not in _FILTER_FINISH_REASONS else "content_filter"
    status = "refused" if refusal or finish == "content_filter" else "ok"
    if status == "refused":
        content = refusal if isinstance(refusal, str) and refusal else content
    elif finish.lower() in CUT_OFF_FINISH_REASONS:
        finish = "length"
    text = replace_reply_surrogates(content)
    return ChatReply(status, text, finish, tokens, *counts, model=model, fingerprint=fingerprint)


def _parse_completion_body(body: str) -> Any:
    body = body.removeprefix("\ufeff")
    try:
        return from_json(body)
    except ValueError:  # half a surrogate pair, or what no JSON is
        return json.loads(body)


def _parse_model_name(value: Any) -> str | None:
    return replace_reply_surrogates(value)[:200] if isinstance(value, str) and value else None


def _parse_completion_token_counts(prompt_tokens: Any, completion_tokens: Any) -> tuple[int, int]:
    counts = int(prompt_tokens), int(completion_tokens)
    if not all(0 <= count < 2**63 for count in counts):  # as SQLite holds them
        raise ValueError(f"no numbers of tokens: {counts}")
    return counts


def _join_completion_text(content: Any) -> str:
    """The text of a message; of one in parts (Mistral's, Anthropic's) those that are text, not
    thoughts or calls."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise TypeError(f"content is {type(content).__name__}")
    return "".join(part["text"] for part in content if part.get("type", "text") == "text")


def replace_reply_surrogates(text: str) -> str:
    """Half a surrogate pair, as a reply that was cut off may end in, can be neither stored nor
    printed."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _parse_completion_logprobs(logprobs: Any) -> tuple[ChatReplyToken, ...] | None:
    """The tokens of a choice's log-probabilities; None where there are none, or not in the API's
    shape."""
    try:
        return tuple(
            ChatReplyToken(
                replace_reply_surrogates(item["token"]),
                float(item["logprob"]),
                _merge_logprobs_of_equal_tokens(item.get("top_logprobs") or ()),
            )
            for item in logprobs["content"]
        )
    except (TypeError, ValueError, LookupError, AttributeError):
        return None


def _merge_logprobs_of_equal_tokens(alternatives: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    top: dict[str, float] = {}
    for item in alternatives:
        text, value = replace_reply_surrogates(item["token"]), float(item["logprob"])
        # Two tokens may read the same (bytes that are no text): together they have the sum of both.
        top[text] = float(np.logaddexp(top[text], value)) if text in top else value
    return top


def extract_llm_answer(
    reply: ChatReply, is_whole: Callable[[str], bool] | None = None
) -> ChatReply:
    """The reply with its answer for a text, ready to be parsed.

    Thoughts and markup are left out, of the text and of the tokens. Where no answer is left the
    status says so: ``refused``, or ``unparsed`` for a reply that is empty, that was cut off at its
    limit of tokens or that calls a tool; ``error`` then has the reason and what was replied, and
    the text is empty. A reply that is not ok is returned as it is. ``is_whole`` says of the text of
    a reply that was cut off whether the answer in it is whole all the same.
    """
    if reply.status != "ok":
        return reply
    text, start = split_answer_from_thoughts(reply.text)
    if reply.finish_reason in CUT_OFF_FINISH_REASONS and not (
        is_whole is not None and is_whole(text)
    ):
        return _make_reply_without_answer(reply, "unparsed", _format_cut_off_answer_reason(reply))
    if text.strip() and (without := _TOOL_CALL_PATTERN.sub("", text)) != text:
        text, start = without, len(reply.text)
        if not text.strip():
            return _make_reply_without_answer(reply, "unparsed", "[a tool call, and no answer]")
    text = _MARKUP_PATTERN.sub("", text)
    if not text.strip():
        called = reply.finish_reason in ("tool_calls", "function_call")
        what = (
            "a tool call, and no answer"
            if called
            else "empty: thoughts only"
            if reply.text.strip()
            else "empty"
        )
        return _make_reply_without_answer(reply, "unparsed", f"[{what}]")
    if is_refusal(text):
        return replace(reply, status="refused", text=text.strip())
    if text == reply.text:
        return reply
    return replace(
        reply, text=text.strip(), tokens=_slice_answer_tokens(reply.tokens, reply.text, start)
    )


def is_refusal(text: str) -> bool:
    """Whether a text begins as models do that decline a task; not one that says that something is
    unknown."""
    return len(text) < 2000 and _REFUSAL_PATTERN.match(text) is not None


def _format_cut_off_answer_reason(reply: ChatReply) -> str:
    length = f" after {reply.completion_tokens:,} tokens" if reply.completion_tokens else ""
    return (
        f"{CUT_OFF_PREFIX}{length} (finish_reason: {reply.finish_reason}): raise max_tokens,"
        " or max_completion_tokens for a model that reasons]"
    )


def _make_reply_without_answer(reply: ChatReply, status: str, reason: str) -> ChatReply:
    told = f"{reason}\n{reply.text}" if reply.text.strip() else reason
    return replace(reply, status=status, text="", tokens=None, error=told)


def _slice_answer_tokens(
    tokens: Sequence[ChatReplyToken] | None, text: str, start: int
) -> tuple[ChatReplyToken, ...] | None:
    """The tokens of what follows ``start``; None where the tokens' texts are not the reply's, so
    nobody can tell."""
    if tokens is None or start == 0:
        return None if tokens is None else tuple(tokens)
    ends = list(accumulate(len(token.text) for token in tokens))
    if "".join(token.text for token in tokens) != text:
        return None
    return tuple(tokens[bisect_left(ends, start) + 1 :])


# Has a server read the whole prompt?
# ------------------------------------------------------------
#
# Some cut a long one to their context length and answer HTTP 200 all the same. The only trace is
# the number of prompt tokens that the reply reports. It is compared with the least that any
# tokenizer makes of the prompt: no token spans white space, and in scripts without spaces between
# words a token holds few characters. White space, punctuation and strings without breaks (a hash,
# "=====") count for nothing or for one token. A quarter is taken off for tokenizers that join
# words.

#: No model's context is shorter. A server that reports fewer tokens counts something else: what its
#: cache did not have, or nothing.
_SHORTEST_CONTEXT = 256
_SHARE_OF_TOKENS = 0.75
#: Characters of Chinese, Japanese, Thai, Lao, Burmese or Khmer that a token holds at the most, on
#: average.
_CHARACTERS_PER_TOKEN = 4
_UNSPACED_SCRIPTS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_SPACED_WORD = re.compile(r"(?<!\S)\S*[^\W_]\S*")


def count_least_prompt_tokens(request: ChatRequest) -> int:
    """The least number of tokens that a request's messages can have.

    >>> count_least_prompt_tokens(ChatRequest(({"role": "user", "content": "word " * 1000},)))
    750
    """
    n_tokens = 0.0
    for message in request.messages:
        text = message["content"]
        n_unspaced = len(_UNSPACED_SCRIPTS.findall(text))
        if n_unspaced:
            n_tokens += n_unspaced / _CHARACTERS_PER_TOKEN
            text = _UNSPACED_SCRIPTS.sub(" ", text)
        n_tokens += sum(1 for _ in _SPACED_WORD.finditer(text))
    return int(_SHARE_OF_TOKENS * n_tokens)


def fail_cut_prompt(reply: ChatReply, least_tokens: int) -> ChatReply:
    """The reply, as an error where the server has read only a part of the prompt."""
    if not _SHORTEST_CONTEXT <= reply.prompt_tokens < least_tokens:
        return reply
    return ChatReply(
        "error",
        error=(
            f"the server cut the prompt: it read {reply.prompt_tokens:,} tokens of at least"
            f" {least_tokens:,}. Raise its context length (num_ctx of Ollama, -c of llama.cpp), or"
            " judge documents in parts (chunked:size=500,evaluator=llm:model=...)"
        ),
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
    )
