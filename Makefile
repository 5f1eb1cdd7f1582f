# make demo     installs what it needs, then runs the main jobs on data that comes with the package
# make test     installs what it needs, then passes the whole suite (style, types, contracts, docs, tests)
# make thorough the suite with what takes minutes more: papers run again on whole tables, engines of other makers, long grids
# make check    style and types only
# make bench    speed and accuracy beside other libraries, which get an environment of their own (BENCH=--quick: a first look)
# make docs     the documentation site, in site/
# make package  a wheel and a source archive in dist/, built twice and equal to the byte, each tried in an empty environment, with a
#               bill of materials; refused while a published figure is older than the code it measures (OLD=marked: built all the
#               same, the page marks such figures)
# make lock     resolves everything that `make demo` and `make test` install anew, with hashes, into requirements.lock
# make locked   fills .venv from requirements.lock, hashes checked, instead of with the newest versions
# make museum   plants every known fault in a copy of the package; the check of `sabun audit` that noticed it must notice it again
# make fuzz     the fuzzers of tests/fuzz for FUZZ_SECONDS each (60), again until FUZZ_INPUTS (0), figures in docs/results/fuzz.json

PYTHON ?= python3
TORCH  ?= torch==2.13.0
VENV   := .venv
BIN    := $(VENV)/bin
FLOWER := .venv-flower
EMPTY  := .venv-empty
LOCK   := .venv-lock
PIP    := -m pip install --quiet --disable-pip-version-check
LINTED := src tests benchmarks examples notebooks docs/jobs tools

# The suite starts hundreds of processes; without bytecode on disk each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

FUZZ_SECONDS ?= 60
FUZZ_INPUTS  ?= 0

# The date inside an archive is that of the last commit, so that whoever builds this commit gets these bytes.
EPOCH := $(shell git log -1 --format=%ct 2>/dev/null)
ifneq ($(EPOCH),)
export SOURCE_DATE_EPOCH := $(EPOCH)
endif

.PHONY: demo test thorough check style types suite bench docs package lock locked museum fuzz clean
.DELETE_ON_ERROR:

define an_environment
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Sabun needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
endef

$(VENV)/.installed: pyproject.toml
	$(an_environment)
	@echo "Installing Sabun into $(VENV) (about a minute the first time) ..."
	@$(BIN)/python $(PIP) -e '.[service]'
	@touch $@

# torch comes first and by its exact version, so that no other package chooses one. All that the demo needs comes along.
$(VENV)/.installed-dev: pyproject.toml
	$(an_environment)
	@echo "Installing the tools and extras of the test suite into $(VENV) ..."
	@$(BIN)/python $(PIP) --no-compile '$(TORCH)'
	@$(BIN)/python $(PIP) --no-compile -e '.[dev,learning]'
	@$(BIN)/python -W ignore -m compileall -qq -j 2 $(VENV)/lib || true  # pip would do it on one core
	@touch $(VENV)/.installed $@

# Flower pins older versions of what the command line needs, so it lives apart; it only carries files.
$(FLOWER)/.installed:
	@echo "Installing Flower into $(FLOWER) ..."
	@test -x $(FLOWER)/bin/python || $(PYTHON) -m venv $(FLOWER)
	@$(FLOWER)/bin/python $(PIP) 'flwr==1.41.*'
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/sabun demo

style: $(VENV)/.installed-dev
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/ruff check $(LINTED)

types: $(VENV)/.installed-dev
	$(BIN)/mypy

check: style types

# An installer and mypy keep one core busy each: the two environments are filled at once, and the tests do not wait for the
# types, whose errors fail the whole all the same.
test thorough:
	@$(MAKE) --no-print-directory -j2 $(VENV)/.installed-dev $(FLOWER)/.installed
	@$(MAKE) --no-print-directory style
	@$(MAKE) --no-print-directory -j2 types suite TESTS="$(TESTS)"

thorough: TESTS := -m ''

suite: $(VENV)/.installed-dev $(FLOWER)/.installed
	$(BIN)/pytest -n 2 --dist worksteal $(TESTS)

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks $(BENCH)

docs: $(VENV)/.installed-dev
	$(BIN)/mkdocs build --strict
	@echo "Open site/index.html. Browsers search only what is served: $(BIN)/python -m http.server -d site"

package: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.page --check || test '$(OLD)' = marked
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python -m build --outdir dist/again
	@for file in dist/*.whl dist/*.tar.gz; do cmp $$file dist/again/$${file#dist/} && sha256sum $$file || exit 1; done
	rm -rf dist/again
	@for file in dist/*.whl dist/*.tar.gz; do \
	  echo "Trying $$file in an empty environment ..."; \
	  rm -rf $(EMPTY) && $(PYTHON) -m venv $(EMPTY) && $(EMPTY)/bin/python $(PIP) $$file && $(EMPTY)/bin/python -m pip check \
	  && $(EMPTY)/bin/sabun --version && $(EMPTY)/bin/sabun demo --quick || exit 1; \
	done
	$(EMPTY)/bin/python tools/sbom.py dist/*.whl --out dist/sbom.cdx.json
	rm -rf $(EMPTY)

# torch is left out: which build of it fits (CPU, CUDA) depends on the machine, and its CPU builds carry other hashes than PyPI's.
lock:
	@test -x $(LOCK)/bin/python || $(PYTHON) -m venv $(LOCK)
	@$(LOCK)/bin/python $(PIP) --upgrade uv
	@echo torch > $(LOCK)/left-out.txt
	@{ sed -n '/^[^#]/q;p' requirements.lock; $(LOCK)/bin/uv pip compile pyproject.toml --extra dev --extra learning --universal \
	  --python-version 3.11 --generate-hashes --excludes $(LOCK)/left-out.txt --no-emit-package sabun --no-annotate --no-header \
	  --upgrade --quiet; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock

locked:
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --require-hashes -r requirements.lock
	$(BIN)/python $(PIP) '$(TORCH)'
	$(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $(VENV)/.installed $(VENV)/.installed-dev

museum: $(VENV)/.installed-dev
	$(BIN)/sabun audit --museum

fuzz: $(VENV)/.installed-dev
	cd tests && ../$(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) --until $(FUZZ_INPUTS) --out ../docs/results/fuzz.json

clean:
	rm -rf $(VENV) $(FLOWER) $(EMPTY) $(LOCK) .venv-peers* build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
