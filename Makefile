# Two verbs do all the set-up: `make check` and `make test`. The rest is for those who work here.

PYTHON ?= python3
VENV := .venv
EFFORT ?= quick
BIN := $(VENV)/bin
# Two more than there are cores: some tests wait for a server or a time limit.
TESTERS := $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
# The editable install links each file, so it is made anew when a file comes or goes.
FOLDERS := package spec models reference candidates checks pipeline
TREE := $(shell find $(FOLDERS) -name '*.py' -o -name '*.toml' -o -name '*.html' -o -name '*.css' -o -name '*.mjs' -o -name '*.go' -o -name '*.java' | LC_ALL=C sort | cksum | cut -d' ' -f1)
LINKED := $(VENV)/.linked-$(TREE)

# Each command and each worker would compile everything anew without it.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := check
.PHONY: check test quick thorough brokers scoreboard private pipeline java lint types bench release lock clean

check: $(LINKED)  ## Hold the four reference brokers against the documented requirements; EFFORT=deep tries more.
	@$(BIN)/brokerproof check --effort $(EFFORT) $(OPTIONS)

test: $(LINKED) $(VENV)/.dev java  ## Run the tests; T=FILE runs those whose imports reach a file.
	$(BIN)/python -m pytest --numprocesses=$(TESTERS) --dist=worksteal --benchmark-disable --durations=25 $(if $(T),--reaching=$(T))

quick: $(LINKED) $(VENV)/.dev  ## Lint, check types, and run the tests that are quick and need no server.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p brokerproof & types=$$!; \
	  $(BIN)/python -m pytest -q -m "not slow and not thorough and not rabbitmq and not beanstalkd and not postgresql and not redis and not brokers" --numprocesses=auto --dist=worksteal --benchmark-disable; \
	  tested=$$?; wait $$types && exit $$tested

thorough: $(LINKED) $(VENV)/.dev java  ## Run what the tests leave out: the same checks on many more seeds, scopes and cases.
	$(BIN)/python -m pytest -m thorough --numprocesses=auto --dist=worksteal --benchmark-disable

brokers: $(LINKED) $(VENV)/.dev  ## Fetch what Maven Central has of the private brokers, and run the tests that start them.
	-$(BIN)/brokerproof instances install --all
	$(BIN)/python -m pytest -m "brokers and not thorough" --numprocesses=1 --benchmark-disable

scoreboard: $(LINKED) $(VENV)/.dev  ## Fetch and judge all private brokers, and write docs/findings/brokers.md; half an hour.
	-$(BIN)/brokerproof instances install --all
	$(BIN)/python benchmarks/brokers/scoreboard.py

# Those that the tests on a CI host must find.
private: $(LINKED) $(VENV)/.dev
	$(BIN)/brokerproof instances install rabbitmq broker-j activemq

pipeline: $(LINKED) $(VENV)/.dev java  ## Install what `brokerproof trace` and `campaign` need.

# Spark runs on Java 17 or later. Where it cannot be installed here, that is said and all else goes on.
java:
	@$(BIN)/python -c 'from brokerproof.pipeline.spark.session import java; java()' 2>/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    echo "installing a Java runtime" && apt-get update -qq >/dev/null && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
	      openjdk-17-jre-headless >/dev/null; } || \
	  echo "no Java runtime: what needs Spark is left out; install one, as with: sudo apt-get install openjdk-17-jre-headless"

lint: $(LINKED) $(VENV)/.dev  ## Lint and check the format.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(LINKED) $(VENV)/.dev  ## Type-check everything.
	$(BIN)/mypy -p brokerproof
	$(BIN)/mypy tests examples benchmarks

bench: $(LINKED) $(VENV)/.dev  ## Print the benchmarks' figures and ratios.
	set -e; for script in benchmarks/*.py benchmarks/pipeline/measure.py; do $(BIN)/python $$script; done

# The wheel is made of the source distribution, and both are tried where nothing of this folder is in reach.
release: $(LINKED) $(VENV)/.dev  ## Build both distributions, and check an example with them elsewhere.
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	set -e; there=$$(mktemp -d); trap 'rm -rf "$$there"' EXIT; \
	  tar -xzf dist/*.tar.gz -C "$$there" --strip-components=1; \
	  $(PYTHON) -m venv "$$there/venv"; \
	  "$$there/venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock; \
	  "$$there/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps dist/*.whl; \
	  cd "$$there/examples" && ../venv/bin/brokerproof check $(EXAMPLE)
	@cd dist && for made in *; do echo "made dist/$$made, $$(wc -c < $$made) bytes"; done

EXAMPLE := naive_queue.py:make_broker --operations 500 --examples 0 --only fifo-order --no-progress

COMPILE := $(BIN)/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-header \
  --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --build-deps-for=editable

lock: $(VENV)/.dev  ## Compile the lock files anew.
	$(COMPILE) --output-file=requirements.lock pyproject.toml
	$(COMPILE) --extra=amqp --extra=pipeline --extra=dev --constraint=requirements.lock --output-file=requirements-dev.lock pyproject.toml
	$(COMPILE) --extra=amqp10 --constraint=requirements-dev.lock --output-file=requirements-amqp10.lock pyproject.toml

$(VENV)/.core: requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	touch $@

# The client of AMQP 1.0 is compiled here. Where it cannot be, that is said and its tests are left out.
$(VENV)/.dev: requirements-dev.lock requirements-amqp10.lock $(VENV)/.core
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-amqp10.lock 2>/dev/null || \
	  echo "python-qpid-proton was not built: tests of AMQP 1.0 are left out; install a C compiler and Python's headers, and: rm $@"
	touch $@

$(LINKED): $(VENV)/.core pyproject.toml
	rm -rf build $(VENV)/.linked-*
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --config-settings editable_mode=strict --editable .
	touch $@

clean:  ## Remove everything that was made here.
	rm -rf $(VENV) build dist *.egg-info .brokerproof .brokerproof-trace .brokerproof-watch .hypothesis .mypy_cache .ruff_cache
