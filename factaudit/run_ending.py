"""How a run ends: results, report, and a record by which the same run is recognised and not repeated."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.audit import find_audit_declaration, list_computable_audits
from factaudit.files import write_json, write_text
from factaudit.publications.register import read_publication_citation, recognise_published_files
from factaudit.report.rendering import render_report
from factaudit.report.results_json import write_results_json
from factaudit.results import Results
from factaudit.run_folder import list_run_files, lock_run_folder_for_writing
from factaudit.signature import compute_file_checksum, hash_texts
from factaudit.text.display_text import format_count

if TYPE_CHECKING:
    from factaudit.report.claim_browser import ClaimBrowser


def finish_run(
    folder: Path,
    results: Results,
    claim_browser: ClaimBrowser | None = None,
    *,
    run_key: str | None = None,
    said: Sequence[str] = (),
) -> None:
    """Write ``results.json`` and all that is made of it.

    claim_browser: the claims that the folder holds, where they are at hand. run_key: a digest of all that the run
    depends on (`digest_run_inputs`), by which `find_identical_run` finds it with what it ``said``; None where the same
    run would not give the same, as where calls failed.
    """
    write_results_json(folder, results.to_dict())
    if published := recognise_published_files(results.about["inputs"]):
        write_text(folder / "references.bib", "\n".join(map(read_publication_citation, published)))
    paths = render_report(folder, claim_browser=claim_browser)
    _record_run_files(folder, paths, {"of": run_key, "said": list(said)})


def render_run_again(folder: Path, *, png: bool = False) -> list[Path]:
    """The tables, figures and the report of a run that is done; with PNGs of the figures, too."""
    with lock_run_folder_for_writing(folder):
        paths = render_report(folder, png=png)
        _record_run_files(folder, paths, _read_run_record(folder))
    return paths


def find_identical_run(folder: Path, run_key: str) -> tuple[Results, list[str]] | None:
    """The results of an earlier run and what it said, where that had this key and all its files are as it left them."""
    record = _read_run_record(folder)
    files = record.get("files", {})
    unchanged = record.get("of") == run_key and "results.json" in files
    if not unchanged or any(_checksum_or_none(folder / name) != checksum for name, checksum in files.items()):
        return None
    return Results.load(folder), record["said"]


def digest_run_inputs(*parts: str, files: Sequence[Path]) -> str:
    """A digest of what a run depends on: ``parts`` (its settings, say), the content of files, and the code."""
    checksums = (f"{path} {compute_file_checksum(path)}" for path in sorted(set(files)))
    return hash_texts(digest_package_code(), *parts, *checksums)


@functools.cache
def digest_package_code() -> str:
    """A digest of this package's sources, of the audits that others declare, and of what they stand on."""
    kinds = (".py", ".css", ".js", ".j2", ".csv", ".yaml", ".mplstyle")
    sources = {path for path in Path(__file__).parent.rglob("*") if path.suffix in kinds}
    for audit in list_computable_audits().values():
        made_in = getattr(audit.compute, "__code__", None)
        if made_in is not None and Path(made_in.co_filename).is_file():
            sources.add(Path(made_in.co_filename))
    versions = [f"{package} {version(package)}" for package in ("matplotlib", "jinja2", "numpy", "pandas", "scipy")]
    return hash_texts(*versions, *(f"{path} {compute_file_checksum(path)}" for path in sorted(sources)))


def _record_run_files(folder: Path, rendered: Sequence[Path], record: Mapping[str, Any]) -> None:
    """Note the checksums of a run's files; tables and figures of the run before that this one has not are removed."""
    names = {path.relative_to(folder).as_posix() for path in rendered}
    names |= set(list_run_files(folder))
    for name in set(_read_run_record(folder).get("files", {})) - names:
        if re.fullmatch(r"(tables|figures)/[\w-][\w.-]*", name):
            (folder / name).unlink(missing_ok=True)
    files = {name: compute_file_checksum(folder / name) for name in sorted(names)}
    write_json(_locate_run_record(folder), {**record, "files": files})


def _read_run_record(folder: Path) -> dict[str, Any]:
    """``of``: the key of the run; ``said``: its lines; ``files``: their checksums. Empty where none can be read."""
    try:
        record = json.loads(_locate_run_record(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _locate_run_record(folder: Path) -> Path:
    return folder / ".work" / "run.json"


def _checksum_or_none(path: Path) -> str | None:
    return compute_file_checksum(path) if path.is_file() else None


def describe_run_audit_rows(results: Results) -> str:
    """The line of progress once all audits are computed: an audit without rows had nothing to compute.

    Tables that a command or an engine writes beside them (estimates) are no audits.
    """
    sizes: dict[bool, list[int]] = {True: [], False: []}
    for name, rows in results.audits.items():
        sizes[find_audit_declaration(name).compute is not None].append(len(rows))
    audits, others = sizes[True], sizes[False]
    computed, tables = format_count(sum(map(bool, audits)), "audit"), format_count(len(others), "table")
    if others and not audits:
        return f"tables    {sum(others):>9,} rows in {tables}"
    beside = f", {sum(others):,} in {tables} beside them" if others else ""
    return f"audits    {sum(audits):>9,} rows in {computed}{beside}"
