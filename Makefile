# make demo   grades a small example class on the synthetic data (first run: sets up .venv); another assignment's:
#             make demo ASSIGNMENT=vit_cifar10
# make test   what a change needs: style, types, floors, and the tests that take at most minutes together
# make test-all   everything that CI checks: make test, then make test-rest (slow, browser, service)
# make coverage   which lines of grader/ the tests run: htmlcov/index.html
# make picture   renews docs/report.png, the report at the top of README.md, from the demo's (needs Chromium)
# make pretrained   trains the small model again that vit_finetune gives to students (minutes), and tells its digest
# make lock   renews requirements.lock: the newest versions that pyproject.toml allows, with their hashes
# make bench  what it costs, side by side with others: renews benchmarks/RESULTS.md
#             (hours of training only where they are named: make bench BENCH=recipes)
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# exact versions with their hashes; LOCK= (empty) installs the newest that pyproject.toml allows
LOCK   ?= requirements.lock
STAMP  := $(VENV)/.installed
PIP    := $(BIN)/python -m pip --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder -rs

# without bytecode every run would rewrite the assertions of all test files, in each of its processes
unexport PYTHONDONTWRITEBYTECODE

ASSIGNMENT := vit_defects

.PHONY: demo test test-rest test-all coverage bench lint types floors unit compiled template picture pretrained lock \
    setup clean

setup: $(STAMP)

$(STAMP): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else f"Python {v[0]}.{v[1]} is too old or too new: set PYTHON to a Python 3.11, 3.12 or 3.13, as in: make $(MAKECMDGOALS) PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV) (the first time takes a few minutes: PyTorch is large) ..."
ifeq ($(LOCK),)
	@$(PIP) install --quiet --editable '.[dev]'
else
	@$(PIP) install --quiet --require-hashes --requirement $(LOCK)
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
endif
	@touch $@

demo: $(STAMP)
	@rm -rf demo && $(BIN)/python tests/submissions/build.py demo/class $(ASSIGNMENT)
	@$(BIN)/grader grade demo/class --assignment $(ASSIGNMENT) --data synthetic --out demo/results

test: lint types floors unit

test-all: test test-rest

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(STAMP)
	@$(BIN)/mypy

floors: $(STAMP)
	@$(BIN)/lint-imports

# hosts write no bytecode of their own: without it each of some fifty would compile all that it imports
compiled: $(STAMP)
	@$(BIN)/python -m compileall -q grader

unit: compiled
	@$(PYTEST) -n auto

# many of these wait for something, so that there is room for one more than there are cores
test-rest: compiled
	@$(PYTEST) -n $$(($$(nproc 2>/dev/null || echo 2) + 1)) -m "slow or browser or service"

# what is locked down can write no counts: the same code runs in the workers of the tests that are not
coverage: compiled
	@rm -f .coverage .coverage.*
	@$(BIN)/python -m coverage run -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not browser"
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage html --quiet
	@$(BIN)/python -m coverage report

bench: $(STAMP)
	@$(BIN)/python -m benchmarks $(BENCH)

template: $(STAMP)
	@for assignment in reference/*/; do $(BIN)/grader template $$(basename $$assignment) || exit 1; done

# one with a mistake that the checks name
REPORT := demo/results/students/400101204/report.html

$(REPORT):
	@$(MAKE) demo

picture: $(REPORT)
	@chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking \
	    --disable-component-update --disable-sync --hide-scrollbars --user-data-dir=demo/chromium \
	    --window-size=980,960 --screenshot=docs/report.png "file://$(CURDIR)/$(REPORT)" 2>/dev/null

pretrained: $(STAMP)
	@OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.pretrained

lock:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet 'uv>=0.9'
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate \
	    --no-emit-index-url --system-certs --custom-compile-command 'make lock' --extra dev \
	    --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) demo htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache
