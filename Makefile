# The targets are what continuous integration runs, see .ci/run.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The exact version first: from an open range pip takes builds of several gigabytes.
TORCH ?= torch==2.13.0
READY := $(VENV)/.ready
PYTEST := OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest --durations=10

.DEFAULT_GOAL := help
.PHONY: help demo setup test test-all check format docs bench zoo ledger clean

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' Makefile

demo: $(READY) ## set up, train the bundled BERT, say what holds it back, try the fix (10 minutes)
	$(BIN)/slipstream demo

setup: $(READY) ## create .venv with all that development needs

# Done once: a changed pyproject.toml does it again.
$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "slipstream needs Python 3.11 or newer, not " + sys.version.split()[0] + ": make PYTHON=python3.12 ...")'
	@echo 'setting up $(VENV): minutes, once'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[arrow,demo,dev]'
	touch $@

test: $(READY) ## the tests (minutes)
	$(PYTEST) -m 'not slow'

test-all: $(READY) ## and those that take long
	$(PYTEST)

check: $(READY) ## lint, types, import contracts, generated pages
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/docs.py --check

format: $(READY) ## put code into the house's form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(READY) ## write the pages whose source is the code, and build the site from docs/ into site/
	$(BIN)/python tools/docs.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

bench: $(READY) ## how fast recordings are read; with TRACE=FILE also how fast that one is diagnosed
	$(BIN)/python benchmarks/reading.py --synthetic-mb 100 $(TRACE)
	$(if $(TRACE),$(BIN)/python benchmarks/analysis.py $(TRACE))

zoo: $(READY) ## training scripts with planted bottlenecks: are they found, and is nothing else (10 minutes)
	$(BIN)/python zoo/run.py

ledger: $(READY) ## forecasts against measured gains, on the zoo (40 minutes)
	$(BIN)/python benchmarks/ledger.py

clean: ## remove what was built, .venv included
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools benchmarks zoo -name __pycache__ -type d -prune -exec rm -rf {} +
