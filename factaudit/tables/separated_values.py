"""Text files of rows as tables: their encoding, their separator, and cells as programs print them."""

from __future__ import annotations

import csv
import io
import re
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.errors import InputError, Problem
from factaudit.files import open_input_file, parse_json_file_text
from factaudit.tables.header_rows import build_table_from_cell_grid
from factaudit.tables.reading import is_windows_1252_text, lift_csv_field_limit
from factaudit.text.spreadsheet_cells import unescape_spreadsheet_cell

_SEPARATORS = ",;\t|"
#: The start of a file that tells its separator.
_HEAD_CHARACTERS = 1 << 16
#: A value as NumPy and PyTorch print it: ``np.int64(1)``, ``tensor(0.62, device='cuda:0')``, ``(0.62,)``.
_PRINTED_VALUE = re.compile(
    r"(?:(?:np|numpy|torch)\.\w+|tensor|array)\(([-+]?[\d.]+(?:e[-+]?\d+)?|True|False)(?:, ?\w+=[^()]*)?\)"
    r"|\(([-+]?[\d.]+),\)|np\.(True|False)_"
)


def read_file_text(path: Path) -> str:
    """A file's text, of UTF-8, UTF-16 or Windows-1252. Raises `InputError`."""
    return _decode_file_text(path)[0]


def read_json_document(path: Path) -> Any:
    """A JSON file's value, parsed once however often it is asked for: nothing may change it.

    Raises `json.JSONDecodeError`, and `InputError` where the file is no text.
    """
    state = path.stat()
    return _parse_json_document(path, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=2)
def _parse_json_document(path: Path, n_bytes: int, modified: int) -> Any:
    return parse_json_file_text(read_file_text(path))


def _decode_file_text(path: Path) -> tuple[str, str | None]:
    """A file's text, and a note where it is not UTF-8."""
    try:
        with open_input_file(path) as file:
            content = file.read()
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(str(path), [Problem(f"cannot be read ({error})")]) from None
    if not content.strip():
        raise InputError(str(path), [Problem("the file is empty")])
    head = content[:200]  # every second byte of Latin text in UTF-16 is null
    bare = [code for code, at in (("utf-16-le", 1), ("utf-16-be", 0)) if len(head) > 3 and not any(head[at::2])]
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else next(iter(bare), "utf-8-sig")
    try:
        return content.decode(encoding), None
    except UnicodeDecodeError as error:
        if encoding == "utf-8-sig" and is_windows_1252_text(content):
            return content.decode("cp1252"), "encoding  Windows-1252: the file is not UTF-8"
        line = content[: error.start].count(b"\n") + 1
        command = f"iconv -f ENCODING -t UTF-8 {path} > utf8.csv"
        said = f"byte 0x{content[error.start]:02x} is not UTF-8 text; save the file as UTF-8 (`{command}`)"
        raise InputError(str(path), [Problem(said, line)]) from None


def _detect_separator(text: str) -> str:
    """The separator of a file: of those that cut most rows into as many cells, the one that cuts into most."""
    head = text[:_HEAD_CHARACTERS]
    is_of_r = re.match(r'("[^"\n]*" ){2,}"[^"\n]*"\s*\n', head) is not None  # R's write.table
    best = " " if is_of_r else ","
    separators = _SEPARATORS + " " * is_of_r
    scores: dict[str, tuple[float, bool, int]] = {}
    for each in separators:
        try:
            sizes = [len(row) for row in csv.reader(io.StringIO(head, newline=""), delimiter=each) if row][:50]
        except csv.Error:
            continue
        sizes = sizes[:-1] if len(text) > _HEAD_CHARACTERS and len(sizes) > 1 else sizes
        usual = max(set(sizes), key=lambda size: (sizes.count(size), size)) if sizes else 0
        if usual > 1:
            scores[each] = (sizes.count(usual) / len(sizes), sizes[0] > 1, usual)  # the votes yes|no|yes cut no header
    if scores:
        best = max(scores, key=lambda each: (round(scores[each][0], 1), *scores[each][1:], -separators.index(each)))
    return best


def read_separated_values(path: Path) -> pd.DataFrame:
    """The rows of a text file whose cells any separator parts."""
    text, note = _decode_file_text(path)
    said = re.match(r"sep=(.)\r?\n", text)  # Excel's first line
    text = text[said.end() :] if said else text
    separator = said[1] if said else _detect_separator(text)
    try:
        with lift_csv_field_limit():
            rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise InputError(str(path), [Problem(f"not a table: {error}")]) from None
    if rows and len(rows[0]) == 1 and re.search(r"\S {2,}\S", rows[0][0]):
        raise InputError(str(path), [Problem("columns of fixed width, by blanks: save the table as CSV", 1)])
    if separator == " " and len(rows) > 1 and len(rows[1]) == len(rows[0]) + 1:  # R names no row names
        rows[0] = ["", *rows[0]]
    if separator == "|":  # blanks beside bars are layout
        rows = [[cell.strip() for cell in row] for row in rows]
    cells = [[_unwrap_printed_value(unescape_spreadsheet_cell(cell)) or None for cell in row] for row in rows if row]
    return build_table_from_cell_grid(str(path), cells, note)


def _unwrap_printed_value(cell: str) -> str:
    found = _PRINTED_VALUE.fullmatch(cell.strip()) if cell.endswith((")", "_")) else None
    return cell if found is None else next(filter(None, found.groups()))
