"""The former name of `factaudit.audit.core.audit_declaration`, kept so that imports of it still work."""

from __future__ import annotations

import warnings

from factaudit.audit.core.audit_declaration import *  # noqa: F403

warnings.warn(
    "factaudit.audit.core.declare is now factaudit.audit.core.audit_declaration", DeprecationWarning, stacklevel=2
)
