# Every task by one word. `make` alone prints them.
#
# A fresh machine needs Python 3.11 or newer, make and pip; the rest goes into $(VENV).

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Marks of installed packages: those that `make demo` needs, and all.
USABLE := $(VENV)/.usable
READY  := $(VENV)/.ready
DIR    ?=
ARGS   ?=
TOGETHER ?= 4
# A part of `make test-all`, such as 1/3, and the tag that `make dist` checks the packages for.
SHARD  ?=
TAG    ?=

# Stores of these tasks live here, never in the user's own directory, and never at a URL or in a namespace from the environment.
unexport HOLDFAST_URL REDIS_URL HOLDFAST_NAMESPACE
# Tests start hundreds of programs, which would compile all modules again each time.
unexport PYTHONDONTWRITEBYTECODE
export HOLDFAST_DIR := $(CURDIR)/.holdfast/store
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

INSTALL = $(PYTHON) -m pip --python $(BIN)/python install --quiet --constraint constraints.txt --editable
LOUD = printf '\033[1;31m%s\033[0m\n'

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all coverage mutants check format-check fmt lint lua-lint types rules core bench bench-web docs dist clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | awk -F '\t' '{ printf "  make %-10s %s\n", $$1, $$2 }'

setup: $(READY) ## make .venv and install everything into it

$(USABLE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { $(LOUD) "holdfast needs Python 3.11 or newer: make PYTHON=python3.11 …"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || $(PYTHON) -m venv --without-pip $(VENV)
	$(INSTALL) '.[web]'
	@touch $@

$(READY): $(USABLE)
	$(INSTALL) '.[dev]'
	@touch $@

demo: $(USABLE) ## run jobs over real files and kill a worker halfway (DIR=… for other files)
	@HOLDFAST_DIR="$(CURDIR)/.holdfast/demo" $(BIN)/holdfast demo $(if $(DIR),"$(DIR)") $(ARGS)

test: $(READY) ## run the tests of every day, TOGETHER=4 at a time (ARGS=… for pytest)
	HOLDFAST_TESTS=everyday $(BIN)/pytest -n $(TOGETHER) --dist worksteal $(ARGS)

test-all: $(READY) ## run all tests (SHARD=1/3: the first of three parts)
	HOLDFAST_SHARD=$(SHARD) $(BIN)/pytest -n $(TOGETHER) --dist worksteal $(ARGS)

coverage: $(READY) ## report which branches the tests of every day cover (.coverage/html has the lines)
	rm -rf .coverage && mkdir .coverage
	-HOLDFAST_TESTS=everyday $(BIN)/coverage run -m pytest -n $(TOGETHER) --dist worksteal $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage html --quiet
	$(BIN)/coverage report

mutants: $(READY) ## change the code in small ways, and count what the tests find (ARGS='--most 20'; a later run continues)
	$(BIN)/python tests/mutants.py $(ARGS)

check: format-check lint types rules ## check format, lint, types and architecture, as CI does before the tests

format-check: $(READY)
	$(BIN)/ruff format --check

fmt: $(READY) ## format the code, and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint: $(READY) lua-lint ## lint Python and Lua
	$(BIN)/ruff check

lua-lint:
	@if command -v luacheck >/dev/null; then luacheck --quiet src/holdfast/core/lua; \
	else $(LOUD) "LOUD SKIP: luacheck is not installed, so the Lua core was not checked"; fi

types: $(READY) ## check the types, twice, and that the checkers find what is wrong
	$(BIN)/mypy
	@if $(BIN)/pyright --version >/dev/null 2>&1; then $(BIN)/pyright --pythonpath $(BIN)/python; \
	else $(LOUD) "LOUD SKIP: pyright could not be started (it fetches node.js), so only mypy checked the types"; fi
	$(BIN)/pytest tests/typing

rules: $(READY)
	$(BIN)/pytest tests/architecture

core: $(READY) ## assemble the Lua core and print its version and size
	@$(BIN)/python -c 'from holdfast.core.library import library as make; core = make(); \
		print(core.name, core.version, core.digest, len(core.functions), "functions,", len(core.text), "bytes")'

bench: $(READY) ## measure (ARGS=… for the benchmarks)
	@HOLDFAST_DIR="$(CURDIR)/.holdfast/bench" $(BIN)/python -m benchmarks $(ARGS)

bench-web: $(READY) ## measure the web UI over a million jobs (ARGS=--quick: a tenth of them)
	@HOLDFAST_DIR="$(CURDIR)/.holdfast/bench" $(BIN)/python -m benchmarks web $(ARGS)

docs: $(READY) ## write the reference pages, and the bounds and the layout of the core
	$(BIN)/python docs/generators/reference.py docs/reference
	$(BIN)/python -c 'from holdfast.bounds import in_lua; print(in_lua(), end="")' > src/holdfast/core/lua/base/bounds.lua
	$(BIN)/python -c 'from holdfast.models.layout import in_lua; print(in_lua(), end="")' > src/holdfast/core/lua/base/layout.lua

dist: $(READY) ## build wheel and sdist into dist/, and check what is in them (TAG=v1.2.3: for this release)
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/python tests/architecture/distribution.py dist $(TAG)

clean: ## end the stores of these tasks and remove everything they made
	-@for store in .holdfast/*/; do \
		test ! -e "$$store/lock" || $(BIN)/holdfast store stop --dir "$$store"; done
	rm -rf .holdfast .ci-venv .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find src tests $(wildcard benchmarks docs/examples) -name __pycache__ -type d -prune -exec rm -rf {} +
