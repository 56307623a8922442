# Everything is installed into this folder (.local, .run); nothing outside it changes. `make help` explains.
PYTHON ?= python3
VENV := .local/venv
PY := $(VENV)/bin/python
PYTEST_ARGS ?=
WORKERS ?= 2
MODEL_ARGS := $(if $(SEED),--seed $(SEED)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(STATEMENTS),--statements $(STATEMENTS)) \
	$(if $(VERSION),--version $(VERSION)) $(if $(CLUSTER),--cluster)
CHAOS_ARGS := $(if $(SEED),--seed $(SEED)) $(if $(RUNS),--runs $(RUNS)) $(if $(POINT),--point $(POINT))
FOLLOW_ARGS := $(if $(TABLE),--table $(TABLE)) $(if $(JSON),--json)

INSTALLED := test -x $(PY) || { echo "No stack is running. Start one in another terminal: make stack" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help preflight install archive demo stack follow cqlsh test failed unit model repro model-mutants exhaustive chaos fuzz fold lint format \
	oracle oracle-merge oracle-types bench bench-state bench-moves bench-idle bench-sizes bench-wide bench-publisher-memory dist clean distclean

help: ## Show this help
	@echo "Usage: make TARGET [VARIABLE=value]"
	@echo
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "Variables:"
	@echo "  PYTHON      the Python to install with, 3.11 or newer (default: python3)"
	@echo "  TABLE       the table to follow, KEYSPACE.TABLE (make follow; default: every table)"
	@echo "  JSON        1 for one JSON object a line (make -s follow; for pipes)"
	@echo "  PYTEST_ARGS more arguments for pytest (make test PYTEST_ARGS='-k merge')"
	@echo "  WORKERS     how many tests run at a time (make test; default: 2); 0 for one after the other, with their output"
	@echo "  SEED, SEEDS the first seed, and how many (make model; default: 1, 20)"
	@echo "  STATEMENTS  of each seed (make model; default: 5000)"
	@echo "  RUNS        how many runs over the whole path (make chaos; default: 20); POINT: the one fault point to try"
	@echo "  VERSION     Cassandra's (make model; default: 5.0; make oracle: several by commas, default: all)"
	@echo "  MUTATIONS   how many of each version (make oracle; default: 100000)"
	@echo "  DEFECT      one of make model-mutants', to see make repro find and shrink it"
	@echo "  CLUSTER     1 for two datacenters, with two CDC nodes that hold everything twice (make model)"
	@echo "  FUZZ_RUNS   how many damaged inputs (make fuzz); FUZZ_SEED starts another series"
	@echo "  BENCH_ARGS  arguments for make bench-state and bench-idle (BENCH_ARGS=--profile; --help lists them)"
	@echo "  SERVERS     local or containers: how the tests start Cassandra and Kafka (default: local)"

preflight: ## Say what is missing on this machine, and the command that mends it
	@$(PYTHON) -m local_stack.install.preflight

install: ## Install Python packages, a Java runtime and the servers' jars into .local (demo and test do it too)
	@$(PYTHON) -m local_stack.install.bootstrap

archive: install ## Pack the materializer with all that it needs for Spark's executors: dist/materializer.tar.gz
	@mkdir -p dist
	@$(PY) -m materializer archive dist/materializer.tar.gz

demo: install ## Story, load and comparison on a real Cassandra, Kafka and Spark; about 90 s once installed
	@$(PY) -m local_stack.demo.demo

stack: install ## Start the same and stay until Ctrl-C, to try things by hand
	@$(PY) -m local_stack.demo.stack_command

follow: ## Print the changes of the running stack, before and after: make follow TABLE=shop.orders
	@$(INSTALLED)
	@$(PY) -m local_stack.clients.follow $(FOLLOW_ARGS)

cqlsh: ## Open a CQL shell on the running stack
	@$(INSTALLED)
	@$(PY) -m local_stack.clients.cqlsh

test: install ## Run all tests, two at a time; those that need servers start them
	@$(PY) -m pytest -n $(WORKERS) --dist loadfile $(PYTEST_ARGS)

failed: install ## Run again, one after the other and with the machine to itself, the tests that failed in the last run
	@$(PY) -m pytest --last-failed --last-failed-no-failures none $(PYTEST_ARGS)

unit: install ## Run the tests that need no server
	@$(PY) -m pytest -m "not servers" $(PYTEST_ARGS)

model: install ## Random statements through the whole path, compared with SELECT *: make model SEEDS=20 STATEMENTS=5000
	@$(PY) -m verify.model $(MODEL_ARGS)

exhaustive: install ## Run the tests that take too long for every run: older versions, two nodes, crashes, logins, purge
	@CDC_EXHAUSTIVE=1 $(PY) -m pytest -v -m exhaustive $(PYTEST_ARGS)

chaos: install ## Kill, stop and wake everything, at every fault point and under load, and compare: make chaos SEED=1 RUNS=20
	@$(PY) -m verify.chaos $(CHAOS_ARGS)

fold: install ## Check the fold against its model, without servers, in more examples of each kind: EXAMPLES (1000)
	@FOLD_EXAMPLES=$(or $(EXAMPLES),1000) $(PY) -m pytest -v --timeout 86400 tests/unit/materializer/fold/test_fold_model.py \
		tests/unit/materializer/fold/test_reorder.py tests/unit/materializer/fold/test_purge.py

fuzz: install ## Feed damaged bytes to every reader; nothing but the format's error may come out
	@$(PY) -c "import atheris" 2>/dev/null || $(VENV)/bin/pip install --quiet --editable '.[fuzz]'
	@$(PY) -m verify.fuzz

repro: install ## Run a seed of make model again and shrink what differs: make repro SEED=7
	@$(PY) -m verify.model.repro $(MODEL_ARGS) $(if $(DEFECT),--defect "$(DEFECT)")

model-mutants: install ## Seed defects into the Spark job, one after the other: make model's check must find each
	@$(PY) -m verify.model.mutate

lint: install ## Check style, format, types and the direction of dependencies
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

format: install ## Format the code and mend what ruff can
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

oracle: install ## Read random CQL's commit logs by Cassandra's own reader and ours: MUTATIONS (100000) of each VERSION (all)
	@$(PY) -m verify.oracle.run $(if $(VERSION),--versions $(VERSION)) $(if $(MUTATIONS),--mutations $(MUTATIONS)) $(if $(SEED),--seed $(SEED))

oracle-merge: install ## Merge rows by Cassandra's own classes and ours: MERGES (1000000) of each VERSION (all)
	@$(PY) -m verify.oracle.merge_check $(if $(VERSION),--versions $(VERSION)) $(if $(MERGES),--merges $(MERGES)) $(if $(SEED),--seed $(SEED))

oracle-types: install ## Compare the order of our keys with the comparators of each VERSION (all): PAIRS (1000000)
	@$(PY) -m verify.oracle.order_check $(if $(VERSION),--versions $(VERSION)) $(if $(PAIRS),--pairs $(PAIRS)) $(if $(SEED),--seed $(SEED))

bench-state: install ## Does an update's cost grow with the state? CPU seconds per million at 10^5 to 3*10^6 rows; about 4 minutes
	@$(PY) -m bench.state $(BENCH_ARGS)

bench-moves: install ## Ten moves of a 10^6-row partition between two workers: bytes read and written, time to be ready
	@$(PY) -m bench.state_moves

bench-publisher-memory: install ## A publisher's memory over 2,000,000 mutations with Kafka stopped half-way; some minutes
	@$(PY) -m bench.publisher_memory $(BENCH_ARGS)

bench-idle: install ## What do 400 raw partitions cost that get nothing but heartbeats? CPU, memory, latency; about 8 minutes
	@$(PY) -m bench.idle $(BENCH_ARGS)

bench: install ## Measure the hot paths: CPU seconds per million, and as a ratio to a peer
	@$(PY) -m bench.hot_paths

bench-sizes: install ## How many bytes does a write become in log, raw and change topics, and state? Without servers
	@$(PY) -m bench.sizes

bench-wide: install ## Measure memory and time of what reaches every row of a partition of ROWS (100000 1000000) rows
	@$(PY) -m bench.wide_partitions $(ROWS)

dist: install ## Make a compiled wheel, and an archive with its Python for each program that runs beside Cassandra, in dist/
	@$(PY) -m tools.distribution

clean: ## Remove what running leaves behind (.run and caches); what is installed stays
	rm -rf .run .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -path ./.local -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean ## Remove what was installed too (.local)
	rm -rf .local *.egg-info
