"""Has a server read the whole prompt? Some cut a long one to their context length and answer HTTP 200 all the same.

The only trace is the number of prompt tokens that the reply reports. It is compared with the least that any tokenizer
makes of the prompt: no token spans white space, and in scripts without spaces between words a token holds few
characters. White space, punctuation and strings without breaks (a hash, "=====") count for nothing or for one token.
A quarter is taken off for tokenizers that join words.
"""

from __future__ import annotations

import re

from factaudit.llm.chat_types import ChatReply, ChatRequest

#: No model's context is shorter. A server that reports fewer tokens counts something else: what its cache did not have,
#: or nothing.
_SHORTEST_CONTEXT = 256
_SHARE_OF_TOKENS = 0.75
#: Characters of Chinese, Japanese, Thai, Lao, Burmese or Khmer that a token holds at the most, on average.
_CHARACTERS_PER_TOKEN = 4
_UNSPACED_SCRIPTS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
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
        error=f"the server cut the prompt: it read {reply.prompt_tokens:,} tokens of at least {least_tokens:,}. Raise"
        " its context length (num_ctx of Ollama, -c of llama.cpp), or judge documents in parts"
        " (chunked:size=500,evaluator=llm:model=...)",
        prompt_tokens=reply.prompt_tokens,
        completion_tokens=reply.completion_tokens,
    )
