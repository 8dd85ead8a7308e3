# make demo   grades a small example class on the synthetic data (first run: sets up .venv)
# make test   what a change needs: style, types, floors, and the tests that take at most minutes together
# make test-all   everything that CI checks: make test, then make test-rest (slow, browser, service)
# make coverage   which lines of grader/ the tests run: htmlcov/index.html
# make bench  what it costs, side by side with others: renews benchmarks/RESULTS.md
#             (hours of training only where they are named: make bench BENCH=recipes)
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder -rs
export PYTHONDONTWRITEBYTECODE = 1

.PHONY: demo test test-rest test-all coverage bench lint types floors unit template setup clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else f"Python {v[0]}.{v[1]} is too old or too new: set PYTHON to a Python 3.11, 3.12 or 3.13, as in: make $(MAKECMDGOALS) PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (the first time takes a few minutes: PyTorch is large) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP)
	@rm -rf demo && $(BIN)/python tests/submissions/build.py demo/class
	@$(BIN)/grader grade demo/class --assignment vit_defects --data synthetic --out demo/results

test: lint types floors unit

test-all: test test-rest

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP)
	@$(BIN)/mypy

floors: $(STAMP)
	@$(BIN)/lint-imports

unit: $(STAMP)
	@$(PYTEST)

test-rest: $(STAMP)
	@$(PYTEST) -m "slow or browser or service"

bench: $(STAMP)
	@$(BIN)/python -m benchmarks $(BENCH)

template: $(STAMP)
	@$(BIN)/grader template vit_defects

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache
