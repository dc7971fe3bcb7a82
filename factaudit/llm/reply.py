"""What does a reply say? The text, tokens and cost of a chat completion, and which part of the text
is the answer.

Not the answer are the model's thoughts, a tool call, a refusal, or a text that was cut off; and
none is the answer to a prompt of which the server has read only a part.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from factaudit.llm.chat_types import ChatMessage, ChatReply, ChatReplyToken
from factaudit.llm.server_errors import ServerAttemptFailure
from factaudit.llm.store import MALFORMED
from factaudit.text.stated_verdicts import strip_thoughts

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
#: The names that servers have for a reply that a filter took away, and for one that reached its
#: limit of tokens.
_FINISH_REASONS = {
    **dict.fromkeys(CUT_OFF_FINISH_REASONS, "length"),
    **dict.fromkeys(("safety", "recitation", "prohibited_content", "blocklist"), "content_filter"),
}


#: What a server computes in single precision may be a little above 0.
_MAX_LOGPROB = 1e-6
#: As SQLite holds numbers.
_MAX_COUNT = 2**62


def parse_chat_completion(body: str) -> ChatReply | ServerAttemptFailure:
    """The reply in the body of an HTTP 200; a body that is no chat completion is a failure that may
    pass."""
    try:
        return _read_completion(json.loads(body))
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return ServerAttemptFailure(f"not a chat completion: {body[:200]}", MALFORMED)


def _read_completion(data: Any) -> ChatReply:
    """What is read of a chat completion; raises any of the errors above where it is none."""
    choice = data["choices"][0]
    message, usage = choice["message"], data.get("usage") or {}
    finish = choice.get("finish_reason") or "stop"
    finish = _FINISH_REASONS.get(finish.lower(), finish)
    refusal, content = message.get("refusal"), message.get("content") or ""
    # Of a message in parts (Mistral's, Anthropic's) those that are text, not thoughts or calls.
    parts = [{"text": content}] if isinstance(content, str) else content
    text = "".join(part["text"] for part in parts if part.get("type", "text") == "text")
    said = refusal if refusal and isinstance(refusal, str) else text
    counts = [usage.get(name) or 0 for name in ("prompt_tokens", "completion_tokens")]
    if not all(0 <= int(count) < _MAX_COUNT for count in counts):
        raise ValueError("a number of tokens is no count")
    model, fingerprint = data.get("model"), data.get("system_fingerprint")
    return ChatReply(
        "refused" if refusal or finish == "content_filter" else "ok",
        # A reply that was cut off may end in half of a surrogate pair, which can be neither stored
        # nor printed.
        said.encode("utf-8", "replace").decode(),
        finish,
        _read_tokens(choice.get("logprobs")),
        int(counts[0]),
        int(counts[1]),
        model=model if isinstance(model, str) else None,
        fingerprint=fingerprint if isinstance(fingerprint, str) else None,
    )


def _read_tokens(logprobs: Any) -> tuple[ChatReplyToken, ...] | None:
    """The tokens with their log-probabilities. None where they have another server's shape: the
    reply is paid for, and read without them. Raises `ValueError` for numbers that are none."""
    try:
        tokens = tuple(
            ChatReplyToken(
                str(one["token"]),
                float(one["logprob"]),
                # Of two that read the same (bytes that are no text, say) the likelier one.
                {
                    str(other["token"]): float(other["logprob"])
                    for other in reversed(one.get("top_logprobs") or [])
                },
            )
            for one in logprobs["content"]
        )
    except (TypeError, LookupError, AttributeError):
        return None
    for token in tokens:
        for logprob in (token.logprob, *token.alternatives.values()):
            if not -math.inf < logprob <= _MAX_LOGPROB:
                raise ValueError(f"{logprob} is no log-probability")
    return tokens


def extract_llm_answer(reply: ChatReply) -> ChatReply:
    """The reply with its answer for a text, ready to be parsed.

    Thoughts and markup are left out. Where no answer is left the status says so: ``refused``, or
    ``unparsed`` for a reply that is empty, that was cut off at its limit of tokens or that calls a
    tool; ``error`` then has the reason and what was replied, and the text is empty. A reply that is
    not ok is returned as it is. The tokens of a reply from which thoughts or a call were taken are
    left out, since nobody can tell which of them belong to the answer.
    """
    if reply.status != "ok":
        return reply
    thoughtless = strip_thoughts(reply.text)
    answer = _TOOL_CALL_PATTERN.sub("", thoughtless)
    text = _MARKUP_PATTERN.sub("", answer)
    missing = ""
    if reply.finish_reason in CUT_OFF_FINISH_REASONS:
        length = f" after {reply.completion_tokens:,} tokens" if reply.completion_tokens else ""
        missing = (
            f"{CUT_OFF_PREFIX}{length} (finish_reason: {reply.finish_reason}): raise max_tokens, or"
            " max_completion_tokens for a model that reasons]"
        )
    elif not text.strip():
        missing = "[empty: thoughts only]" if reply.text.strip() else "[empty]"
        if answer != thoughtless or reply.finish_reason in ("tool_calls", "function_call"):
            missing = "[a tool call, and no answer]"
    if missing:
        told = f"{missing}\n{reply.text}" if reply.text.strip() else missing
        return replace(reply, status="unparsed", text="", tokens=None, error=told)
    if _is_refusal(text):
        return replace(reply, status="refused", text=text.strip())
    if text == reply.text:
        return reply
    return replace(reply, text=text.strip(), tokens=reply.tokens if answer == reply.text else None)


def _is_refusal(text: str) -> bool:
    """Whether a text begins as models do that decline a task; not one that says that something is
    unknown."""
    return len(text) < 2000 and _REFUSAL_PATTERN.match(text) is not None


# Has a server read the whole prompt? ---------------------------------------------------------
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


def count_least_prompt_tokens(messages: Iterable[ChatMessage]) -> int:
    """The least number of tokens that messages can have.

    >>> count_least_prompt_tokens([{"role": "user", "content": "word " * 1000}])
    750
    """
    text = "\n".join(message["content"] for message in messages)
    spaced, n_unspaced = _UNSPACED_SCRIPTS.subn(" ", text)
    n_words = sum(1 for _ in _SPACED_WORD.finditer(spaced))
    return int(_SHARE_OF_TOKENS * (n_words + n_unspaced / _CHARACTERS_PER_TOKEN))


def fail_cut_prompt(reply: ChatReply, messages: Iterable[ChatMessage]) -> ChatReply:
    """The reply, as an error where the server has read only a part of the prompt."""
    n_read = reply.prompt_tokens
    if n_read < _SHORTEST_CONTEXT or n_read >= (least := count_least_prompt_tokens(messages)):
        return reply
    return ChatReply(
        "error",
        error=(
            f"the server cut the prompt: it read {n_read:,} tokens of at least {least:,}. Raise its"
            " context length (num_ctx of Ollama, -c of llama.cpp), or judge documents in parts"
            " (chunked:size=500,evaluator=llm:model=...)"
        ),
        prompt_tokens=n_read,
        completion_tokens=reply.completion_tokens,
    )
