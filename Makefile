# `make audit` runs the main job on what ships; `make test` checks and tests everything.
# Both set up .venv by themselves; the only needs are make and a Python of 3.11 or later.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# Extras for the tests, e.g. `make test EXTRAS=hf,local`: see pyproject.toml.
EXTRAS ?=
# What is imported is compiled then: compiling all that is installed takes longer than to install it.
export PIP_NO_COMPILE ?= 1
comma := ,
DEV := dev$(if $(EXTRAS),$(comma)$(EXTRAS))

# What pytest runs besides; .ci/run leaves nothing out.
TESTS ?= -m "not slow"

.PHONY: audit test check bench docs notebooks clean

audit: $(VENV)/.installed
	$(BIN)/factaudit demo --out runs/ragtruth

test: $(VENV)/.installed-$(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -n auto --dist loadgroup $(TESTS)
	@echo "All checks and tests passed. The tests are in tests/; 'make bench' measures speed."

bench: $(VENV)/.installed-$(DEV)
	$(BIN)/python tests/benchmarks/table.py

docs: $(VENV)/.installed-docs
	$(BIN)/python -m factaudit.audit.docs docs/audits.md
	$(BIN)/python -m factaudit.cli.reference docs/reference.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Open build/site/index.html in a browser."

notebooks: $(VENV)/.installed-$(DEV)
	$(BIN)/python notebooks/execute.py

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "factaudit needs Python 3.11 or later: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

$(VENV)/.installed-$(DEV): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(DEV)]'
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache
