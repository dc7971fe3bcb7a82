"""How is text written to a CSV cell so that no spreadsheet runs it as a formula, and read back as
it was?

A cell that begins with ``=``, ``+``, ``-``, ``@``, a tab or a carriage return and goes on, and is
no number, gets an apostrophe before it (OWASP, "CSV Injection"); one that begins with apostrophes
and then such a character gets one more, so that reading takes one away.
"""

from __future__ import annotations

import re

_FORMULA_START = re.compile(r"^(?![+-]?[\d.]+(?:[eE][+-]?\d+)?\Z)('*[=+\-@\t\r].)", re.DOTALL)
#: What escaped cells begin with, in the syntax of RE2 too, which Arrow reads.
ESCAPED_CELL_START = r"^'('*[=+\-@\t\r](?s:.))"


def escape_spreadsheet_cell(text: str) -> str:
    """The text as a cell that no spreadsheet runs."""
    return _FORMULA_START.sub(r"'\1", text)


def unescape_spreadsheet_cell(cell: str) -> str:
    """The text of a cell that `escape_spreadsheet_cell` made."""
    return re.sub(ESCAPED_CELL_START, r"\1", cell) if cell.startswith("'") else cell
