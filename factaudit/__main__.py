"""``python -m factaudit`` does the same as the script ``factaudit``."""

from factaudit.cli.app import main

main()
