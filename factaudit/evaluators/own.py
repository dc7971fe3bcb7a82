"""The former name of `factaudit.evaluators.user_evaluators`, kept so that imports of it still work."""

from __future__ import annotations

import warnings

from factaudit.evaluators.user_evaluators import *  # noqa: F403

warnings.warn("factaudit.evaluators.own is now factaudit.evaluators.user_evaluators", DeprecationWarning, stacklevel=2)
