# `make audit` runs the main job on what ships; `make test` checks and tests everything.
# Both set up .venv by themselves; the only needs are make and a Python of 3.11 or later.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# Extras for the tests, e.g. `make test EXTRAS=hf,local`: see pyproject.toml.
EXTRAS ?=
comma := ,
DEV := dev$(if $(EXTRAS),$(comma)$(EXTRAS))

# uv installs in seconds what pip takes minutes for; where it cannot (an index that only pip's files name), pip does.
# What is imported is compiled then, and kept: compiling all that is installed takes longer than to install it, and where
# Python may keep nothing, every process compiles pandas anew.
export PIP_NO_COMPILE ?= 1
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
UV := UV_FIND_LINKS="$$PIP_FIND_LINKS" UV_DEFAULT_INDEX="$$PIP_INDEX_URL" $(BIN)/uv --quiet
install = { $(PIP) install uv && $(UV) pip install --python $(BIN)/python $(1); } || $(PIP) install $(1)

# What pytest runs besides; .ci/run leaves nothing out.
TESTS ?= -m "not slow"

.PHONY: audit test bench docs notebooks install clean

audit: $(VENV)/.installed
	$(BIN)/factaudit demo --out runs/ragtruth

test: $(VENV)/.installed-$(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports --no-logo
	# A file's tests share what they make: one process runs them all.
	$(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder $(TESTS)
	@echo "All checks and tests passed. The tests are in tests/; 'make bench' measures speed."

bench: $(VENV)/.installed-$(DEV)
	$(BIN)/python tests/benchmarks/table.py

docs: $(VENV)/.installed-docs
	$(BIN)/python docs/generate/audits.py docs/audits.md
	$(BIN)/python docs/generate/reference.py docs/reference.md
	$(BIN)/python docs/generate/data.py docs/data.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Open build/site/index.html in a browser."

notebooks: $(VENV)/.installed-$(DEV)
	$(BIN)/python notebooks/execute.py

# E.g. `make install WHAT=torch==2.13.0`, into the same .venv.
install: | $(BIN)/python
	$(call install,$(WHAT))

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "factaudit needs Python 3.11 or later: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(call install,-e .)
	@touch $@

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(call install,-e '.[docs]')
	@touch $@

$(VENV)/.installed-$(DEV): pyproject.toml | $(BIN)/python
	$(call install,-e '.[$(DEV)]')
	@touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache
