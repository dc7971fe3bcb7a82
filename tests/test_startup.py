"""What is imported before there is anything to do: modules are counted, not seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

import factaudit

#: Modules that import nothing but the standard library.
LIGHT = (
    "version",
    "errors",
    "settings",
    "settings.python_errors",
    "files",
    "text",
    "text.display_text",
)
LIGHT += ("text.progress_lines",)


def imported(code: str) -> set[str]:
    """The modules outside the standard library that a fresh interpreter imports for ``code``."""
    told = (
        f"import sys; before = set(sys.modules)\n{code}\nprint(*sorted(set(sys.modules) - before),"
        " sep=chr(10))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", told], capture_output=True, text=True, check=True
    ).stdout
    modules = set(shown.split("NAMES\n")[-1].split())
    return {name for name in modules if name.partition(".")[0] not in sys.stdlib_module_names}


def test_importing_the_package_imports_nothing_else():
    assert imported("import factaudit") == {"factaudit", "factaudit.version"}


@pytest.mark.parametrize("arguments", [["--help"], ["judge", "--help"]])
def test_help_reads_nothing_but_the_command_line(arguments):
    found = imported(
        f"from factaudit.cli import main\ntry: main({arguments!r})\nexcept SystemExit:"
        " pass\nprint('NAMES')"
    )
    outside = {name for name in found if not name.startswith(("click", "factaudit.cli"))}
    assert outside <= {"factaudit", *(f"factaudit.{name}" for name in LIGHT)}
    assert len(found) <= 50


def test_a_run_that_is_done_already_reads_no_special_functions():
    """`scipy` imports `scipy.special` when it is first used, a seventh of the time of an unchanged
    run."""
    assert "scipy.special" not in imported("import factaudit.experiment.run")


def test_every_name_of_the_package_is_there_when_it_is_asked_for():
    for name in factaudit.__all__:
        assert getattr(factaudit, name) is not None
        assert name in dir(factaudit)
    with pytest.raises(AttributeError, match="no attribute 'judgee'"):
        _ = factaudit.judgee
    with pytest.raises(ImportError):
        from factaudit import nothing_of_this_name  # noqa: F401
