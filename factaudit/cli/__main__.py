"""``python -m factaudit.cli``: what the script ``factaudit`` does."""

from factaudit.cli.app import main

main()
