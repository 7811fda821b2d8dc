# `make help` lists the targets; it is made from the `##` texts below.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CONFIG ?= configs/quickstart.toml
WORKSPACE ?= data
WORKERS ?=
# A file stays on one worker: what its tests share, such as a whole quickstart, is then made once.
PYTEST_PARALLEL = -n auto --dist loadfile --no-loadscope-reorder
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev build-testbeds publish status test test-lowest test-harness check format bench audit docs tokenizer samples lock clean

help: ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.installed ## Install what running needs into .venv, from the lock with hashes

setup-dev: $(VENV)/.installed-dev ## Install what testing and checking need as well

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Postquem needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ..." >&2; exit 2; }
	@git --version >/dev/null 2>&1 || { echo "Postquem needs git on the PATH; install it first" >&2; exit 2; }
	@$(PYTHON) -m venv $(VENV) || { echo "install the venv module first (Debian: apt-get install python3-venv)" >&2; exit 2; }
	@touch $@

$(VENV)/.installed: $(VENV)/.created requirements.lock pyproject.toml
	@echo "Installing Postquem into $(VENV) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed requirements-dev.lock
	@echo "Installing the development tools into $(VENV) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock
	@touch $@

build-testbeds: $(VENV)/.installed ## Build a release (CONFIG=configs/quickstart.toml WORKSPACE=data)
	@$(BIN)/postquem build --config $(CONFIG) --workspace $(WORKSPACE) $(if $(WORKERS),--workers $(WORKERS))

# Without RELEASE and REPO nothing is installed first: the usage is all there is to say.
publish: $(if $(and $(RELEASE),$(REPO)),$(VENV)/.installed-dev) ## Push a release to the Hub (RELEASE=folder REPO=owner/name PRIVATE=yes DRY_RUN=yes)
	@test -n "$(RELEASE)" -a -n "$(REPO)" || \
	  { echo "usage: make publish RELEASE=data/releases/quickstart REPO=owner/name [PRIVATE=yes] [DRY_RUN=yes]" >&2; exit 2; }
	@$(BIN)/postquem release push "$(RELEASE)" --repo "$(REPO)" $(if $(filter yes,$(PRIVATE)),--private) \
	  $(if $(filter yes,$(DRY_RUN)),--dry-run)

status: $(VENV)/.installed ## Show what is done in the workspace
	@$(BIN)/postquem status --config $(CONFIG) --workspace $(WORKSPACE)

test: $(VENV)/.installed-dev ## Run the tests on all cores
	$(BIN)/python -m pytest $(PYTEST_PARALLEL)

test-lowest: $(VENV)/.installed-dev ## Run the tests with the oldest dependencies that pyproject.toml admits
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python $(BIN)/python --extra build --extra dev \
	  pyproject.toml -o build/requirements-lowest.txt
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/venv-lowest
	$(BIN)/uv pip install --quiet --python build/venv-lowest/bin/python -r build/requirements-lowest.txt
	$(BIN)/uv pip install --quiet --python build/venv-lowest/bin/python --no-deps --no-build-isolation -e .
	build/venv-lowest/bin/python -m pytest $(PYTEST_PARALLEL)

test-harness: $(VENV)/.installed-dev requirements-harness.lock ## Run a release's task files with lm-evaluation-harness and Inspect (docs/adr/0012)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/venv-harness
	$(BIN)/uv pip install --quiet --python build/venv-harness/bin/python --require-hashes -r requirements-harness.lock
	$(BIN)/uv pip install --quiet --python build/venv-harness/bin/python --no-deps --no-build-isolation -e .
	build/venv-harness/bin/python -m pytest -o filterwarnings=ignore tests/harness

check: $(VENV)/.installed-dev ## Lint, types, dependency rule, size budget, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.check_structure
	$(BIN)/python -m tools.data_dictionary --check
	$(BIN)/python -m tools.configuration --check
	$(BIN)/python -m tools.commands --check

format: $(VENV)/.installed-dev ## Format the code and apply safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev ## Measure us against the peers, side by side
	$(BIN)/python -m bench

# Without REPO nothing is installed first: the usage is all there is to say.
audit: $(if $(REPO),$(VENV)/.installed-dev) ## Compare the miner with the ast oracle (REPO=path SINCE=2024-01-01 HISTORY=2y)
	@test -n "$(REPO)" || { echo "usage: make audit REPO=path/to/repository [SINCE=2024-01-01] [HISTORY=all]" >&2; exit 2; }
	$(BIN)/python -m tests.oracles.audit "$(REPO)" --since $(or $(SINCE),2024-01-01) \
	  --history $(or $(HISTORY),2y)

docs: $(VENV)/.installed-dev ## Write the generated documents again
	$(BIN)/python -m tools.data_dictionary
	$(BIN)/python -m tools.configuration
	$(BIN)/python -m tools.commands

tokenizer: $(VENV)/.installed-dev ## Train the tokenizer again (downloads its pinned corpus)
	$(BIN)/python -m tools.train_tokenizer

samples: $(VENV)/.installed-dev ## Write the sample repositories again from their source
	$(BIN)/python -m tools.make_samples

lock: $(VENV)/.installed-dev ## Resolve the dependencies again into the three locks
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra build pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra build --extra dev --extra bench -c requirements.lock pyproject.toml -o requirements-dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --extra build --extra dev --extra harness pyproject.toml -o requirements-harness.lock

clean: ## Remove caches and builds; keeps the workspace and .venv
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache *.egg-info
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
