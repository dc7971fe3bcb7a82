"""``python -m factaudit``: what the script ``factaudit`` does."""

from factaudit.cli.app import main

main()
