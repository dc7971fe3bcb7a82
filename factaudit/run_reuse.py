"""What lies in a run folder already: neither an unchanged run nor the rows of an unchanged audit are made again."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.arrays.row_table import RowTable
from factaudit.audit import find_audit_declaration, list_computable_audits
from factaudit.errors import InputError
from factaudit.files import replace_file_atomically, write_json, write_text
from factaudit.publications.register import read_publication_citation, recognise_published_files
from factaudit.report.rendering import render_report
from factaudit.report.results_json import list_product_table_files_of_results_json, write_results_json
from factaudit.results import Results, Row
from factaudit.run_folder import list_run_files, lock_run_folder_for_writing
from factaudit.signature import compute_file_checksum, hash_texts
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    from factaudit.report.claim_browser import ClaimBrowser


def write_run_results_and_report(folder: Path, results: Results, claim_browser: ClaimBrowser | None = None) -> None:
    """Write ``results.json`` and render it; remove the tables and figures of an earlier run that this one has not.

    claim_browser: those that the folder holds, where they are at hand.
    """
    write_results_json(folder, results.to_dict())
    if published := recognise_published_files(results.about["inputs"]):
        write_text(folder / "references.bib", "\n".join(map(read_publication_citation, published)))
    render_run_report(folder, claim_browser=claim_browser)


def describe_run_audit_rows(results: Results, width: int = 9) -> str:
    """The line of progress once all audits are computed: an audit without rows had nothing to compute.

    Tables that a command or an engine writes beside them (estimates, a reproduction's) are no audits.
    """
    sizes: dict[bool, list[int]] = {True: [], False: []}
    for name, rows in results.audits.items():
        sizes[find_audit_declaration(name).compute is not None].append(len(rows))
    audits, others = sizes[True], sizes[False]
    computed, tables = format_count(sum(map(bool, audits)), "audit"), format_count(len(others), "table")
    if others and not audits:
        return f"tables    {sum(others):>{width},} rows in {tables}"
    beside = f", {sum(others):,} in {tables} beside them" if others else ""
    return f"audits    {sum(audits):>{width},} rows in {computed}{beside}"


def render_run_report(folder: Path, *, png: bool = False, claim_browser: ClaimBrowser | None = None) -> list[Path]:
    """Render the ``results.json`` of a run folder; returns the files that stand for it.

    The tables and figures of an earlier run that are not among them go. png: with PNGs of the figures, too.
    """
    before = _list_rendered_files(folder)
    paths = sorted(render_report(folder, png=png, claim_browser=claim_browser))
    now = [path.relative_to(folder).as_posix() for path in paths]
    for name in set(before) - set(now):
        if re.fullmatch(r"(tables|figures)/[\w-][\w.-]*", name):  # anybody may have changed the list
            (folder / name).unlink(missing_ok=True)
    write_json(folder / ".work" / "rendered.json", {"files": now})
    return paths


def add_png_figures(folder: Path) -> None:
    """PNGs of the figures of a run that is done."""
    with lock_run_folder_for_writing(folder):
        render_run_report(folder, png=True)


@contextmanager
def reuse_audit_rows(folder: Path) -> Iterator[Callable[[str, Callable[[], Sequence[Row]]], Sequence[Row]]]:
    """What `factaudit.results.compare` asks for rows: those that an earlier run kept in ``folder``, else they are made.

    Those that nobody asked for are removed at the end.
    """
    kept: set[str] = set()

    def reuse(key: str, make: Callable[[], Sequence[Row]]) -> Sequence[Row]:
        path = folder / f"{key.split('|')[0]}-{hash_texts(key)}.json"
        kept.add(path.stem)
        with suppress(OSError, ValueError):  # missing, or damaged: the rows are made again
            return json.loads(path.read_text(encoding="utf-8"))
        with suppress(InputError):
            return RowTable.read(path.with_suffix(".parquet"))
        rows = make()
        if isinstance(rows, RowTable):
            with replace_file_atomically(path.with_suffix(".parquet")) as temporary:
                rows.write(temporary, "")
        else:
            write_text(path, json.dumps(rows, allow_nan=False))  # for nobody to read: without lines in half the time
        return rows

    yield reuse
    for path in (*folder.glob("*.json"), *folder.glob("*.parquet")):
        if path.stem not in kept:
            path.unlink()


def find_identical_run(folder: Path, run_key: str) -> tuple[Results, list[str]] | None:
    """The results of an earlier run and what it said, where that had this key and all its files are here."""
    found = _read_run_json_object(folder / ".work" / "run.json")
    files, said = found.get("files"), found.get("said")
    if found.get("of") != run_key or not isinstance(files, dict) or not isinstance(said, list):
        return None
    return (Results.load(folder), said) if "results.json" in files and has_unchanged_run_files(folder, files) else None


def remember_finished_run(folder: Path, run_key: str | None, progress_lines: Sequence[str]) -> None:
    """Keep what `find_identical_run` asks for; a ``run_key`` of None forgets what there was."""
    path = folder / ".work" / "run.json"
    if run_key is None:
        path.unlink(missing_ok=True)
        return
    names = [
        *_list_rendered_files(folder),
        *list_run_files(folder),
        *list_product_table_files_of_results_json(folder),
    ]
    files = {name: compute_file_checksum(folder / name) for name in sorted(set(names))}
    write_json(path, {"of": run_key, "files": files, "said": list(progress_lines)})


def digest_run_reuse_dependencies(*parts: str, files: Sequence[Path]) -> str:
    """A digest of what a run depends on: ``parts`` (its settings, say), the content of files, and the code."""
    return hash_texts(
        digest_package_code_for_run_reuse(),
        *parts,
        *(f"{path} {compute_file_checksum(path)}" for path in sorted(set(files))),
    )


def has_unchanged_run_files(folder: Path, checksums: Mapping[str, Any]) -> bool:
    """Whether the files of a run folder have these checksums; a link, or a name that leads out of it, never has."""
    for name, checksum in checksums.items():
        path = folder / name
        inside = not Path(name).is_absolute() and ".." not in Path(name).parts
        if not inside or path.is_symlink() or not path.is_file() or compute_file_checksum(path) != checksum:
            return False
    return True


def _list_rendered_files(folder: Path) -> list[str]:
    """The files that the last rendering of a run folder wrote, relative to it."""
    files = _read_run_json_object(folder / ".work" / "rendered.json").get("files")
    return [name for name in files if isinstance(name, str)] if isinstance(files, list) else []


def _read_run_json_object(path: Path) -> dict[str, Any]:
    """A JSON object of a file that anybody may have changed; empty where it is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@functools.cache
def digest_package_code_for_run_reuse() -> str:
    """A digest of this package's sources, of the audits that others declare, and of what they stand on."""
    own = Path(__file__).parent
    sources = {
        path for path in own.rglob("*") if path.suffix in (".py", ".css", ".js", ".j2", ".csv", ".yaml", ".mplstyle")
    }
    for audit in list_computable_audits().values():
        made_in = getattr(audit.compute, "__code__", None)
        if made_in is not None and Path(made_in.co_filename).is_file():
            sources.add(Path(made_in.co_filename))
    versions = [f"{package} {version(package)}" for package in ("matplotlib", "jinja2", "numpy", "pandas", "scipy")]
    return hash_texts(*versions, *(f"{path} {compute_file_checksum(path)}" for path in sorted(sources)))
