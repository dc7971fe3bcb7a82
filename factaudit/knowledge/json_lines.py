"""How are lines of JSON read, in files of pages and of responses?"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factaudit.errors import InputError, Problem
from factaudit.files import open_input_file, parse_json_file_text


def read_json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of the lines that hold something; half of a surrogate pair in a text
    becomes "?".

    Raises `InputError` naming the first line that is no JSON object, and where a gzip file is not
    whole.
    """
    number = 0
    try:
        with open_input_file(path) as file:
            for number, line in enumerate(iter(file.readline, b""), start=1):
                if not line.strip():
                    continue
                row = parse_json_file_text(line.decode("utf-8-sig" if number == 1 else "utf-8"))
                if b"\\ud" in line.lower():
                    whole = json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")
                    row = json.loads(whole)
                if not isinstance(row, dict):
                    said = f"expected a JSON object, found {type(row).__name__}"
                    raise InputError(str(path), [Problem(said, number, unit="line")])
                yield number, row
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        said = f"not a whole gzip file ({error})"
        raise InputError(str(path), [Problem(said, number + 1, unit="line")]) from None
    except ValueError as error:
        raise InputError(str(path), [Problem(f"not JSON: {error}", number, unit="line")]) from None
