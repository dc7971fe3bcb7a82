"""Which process wrote something down, and is it still running?"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


def identify_this_process() -> str:
    """A name of this process that no other one has, on this machine or another, now or later."""
    return f"{_read_host_name()}:{os.getpid()}:{_read_process_start(os.getpid())}"


def has_process_ended(process_identity: str) -> bool:
    """Whether the process of this name (what follows a ``/`` aside) has ended; of another machine's nobody knows."""
    host, pid, started = process_identity.partition("/")[0].rsplit(":", 2)
    if host != _read_host_name() or not pid.isdecimal():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OSError):
        return False
    # Another process may have been given the number since.
    return _read_process_start(int(pid)) != started


@cache
def _read_host_name() -> str:
    return socket.gethostname().replace(":", "_").replace("/", "_")


def _read_process_start(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
