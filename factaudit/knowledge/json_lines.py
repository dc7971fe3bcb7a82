"""Lines of JSON, as files of pages and of responses have them: what is wrong with a line is said in
one way."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from factaudit.errors import InputError, Problem
from factaudit.files import open_input_file, parse_json_file_text


def read_json_lines(
    path: Path, show_offset: Callable[[int], None] = lambda offset: None
) -> Iterator[Any]:
    """(line number, object) of the lines that hold something; half of a surrogate pair in a text
    becomes "?".

    show_offset: told how many bytes are read, line by line. Raises `InputError` naming the first
    line that is no JSON object, and where a gzip file is not whole.
    """
    number = 0
    try:
        with open_input_file(path) as file:
            for number, line in enumerate(iter(file.readline, b""), start=1):
                show_offset(file.tell())
                if line.strip():
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                    row = parse_json_file_text(text)
                    if "\\ud" in text.lower():
                        row = json.loads(
                            json.dumps(row, ensure_ascii=False).encode("utf-8", "replace")
                        )
                    if not isinstance(row, dict):
                        raise ValueError(f"expected a JSON object, found {type(row).__name__}")
                    yield number, row
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        problem, number = f"not a whole gzip file ({error})", number + 1
    except UnicodeDecodeError:
        problem = "not UTF-8 text"
    except json.JSONDecodeError as error:
        cut = "not JSON" if line.endswith(b"\n") else "the line is cut off"
        problem = f"{cut}: {error.msg} at character {error.pos + 1}"
    except ValueError as error:
        problem = str(error)
    else:
        return
    raise InputError(str(path), [Problem(problem, number or None, unit="line")])
