"""What lies in a run folder already: nothing that is unchanged is computed, drawn or written again."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.audit import computable
from factaudit.files import write_json, write_text
from factaudit.report import render
from factaudit.results import Results, Row
from factaudit.runfolder import opened, written_by_runs
from factaudit.signature import digest, file_checksum

if TYPE_CHECKING:
    from factaudit.report.claims import Claims


def finish(folder: Path, results: Results, claims: Claims | None = None) -> None:
    """Write ``results.json`` and render it; remove the tables and figures of an earlier run that this one has not.

    claims: those that the folder holds, where they are at hand.
    """
    write_json(folder / "results.json", results.to_dict())
    refresh(folder, claims=claims)


def refresh(folder: Path, *, png: bool = False, anew: bool = False, claims: Claims | None = None) -> list[Path]:
    """Render the ``results.json`` of a run folder; returns the files that stand for it.

    Where the results, the tables that the report shows, the code and every file that it wrote are as an earlier
    rendering left them, there is nothing to do; else figures are drawn whose rows (or file) changed. png: with PNGs of
    the figures, too. anew: everything, whatever is there.
    """
    manifest = folder / ".work" / "rendered.json"
    before = _manifest(manifest)
    files, drawn = before["files"], {} if anew else before["drawn"]
    there = untouched(folder, files)
    whole = there and before.get("of") == _rendered_of(folder, files)
    if whole and not anew and (not png or any(name.endswith(".png") for name in files)):
        return [folder / name for name in files]
    if not there:
        drawn = {name: key for name, key in drawn.items() if untouched(folder, {name: files.get(name)})}
    paths = sorted(render(folder, png=png, drawn=drawn, claims=claims))
    now = {path.relative_to(folder).as_posix(): file_checksum(path) for path in paths}
    for name in set(files) - set(now):
        if re.fullmatch(r"(tables|figures)/[\w-][\w.-]*", name):
            (folder / name).unlink(missing_ok=True)
    kept = {name: key for name, key in drawn.items() if name in now}
    write_json(manifest, {"of": _rendered_of(folder, now), "files": now, "drawn": kept})
    return paths


def add_pngs(folder: Path) -> None:
    """PNGs of the figures of a run that is done."""
    with opened(folder):
        refresh(folder, png=True)


@contextmanager
def kept_rows(folder: Path) -> Iterator[Callable[[str, Callable[[], list[Row]]], list[Row]]]:
    """What `factaudit.results.compare` asks for rows: those that an earlier run kept in ``folder``, else they are made.

    Those that nobody asked for are removed at the end.
    """
    kept: set[str] = set()

    def reuse(key: str, make: Callable[[], list[Row]]) -> list[Row]:
        path = folder / f"{key.split('|')[0]}-{digest(key)}.json"
        kept.add(path.name)
        with suppress(OSError, ValueError):  # missing, or damaged: the rows are made again
            return json.loads(path.read_text(encoding="utf-8"))
        rows = make()
        write_text(path, json.dumps(rows, allow_nan=False))  # for nobody to read: without lines in half the time
        return rows

    yield reuse
    for path in folder.glob("*.json"):
        if path.name not in kept:
            path.unlink()


def same_run(folder: Path, key: str) -> tuple[Results, list[str]] | None:
    """The results of an earlier run and what it said, where that had this key and all its files are here."""
    found = _object(folder / ".work" / "run.json")
    files, said = found.get("files"), found.get("said")
    if found.get("of") != key or not isinstance(files, dict) or not isinstance(said, list):
        return None
    return (Results.load(folder), said) if "results.json" in files and untouched(folder, files) else None


def remember_run(folder: Path, key: str | None, said: Sequence[str]) -> None:
    """Keep what `same_run` asks for; a ``key`` of None forgets what there was."""
    path = folder / ".work" / "run.json"
    if key is None:
        path.unlink(missing_ok=True)
        return
    names = [*_manifest(folder / ".work" / "rendered.json")["files"], *written_by_runs(folder)]
    files = {name: file_checksum(folder / name) for name in sorted(set(names))}
    write_json(path, {"of": key, "files": files, "said": list(said)})


def depends_on(*parts: str, files: Sequence[Path]) -> str:
    """A digest of what a run depends on: ``parts`` (its settings, say), the content of files, and the code."""
    return digest(code(), *parts, *(f"{path} {file_checksum(path)}" for path in sorted(set(files))))


def untouched(folder: Path, files: Mapping[str, Any]) -> bool:
    """Whether the files of a run folder have these checksums; a link, or a name that leads out of it, never has."""
    for name, checksum in files.items():
        path = folder / name
        inside = not Path(name).is_absolute() and ".." not in Path(name).parts
        if not inside or path.is_symlink() or not path.is_file() or file_checksum(path) != checksum:
            return False
    return True


def _manifest(path: Path) -> dict[str, Any]:
    """What an earlier run rendered: ``of`` what, which ``files``, and of figures what is ``drawn`` on them."""
    found = _object(path)
    good = isinstance(found.get("files"), dict)
    if not good or not isinstance(found.get("drawn"), dict):
        found = {"files": found["files"] if good else {}, "drawn": {}}
    return found


def _object(path: Path) -> dict[str, Any]:
    """A JSON object of a file that anybody may have changed; empty where it is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    if isinstance(found, list):  # a manifest of versions that kept names alone
        return {"files": {name: "" for name in found if isinstance(name, str)}}
    return found if isinstance(found, dict) else {}


def _rendered_of(folder: Path, files: Mapping[str, Any]) -> str:
    """A digest of what a rendering depends on: what lies in the run folder besides ``files``, and the code."""
    figures = (path.relative_to(folder).as_posix() for path in (folder / "figures").glob("*"))
    read = sorted({"results.json", "claims.parquet", "verdicts.parquet", *figures} - set(files))
    parts = [f"{name} {file_checksum(folder / name)}" for name in read if (folder / name).is_file()]
    return digest(code(), *parts)


@functools.cache
def code() -> str:
    """A digest of this package's sources, of the audits that others declare, and of what they stand on."""
    own = Path(__file__).parent
    sources = {path for path in own.rglob("*") if path.suffix in (".py", ".css", ".js", ".j2", ".csv", ".yaml")}
    for audit in computable().values():
        made_in = getattr(audit.compute, "__code__", None)
        if made_in is not None and Path(made_in.co_filename).is_file():
            sources.add(Path(made_in.co_filename))
    versions = [f"{package} {version(package)}" for package in ("matplotlib", "jinja2", "numpy", "pandas", "scipy")]
    return digest(*versions, *(f"{path} {file_checksum(path)}" for path in sorted(sources)))
