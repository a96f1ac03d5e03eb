# The two commands are `make site` and `make test`; everything they need is set up by themselves in .venv/.
# All paths are relative to this file, so the checkout may lie anywhere, below a name with spaces too.

.PHONY: help site test check lint bench lock clean
.DELETE_ON_ERROR:

# Say PYTHON=/path/to/python3.12 to choose one; without it the first of these that is new enough.
PYTHON ?=
PYTHONS = $(if $(PYTHON),"$(PYTHON)",python3 python3.14 python3.13 python3.12 python3.11)
BIN = .venv/bin
PIP = $(BIN)/python -m pip --disable-pip-version-check --quiet

help:
	@echo 'make site    verify the shipped catalogue on a live PostgreSQL and build site/ from it'
	@echo 'make test    run the tests'
	@echo 'make check   what a maintainer adds: lint, types, layers, the committed site, the browser'
	@echo 'make bench   how fast it is, as ratios measured in one run'
	@echo 'make lock    write requirements/ anew from pyproject.toml'
	@echo 'make clean   remove the environment and every cache'

site: .venv/.run
	$(BIN)/matrix build

test: .venv/.dev
	$(BIN)/pytest -m 'not browser'

check: lint
	$(BIN)/matrix build --check
	$(BIN)/pytest -m browser

lint: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

bench: .venv/.dev
	$(BIN)/python -m benchmarks

# The environment, in three steps. Each leaves a stamp, so that a second `make` has nothing to do.
.venv/.made:
	@for python in $(PYTHONS); do \
	  "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	  if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "could not make an environment: $$("$$python" --version) has no venv module." >&2; \
	    echo '  Install it (Debian, Ubuntu: apt-get install python3-venv), or name another: make PYTHON=/path/to/python3' >&2; \
	    exit 2; \
	  fi; \
	  echo "environment: .venv, $$("$$python" --version)"; \
	  "$$python" -m venv --clear .venv && touch $@; exit; \
	done; \
	echo "could not make an environment: no Python 3.11 or newer among $(PYTHONS) ($$(python3 --version 2>&1))." >&2; \
	echo '  Install one, or name it: make PYTHON=/path/to/python3' >&2; \
	exit 2

.venv/.run: requirements/run.txt pyproject.toml .venv/.made
	$(PIP) install --require-hashes -r requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.run
	$(PIP) install --require-hashes -r requirements/dev.txt
	@touch $@

# uv is needed here only, so it gets an environment of its own for as long as this takes.
lock: .venv/.made
	@tmp=$$(mktemp -d) && trap 'rm -rf "$$tmp"' EXIT && \
	$(BIN)/python -m venv "$$tmp" && "$$tmp/bin/pip" --disable-pip-version-check --quiet install uv && \
	lock() { "$$tmp/bin/uv" pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 \
	  --no-header --no-annotate pyproject.toml "$$@"; } && \
	lock --group build --output-file requirements/run.txt && \
	lock --group dev --constraints requirements/run.txt --output-file requirements/dev.txt

clean:
	rm -rf .venv .matrix .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
