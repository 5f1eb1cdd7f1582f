# make demo     installs what it needs, then runs the main jobs on data that comes with the package
# make test     installs what it needs, then passes the whole suite (style, types, contracts, docs, tests)
# make check    style and types only
# make bench    speed and accuracy beside other libraries, which get an environment of their own (BENCH=--quick: a first look)
# make docs     the documentation site, in site/
# make package  a wheel and a source archive in dist/, each tried in an empty environment; refused while a published figure is
#               older than the code it measures

PYTHON ?= python3
TORCH  ?= torch==2.13.0
VENV   := .venv
BIN    := $(VENV)/bin
FLOWER := .venv-flower
EMPTY  := .venv-empty
PIP    := -m pip install --quiet --disable-pip-version-check
LINTED := src tests benchmarks examples notebooks docs/jobs tools

.PHONY: demo test check bench docs package clean
.DELETE_ON_ERROR:

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Sabun needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing Sabun into $(VENV) (about a minute the first time) ..."
	@$(BIN)/python $(PIP) -e .
	@touch $@

# torch comes first and by its exact version, so that no other package chooses one.
$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "Installing the tools and extras of the test suite into $(VENV) ..."
	@$(BIN)/python $(PIP) '$(TORCH)'
	@$(BIN)/python $(PIP) -e '.[dev,learning]'
	@touch $@

# Flower pins older versions of what the command line needs, so it lives apart; it only carries files.
$(FLOWER)/.installed:
	@echo "Installing Flower into $(FLOWER) ..."
	@test -x $(FLOWER)/bin/python || $(PYTHON) -m venv $(FLOWER)
	@$(FLOWER)/bin/python $(PIP) 'flwr==1.41.*'
	@touch $@

demo: $(VENV)/.installed
	@$(BIN)/sabun demo

check: $(VENV)/.installed-dev
	$(BIN)/ruff format --check $(LINTED)
	$(BIN)/ruff check $(LINTED)
	$(BIN)/mypy

test: check $(FLOWER)/.installed
	$(BIN)/pytest -n 2 --dist worksteal

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks $(BENCH)

docs: $(VENV)/.installed-dev
	$(BIN)/mkdocs build --strict
	@echo "Open site/index.html. Browsers search only what is served: $(BIN)/python -m http.server -d site"

package: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks.page --check
	rm -rf dist
	$(BIN)/python -m build
	@for file in dist/*.whl dist/*.tar.gz; do \
	  echo "Trying $$file in an empty environment ..."; \
	  rm -rf $(EMPTY) && $(PYTHON) -m venv $(EMPTY) && $(EMPTY)/bin/python $(PIP) $$file && $(EMPTY)/bin/python -m pip check \
	  && $(EMPTY)/bin/sabun --version && $(EMPTY)/bin/sabun demo --quick || exit 1; \
	done
	rm -rf $(EMPTY)

clean:
	rm -rf $(VENV) $(FLOWER) $(EMPTY) .venv-peers* build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
