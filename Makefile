# Needs Python 3.11+ with venv and pip, and make. Everything else goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help tour test lint bench bench-quick docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

tour: $(VENV)/tour.stamp ## stream a matrix that is never in memory, and check the answer
	@$(BIN)/sksketch tour

test: $(VENV)/dev.stamp ## run the tests, the doctests and the example of the README
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

lint: $(VENV)/dev.stamp ## style, types and import layers
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/dev.stamp ## speed, error and memory beside peers, and errors beside theory
	@$(BIN)/python benchmarks/speed/dense.py
	@$(BIN)/python benchmarks/speed/sparse.py
	@$(BIN)/python benchmarks/speed/memory.py
	@$(BIN)/python benchmarks/speed/kernels.py
	@$(BIN)/python benchmarks/speed/io.py
	@$(BIN)/python benchmarks/speed/ridge.py
	@$(BIN)/python benchmarks/speed/online.py
	@$(BIN)/python benchmarks/speed/reduction.py
	@$(BIN)/python benchmarks/speed/kernel.py
	@$(BIN)/python benchmarks/papers/embedding.py
	@$(BIN)/python benchmarks/papers/shi2021.py
	@$(BIN)/python benchmarks/papers/luo2019.py
	@$(BIN)/python benchmarks/papers/xu2017.py
	@$(BIN)/python benchmarks/papers/xie2015.py

bench-quick: $(VENV)/dev.stamp ## the same on small sizes, a minute or two
	@$(BIN)/python benchmarks/speed/dense.py --quick
	@$(BIN)/python benchmarks/speed/sparse.py --quick
	@$(BIN)/python benchmarks/speed/memory.py --quick
	@$(BIN)/python benchmarks/speed/kernels.py --quick
	@$(BIN)/python benchmarks/speed/io.py --quick
	@$(BIN)/python benchmarks/speed/ridge.py --quick
	@$(BIN)/python benchmarks/speed/online.py --quick
	@$(BIN)/python benchmarks/speed/reduction.py --quick
	@$(BIN)/python benchmarks/speed/kernel.py --quick
	@$(BIN)/python benchmarks/papers/embedding.py --quick
	@$(BIN)/python benchmarks/papers/shi2021.py --quick
	@$(BIN)/python benchmarks/papers/luo2019.py --quick
	@$(BIN)/python benchmarks/papers/xu2017.py --quick
	@$(BIN)/python benchmarks/papers/xie2015.py --quick

docs: $(VENV)/docs.stamp ## build the site into docs/_build
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build
	@echo "docs/_build/index.html"

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist docs/_build docs/generated .pytest_cache .mypy_cache .ruff_cache \
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
	@echo "installing scikit-sketch[test,cli,plot,dev] and torch for the CPU into $(VENV)"
	@$(PIP) torch==2.13.0
	@$(PIP) -e '.[test,cli,plot,dev]'
	@touch $@ $(VENV)/tour.stamp

$(VENV)/docs.stamp: pyproject.toml | $(BIN)/python
	@echo "installing scikit-sketch[docs,cli,plot] into $(VENV)"
	@$(PIP) -e '.[docs,cli,plot]'
	@touch $@ $(VENV)/tour.stamp
