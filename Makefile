# Bare `make` prints what there is. Every target sets up what it needs first; see scripts/setup.sh.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint style docs bench bench-peers soak mutants connect compat clean

VENV := .venv
BIN := $(VENV)/bin

# Extra words for the command behind a target: make test ARGS="-k factor", make bench ARGS=--list
ARGS ?=
# make test COVERAGE=1 prints the lines that no test reached
COVERAGE ?=

# What the shell has set must not reach into the pinned environment: another Python's modules, or
# a Spark of another version.
unexport PYTHONHOME PYTHONPATH SPARK_HOME VIRTUAL_ENV
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(CURDIR)/$(BIN)/python

# Spark prefers JAVA_HOME to the PATH, so an old one there must be replaced, not only supplemented.
# Spark alone on one machine needs no address but the loopback one, which always resolves.
WITH_SPARK = JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME && \
  export SPARK_LOCAL_IP="$${SPARK_LOCAL_IP:-127.0.0.1}" &&

PYTEST = $(BIN)/python -m pytest
TYPES = $(BIN)/mypy
WITH_COVERAGE = $(if $(COVERAGE),--cov=weft --cov-report=term-missing:skip-covered)
SITE := docs-output

help:  ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s%s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup:  ## set up .venv (pinned packages, the command weft) and Java; quick when nothing changed
	@scripts/setup.sh

demo: setup  ## run many window queries on Spark as one shared plan, and show the gain
	@$(WITH_SPARK) $(BIN)/weft demo $(ARGS)

test: style  ## check types too, and run all tests, those of kernels also as plain Python
	@scripts/browser.sh --install || true
	@$(WITH_SPARK) $(if $(COVERAGE),$(TYPES) && $(PYTEST) $(WITH_COVERAGE),PYTEST="$(PYTEST)" TYPES="$(TYPES)" scripts/test.sh) $(ARGS)

lint: style  ## check style, format and types
	@$(TYPES)

style: setup  ## check style and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

docs: setup  ## build the documentation site; a link or an anchor that leads nowhere fails
	@$(BIN)/python -m sphinx -q -W --keep-going -b html docs $(SITE) $(ARGS)
	@echo "open $(SITE)/index.html"

bench: setup  ## run the benchmarks; each checks its answer
	@$(WITH_SPARK) $(BIN)/weft bench $(ARGS)

bench-peers: setup  ## run weft beside Spark, Flink, DuckDB, Polars and others, and write docs/peers.md
	@$(WITH_SPARK) $(BIN)/python -m weft.bench.peers $(ARGS)

soak: setup  ## run the long tests that `make test` leaves out, and random tests for long
	@$(WITH_SPARK) $(PYTEST) -m "soak or hypothesis" --hypothesis-profile=soak $(ARGS)

mutants: setup  ## change the parts that decide what is right, and see whether a test notices
	@$(BIN)/python scripts/mutants.py $(ARGS)

connect: setup  ## run the Spark tests over Spark Connect
	@$(WITH_SPARK) SPARK_REMOTE="local[2]" $(PYTEST) tests/engines/spark $(ARGS)

compat: setup  ## try every Spark that people run, and write docs/versions.md
	@$(WITH_SPARK) $(BIN)/python scripts/compat.py $(ARGS)

clean:  ## remove .venv, caches and everything that weft wrote here
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage htmlcov dist build \
	  spark-warehouse metastore_db derby.log artifacts demo-output bench-output $(SITE)
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
