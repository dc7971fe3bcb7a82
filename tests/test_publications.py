"""Published data by name: the register, files found or fetched, and every way in which fetching
fails."""

from __future__ import annotations

import hashlib
import http.server
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from published_server import send_bytes

from factaudit import FactauditError, UsageError, convert
from factaudit.cli.app import main
from factaudit.datasets import FORMATS
from factaudit.publications import fetching
from factaudit.publications.fetching import (
    fetch_missing_published_files,
    find_published_file_difference,
    locate_published_reference,
    publication_folder,
)
from factaudit.publications.register import (
    find_published_files,
    list_publications,
    list_published_files,
    read_publication_citation,
)

pytestmark = pytest.mark.usefixtures("no_pause")
#: One small published file, for what goes wrong.
REFERENCE = "published:tofueval/factual_consistency/mediasum_factual_eval_dev.csv"


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that fail are asked again at once."""
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=lambda seconds: None))


# ---- the register


def test_the_register_is_whole():
    files = list_published_files()
    assert len(files) == len({file.stored_path for file in files})
    assert {file.publication.name for file in files} == set(list_publications())
    for file in files:
        assert (file.sha256 and len(file.sha256) == 64 and file.bytes) or (
            file.git_blob and len(file.git_blob) == 40
        )
        assert len(file.publication.commit) == 40
        assert set(file.formats) <= set(FORMATS)
    for publication in list_publications().values():
        assert publication.licence
        assert read_publication_citation(publication).startswith("@")


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("published:tofuevl", "did you mean 'tofueval'?"),
        (
            "published:tofueval/factual_consistency/mediasum_dev.csv",
            "did you mean 'factual_consistency/mediasum",
        ),
        ("published:", "no publication is called ''"),
        ("published:tofueval/../../secret", "has no file or folder '../../secret'"),
    ],
)
def test_an_unknown_reference_names_the_nearest(reference, message):
    with pytest.raises(UsageError) as error:
        find_published_files(reference)
    assert message in str(error.value)


# ---- found or fetched


def test_what_is_missing_is_fetched_once_checked_and_kept(published, folder, call):
    said = []
    path = locate_published_reference(REFERENCE)
    assert path.is_relative_to(folder)
    assert not path.exists()
    fetch_missing_published_files([path], said.append)
    (file,) = find_published_files(REFERENCE)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == file.sha256
    assert len(said) == 1
    assert all(
        word in said[0] for word in ("tofueval", "1 file", "0.4 MB", "licence", published.address)
    )
    fetch_missing_published_files([path], said.append)
    assert len(said) == 1
    # Another process, which found it missing, leaves it where it may be read now.
    number = path.stat().st_ino
    fetching._fetch_published_file(file)
    assert path.stat().st_ino == number
    assert sum(published.asked.values()) == 1
    assert "4 files, 1.1 MB; 1 in" in call("list", "data")[1]
    path.write_bytes(path.read_bytes()[:1000])  # damaged: fetched again
    fetch_missing_published_files([locate_published_reference(REFERENCE)])
    assert find_published_file_difference(path, file) is None
    assert sum(published.asked.values()) == 2


def test_a_format_without_a_source_is_all_that_is_published_in_it(published, folder, tmp_path):
    with pytest.raises(FactauditError, match="answered 404"):
        convert("tofueval")  # the two test files are not served here
    assert convert("tofueval", [REFERENCE]).claims["system"].nunique() == 6


def test_a_folder_of_the_users_is_used_in_place(shared, tmp_path, folder, monkeypatch):
    monkeypatch.setenv("FACTAUDIT_DATA_URL", "http://127.0.0.1:9")
    (file,) = find_published_files(REFERENCE)
    clone = tmp_path / "clones" / "tofueval"
    (clone / file.path).parent.mkdir(parents=True)
    (clone / file.path).write_bytes((shared / "tofueval" / Path(file.path).name).read_bytes())
    assert locate_published_reference(REFERENCE, clone) == clone / file.path
    assert locate_published_reference(REFERENCE, clone.parent) == clone / file.path
    monkeypatch.setenv("FACTAUDIT_DATA", str(clone.parent))
    assert locate_published_reference(REFERENCE) == clone / file.path
    assert len(convert("tofueval", [REFERENCE]).claims)


# ---- what goes wrong


def refuse(status: int) -> Callable[[str, http.server.BaseHTTPRequestHandler], None]:
    return lambda path, request: request.send_error(status)


def stay_silent(path: str, request: http.server.BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    time.sleep(0.5)


def cut_off(path: str, request: http.server.BaseHTTPRequestHandler) -> None:
    send_bytes(request, b"half", 400_000)


def send_wrong_bytes(path: str, request: http.server.BaseHTTPRequestHandler) -> None:
    send_bytes(request, b"x" * 387_891)


@pytest.mark.parametrize(
    ("answer", "n_requests", "message"),
    [
        (refuse(404), 3, "answered 404"),
        (refuse(500), 3, "answered 500"),
        (cut_off, 3, "broke off"),
        (stay_silent, 3, "broke off"),
        (send_wrong_bytes, 3, "not what was published: hash"),
        (lambda path, request: send_bytes(request, b"<html>"), 3, "6 bytes, expected 387,891"),
    ],
)
def test_what_cannot_be_fetched_is_said_in_a_sentence_and_leaves_nothing(
    serve, folder, monkeypatch, answer, n_requests, message
):
    monkeypatch.setattr(fetching, "_MAX_SILENCE", 0.2)
    server = serve(answer)
    path = locate_published_reference(REFERENCE)
    with pytest.raises(FactauditError) as error:
        fetch_missing_published_files([path])
    assert message in str(error.value)
    assert server.address in str(error.value)
    assert "\n" not in str(error.value)
    assert sum(server.asked.values()) == n_requests
    assert [one for one in folder.rglob("*") if one.is_file()] == []


def test_a_server_that_fails_twice_is_asked_again(shared, serve, folder):
    def answer(path, request):
        if server.asked[path] < 3:
            request.send_error(500)
        else:
            send_bytes(
                request, (shared / "tofueval" / "mediasum_factual_eval_dev.csv").read_bytes()
            )

    server = serve(answer)
    path = locate_published_reference(REFERENCE)
    fetch_missing_published_files([path])
    assert path.is_file()


def test_a_cache_that_cannot_be_written_is_said_and_nothing_is_asked_for(published, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nobody")  # read-only for everybody, root included
    with pytest.raises(FactauditError, match="cannot be written"):
        fetch_missing_published_files([locate_published_reference(REFERENCE)])
    assert not published.asked


def test_offline_names_each_file_its_place_its_address_and_its_hash(
    published, folder, tmp_path, capsys
):
    out = tmp_path / "claims.parquet"
    with pytest.raises(SystemExit) as exit_code:
        main(["convert", "tofueval", REFERENCE, "--out", str(out), "--offline"])
    assert exit_code.value.code == 1
    assert not fetching.is_offline()  # the next command of this process may fetch
    message = capsys.readouterr().err
    (file,) = find_published_files(REFERENCE)
    for text in (
        str(publication_folder() / file.stored_path),
        published.address,
        str(file.sha256),
        "offline",
    ):
        assert text in message
    assert not published.asked
