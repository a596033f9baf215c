# What a newcomer needs: `make demo`, `make test`. Needs Python 3.11 or newer, and nothing running.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help demo test docs fuzz faults bench bench-quick clean

# Tests start hundreds of processes. Without bytecode on disk each one compiles the whole package, for a second or two.
unexport PYTHONDONTWRITEBYTECODE

SEEDS ?= 500
MINUTES ?= 60
SEED ?= 1
VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that is new enough; `make PYTHON=/path/to/python` names another.
PYTHON ?= $(shell for python in python3.13 python3.12 python3.11 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
# What an installation depends on; a second call finds the stamp newer and does nothing.
INSTALL_INPUTS := setup.cfg pyproject.toml

help:  ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r command text; do \
		printf '%-16s %s\n' "$$command" "$$text"; done

demo: $(VENV)/installed  ## Run the demo topology on an embedded cluster, and show its result live
	@$(BIN)/python examples/word_count/demo.py

# Where tests put stores and brokers: memory, if there is at least 2 GB of it; they need not survive a crash.
TESTS_TMPDIR := $(shell [ -w /dev/shm ] && [ "$$(df -k --output=avail /dev/shm 2>/dev/null | tail -1)" -gt 2000000 ] && \
	echo /dev/shm || echo "$${TMPDIR:-/tmp}")

# All checks run, also after one that failed; pytest comes last, and says how it went in its last line. Its processes
# share the tests; those against one broker stay in one of them.
test: $(VENV)/installed-for-tests  ## Run linters, type checks, the layer contract, and all tests this machine allows
	@failed=(); \
	check() { echo "== $$*"; $(BIN)/"$$@" || failed+=("$$*"); }; \
	check ruff check; \
	check ruff format --check; \
	check mypy; \
	check lint-imports; \
	for name in "$${failed[@]}"; do echo "FAILED before pytest: $$name"; done; \
	TMPDIR=$(TESTS_TMPDIR) $(BIN)/python -m pytest -n auto --maxprocesses 4 --dist loadgroup; status=$$?; \
	[ "$${#failed[@]}" = 0 ] && exit $$status || exit 1

docs: $(VENV)/installed-for-docs  ## Build the documentation site into build/site; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -W ignore::DeprecationWarning -m mkdocs build --strict && \
		echo "build/site/index.html"

fuzz: $(VENV)/installed-for-tests  ## Record SEEDS=500 random cases with Kafka Streams (needs Java), and compare
	@$(BIN)/python -m tests.conformance.fuzz --seeds $(SEEDS)

faults: $(VENV)/installed-for-tests  ## Break brokers and workers for MINUTES=60 (needs Java), and check what comes out
	@$(BIN)/python -m tests.faults --minutes $(MINUTES) --seed $(SEED)

# Sizes are such that all of it takes at most 40 minutes on two cores, and `bench-quick` five.
bench: $(VENV)/installed-for-benchmarks  ## Measure everything beside Kafka Streams, where Java is there (40 minutes)
	@$(BIN)/python -m benchmarks --records 300000 --runs 1
	@$(BIN)/python -m benchmarks.latency --seconds 8
	@$(BIN)/python -m benchmarks.scale --records 200000 --figure scale.svg
	@$(BIN)/python -m benchmarks.start --runs 2
	@$(BIN)/python -m benchmarks.footprint
	@$(BIN)/python -m benchmarks.bootstrap --rows 5000000 --rounds 1
	@$(BIN)/python -m benchmarks.bootstrap_job --rows 300000 --many 5000000 --runs 1

bench-quick: $(VENV)/installed-for-benchmarks  ## Measure filter, aggregate and windows beside Kafka Streams (5 minutes)
	@$(BIN)/python -m benchmarks --workloads w1-json,w2,w4 --records 300000 --runs 2

clean:  ## Remove the virtual environment and all caches
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { echo "make: needs Python 3.11 or newer; found none (make PYTHON=/path/to/python)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
		echo "make: $(PYTHON) cannot make a virtual environment (Debian: apt-get install python3-venv)" >&2; exit 1; }

$(VENV)/installed: $(BIN)/python $(INSTALL_INPUTS)
	@echo "installing pykstreams into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/installed-for-tests: $(BIN)/python $(INSTALL_INPUTS)
	@echo "installing pykstreams with its test and development tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[protobuf,dev]'
	@touch $@ $(VENV)/installed

$(VENV)/installed-for-docs: $(BIN)/python $(INSTALL_INPUTS)
	@echo "installing pykstreams with its documentation tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs,http,prometheus,spark]'
	@touch $@ $(VENV)/installed

$(VENV)/installed-for-benchmarks: $(BIN)/python $(INSTALL_INPUTS)
	@echo "installing pykstreams with its test, development and benchmark tools into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[protobuf,dev,bench]'
	@touch $@ $(VENV)/installed $(VENV)/installed-for-tests
