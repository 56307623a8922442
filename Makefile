# Everything is installed into this folder (.local, .run); nothing outside it changes. `make help` explains.
PYTHON ?= python3
VENV := .local/venv
PY := $(VENV)/bin/python
PYTEST_ARGS ?=
NAME ?= hot-paths
WORKERS ?= 4
FOLLOW_ARGS := $(if $(TABLE),--table $(TABLE)) $(if $(JSON),--json)

INSTALLED := test -x $(PY) || { echo "No stack is running. Start one in another terminal: make stack" >&2; exit 1; }

# Without bytecode each Python process compiles all that it imports: 2.9 CPU seconds for the registry instead of 1.2.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help preflight install demo stack follow cqlsh test failed unit exhaustive verify bench lint format docs docs-reference \
	dist release release-check freeze clean distclean

help: ## Show this help
	@echo "Usage: make TARGET [VARIABLE=value]   (times are about, on two cores, once installed)"
	@echo
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "make verify WHAT=..."
	@$(PYTHON) -m dev.verify
	@echo
	@echo "make bench NAME=..."
	@$(PYTHON) -m dev.bench
	@echo
	@echo "Variables:"
	@echo "  PYTHON      the Python to install with, 3.11 or newer (default: python3)"
	@echo "  TABLE, JSON the table to follow, KEYSPACE.TABLE (default: every table); JSON=1: one JSON object a line (make -s follow)"
	@echo "  PYTEST_ARGS more arguments for pytest (make test PYTEST_ARGS='-k merge')"
	@echo "  WORKERS     tests at a time (default: 4); 0: one after the other, with their output"
	@echo "  SERVERS     local or containers: how tests start Cassandra and Kafka (default: local)"
	@echo "  CDC_NATIVE  0: run on the Python code alone, without the compiled core"
	@echo "  VERSION     Cassandra's version; oracle takes several, separated by commas (default: model 5.0, oracle all)"
	@echo "  The names in brackets after a verify or bench program are its variables."

preflight: ## Check this machine: what is missing, and the command that fixes it; 1 s
	@$(PYTHON) -m dev.local_stack.install.preflight

install: ## Install Python packages, Java and jars into .local, compile the core (demo and test do it too); 1 min
	@$(PYTHON) -m dev.local_stack.install.bootstrap

demo: install ## Run a story, a load and a comparison on a real Cassandra, Kafka and Spark; 2 min
	@$(PY) -m dev.local_stack.demo.demo

stack: install ## Start the same servers and programs and the archive, and stay until Ctrl-C
	@$(PY) -m dev.local_stack.demo.stack_command

follow: ## Print the changes of the running stack, before and after: make follow TABLE=shop.orders
	@$(INSTALLED)
	@$(PY) -m dev.local_stack.clients.follow $(FOLLOW_ARGS)

cqlsh: ## Open a CQL shell on the running stack
	@$(INSTALLED)
	@$(PY) -m dev.local_stack.clients.cqlsh

test: install ## Run all tests, four at a time; tests that need servers start them; 15 min
	@$(PY) -m tests.support.make_spark_classes & \
		$(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS); \
		status=$$?; wait; exit $$status

failed: install ## Run the tests that failed in the last run again, one after the other
	@$(PY) -m pytest --last-failed --last-failed-no-failures none $(PYTEST_ARGS)

unit: install ## Run the tests that need no servers; 6 min
	@$(PY) -m pytest -m "not servers" $(PYTEST_ARGS)

exhaustive: install ## Run the tests that are too slow for every run, and properties with ten times the examples; 140 min
	@CDC_EXHAUSTIVE=1 $(PY) -m pytest -v -m "exhaustive or (hypothesis and not servers)" $(PYTEST_ARGS)

verify: install ## Run a program that judges the project: make verify WHAT=model SEEDS=1 STATEMENTS=2000
	@$(PY) -m dev.verify $(WHAT)

bench: install ## Run a benchmark: make bench NAME=hot-paths
	@$(PY) -m dev.bench $(NAME)

lint: install ## Check style, format, words, types and the direction of imports; 1 min
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(PY) -m dev.tools.words
	$(PY) -m dev.tools.names
	$(PY) -m dev.tools.fields
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

docs: install ## Build the docs as a site into site/; fails on a warning, such as a link to a missing heading; 1 min
	@$(PY) -m dev.tools.docs_site

format: install ## Format the code and fix what ruff can
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs-reference: install ## Write the pages of docs that are generated from the code; 10 s
	@$(PY) -m dev.tools.reference

dist: install ## Build into dist/: wheels (x86-64, arm64), archives with their own Python, two for Spark's executors; 10 min
	@$(PY) -m dev.tools.distribution
	@$(PY) -m materializer pack dist/materializer.tar.gz
	@$(PY) -m transformer pack dist/transformer.tar.gz

release: export SOURCE_DATE_EPOCH = $(shell git log -1 --format=%ct)
release: install release-check dist ## Make a release in dist/: dist, sdist, bill of materials, checksums; uploads nothing; 12 min
	@$(PY) -m dev.tools.release finish

release-check: install
	@$(PY) -m dev.tools.release check

freeze: install ## Write vectors of every format for this version into tests/vectors/releases; 5 s
	@$(PY) -m dev.tools.freeze

clean: ## Remove what running leaves (.run and caches); what is installed stays
	rm -rf .run .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist site
	find . -path ./.local -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean ## Remove what was installed too (.local)
	rm -rf .local *.egg-info cdc_native/*/*.so cdc_native/.compiled.json
