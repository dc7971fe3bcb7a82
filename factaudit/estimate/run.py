"""The former name of `factaudit.estimate.rate_estimation`, kept so that imports of it still work."""

from __future__ import annotations

import warnings

from factaudit.estimate.rate_estimation import *  # noqa: F403

warnings.warn("factaudit.estimate.run is now factaudit.estimate.rate_estimation", DeprecationWarning, stacklevel=2)
