# Needs Python 3.11+ with venv and pip, and make. Everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check
# The least percentage of lines and branches that the tests reach.
COVERAGE := 94

.DEFAULT_GOAL := help
.PHONY: help tour test coverage soak boundscheck torture package lint bench bench-quick reproduce reproduce-quick docs clean

# One thread for each process; a file of tests stays on one worker, with its cluster or browser.
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
# Files in their order: those with few tests, which are the longest ones, would else come last.
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tour: $(VENV)/tour.stamp ## stream a matrix that is never in memory, and check the answer
	@$(BIN)/sksketch tour

test: $(VENV)/dev.stamp ## run the tests, the doctests and the example of the README
	@$(PYTEST)

coverage: $(VENV)/dev.stamp ## the tests with the share of lines and branches that they reach, by package
	@$(PYTEST) --cov --cov-report=
	@$(BIN)/python tools/coverage_by_package.py --fail-under $(COVERAGE)

soak: $(VENV)/dev.stamp $(VENV)/docs.stamp ## what is slow: benchmarks, clusters, the site, and damage, kills and ten million rows in full
	@$(PYTEST) -m slow --ignore tests/robustness
	@SKSKETCH_SOAK=1 $(PYTEST) -m "slow or not slow" tests/robustness

boundscheck: $(VENV)/dev.stamp ## the tests of compiled loops, with every index of an array looked at
	@NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)/boundscheck $(PYTEST) -q tests/arrays/test_kernels.py \
	  tests/reduction/test_dual_kernels.py tests/online/test_newton_equals_reference.py \
	  -k "not long_streams or rfd-auto-2-squared"

torture: $(VENV)/dev.stamp ## 100,000 streams built to break a certificate, and a table of every kind of bound
	@PYTHONPATH=tests $(ONE_THREAD) $(BIN)/python -m _support.torture_run --streams 100000 --seed 0

package: $(BIN)/python ## build sdist and wheel, and try them in empty environments
	@$(BIN)/python tools/check_package.py

lint: $(VENV)/dev.stamp ## style, types, import layers, the floor plan, phrases and docstrings
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/house.py --check
	@$(BIN)/python tools/voice.py --check
	@$(BIN)/python tools/docstrings.py --check

bench: $(VENV)/bench.stamp ## speed, error and memory beside peers, with one report of all ratios
	@$(BIN)/python -m benchmarks.report

bench-quick: $(VENV)/bench.stamp ## the same on small sizes, a few minutes
	@$(BIN)/python -m benchmarks.report --quick

reproduce: $(VENV)/dev.stamp ## the experiments of the papers, and a verdict on every claim
	@$(BIN)/python -m benchmarks.reproduce

reproduce-quick: $(VENV)/dev.stamp ## the same on small sizes, a minute or two
	@$(BIN)/python -m benchmarks.reproduce --quick

docs: $(VENV)/docs.stamp ## build the site into docs/_build
	@$(BIN)/python -m sphinx -q -W --keep-going -j 2 -b html docs docs/_build
	@echo "docs/_build/index.html"

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist docs/_build docs/generated docs/gallery .pytest_cache .mypy_cache .ruff_cache \
	  .import_linter_cache .hypothesis sksketch-tour.png
	find src tests -name __pycache__ -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("sksketch needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..." if sys.version_info < (3, 11) else 0)'
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# The stamps remember which pyproject.toml was installed. dev contains all that tour needs.
$(VENV)/tour.stamp: pyproject.toml | $(BIN)/python
	@echo "installing scikit-sketch[cli,plot] into $(VENV)"
	@$(PIP) -e '.[cli,plot]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@echo "installing scikit-sketch[dev,docs] into $(VENV)"
	@$(PIP) -e '.[dev,docs]'
	@touch $@ $(VENV)/tour.stamp $(VENV)/docs.stamp

$(VENV)/bench.stamp: pyproject.toml $(VENV)/dev.stamp
	@echo "installing scikit-sketch[bench] into $(VENV)"
	@$(PIP) -e '.[dev,bench]'
	@touch $@

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	@echo "installing scikit-sketch[docs,cli,plot] into $(VENV)"
	@$(PIP) -e '.[docs,cli,plot]'
	@touch $@ $(VENV)/tour.stamp
