"""Where the tests find their data. Real data is optional: tests that need it skip, and say why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's own folder."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real reference data, beside the project or named by FACTAUDIT_SHARED_DATA."""
    named = os.environ.get("FACTAUDIT_SHARED_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not (folder / "README.md").is_file():
        pytest.skip(f"no reference data at {folder} (set FACTAUDIT_SHARED_DATA)")
    return folder
