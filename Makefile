# Everything sets itself up: a virtual environment in .venv with all that requirements-dev.lock names.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Tests on a hub mostly wait: three for each CPU.
WORKERS ?= $(shell echo $$((3 * $$(getconf _NPROCESSORS_ONLN))))
# On a real API server, each has one of its own, and an etcd.
ENVTEST_WORKERS ?= $(or $(shell getconf _NPROCESSORS_ONLN 2>&-),1)
KUEUE ?= 0.20

# The tests start some hundred processes: without bytecode each of them compiles the package anew.
unexport PYTHONDONTWRITEBYTECODE

# Of every platform and Python, as the image has another Python than this machine.
LOCK := --quiet --universal --generate-hashes --python-version 3.11 --no-header --no-annotate --upgrade
# Scripts that wait for fixed times: six at a time, and nothing beside them.
CASES := tests/published/cases
# The three packages, and how their names are kept out of what is locked.
PROJECTS := pyproject.toml kubectl_placement/pyproject.toml placement_lab/pyproject.toml
NOT_OURS := --no-emit-package placement-ac --no-emit-package kubectl-placement
OURS := --editable . --editable kubectl_placement --editable placement_lab
# A name that no registry answers for: set your own to push it.
IMAGE ?= localhost/placement-ac:v0.1.0
SBOM ?= build/placement-ac.cdx.json
# Apart from the other tools: a library that cyclonedx-bom needs is imported by `kubernetes` where it is installed, for a
# second of every start.
SBOM_VENV := build/sbom
# Clients of others, each in an environment of its own: they need different releases of the same packages.
CLIENTS := $(patsubst tests/clients/requirements/%.in,%,$(wildcard tests/clients/requirements/*.in))
DIST ?= dist
WHEEL_VENV ?= build/wheels

.PHONY: help demo pictures chart manifests reference test test-long test-shared test-cases test-clients test-failed check collect unit coverage test-envtest test-kind test-real lock sbom audit chaos day image dist format lines docs docs-serve bench bench-jobs bench-flips bench-growth bench-memory bench-trace bench-profile clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(or $(wildcard $(VENV)/installed),$(VENV)/installed-demo) ## Show the four stories on embedded hubs; the first time, install what that needs
	$(BIN)/placement-ac demo

pictures: $(VENV)/installed ## Make the pictures in docs/images anew, on an embedded hub
	$(BIN)/python -m website.photographs
	$(BIN)/python -m website.ui_photographs
	$(BIN)/python -m website.workload_photographs

chart: $(VENV)/installed ## Write the chart's schema and table of values anew, from its values.yaml and the settings
	$(BIN)/python -m website.chart

manifests: $(VENV)/installed ## Write the chart's rules and the table of permissions anew, from the roles in config
	$(BIN)/python -m website.manifests

reference: $(VENV)/installed ## Write the tables of options in docs/reference.md anew, from the commands' help
	$(BIN)/python -m website.options

test: $(VENV)/installed ## Check formatting, lint, types, layers and workflows, then run the tests: five minutes on two cores
	@$(MAKE) --no-print-directory --jobs 2 check collect
	@$(MAKE) --no-print-directory unit

check: $(VENV)/installed ## Check formatting, lint, types, layers and workflows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet --persona pedantic .github
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms .github/ISSUE_TEMPLATE/[!c]*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml

# So their assertions are compiled once: of the processes that run tests, each would compile all of them.
collect: $(VENV)/installed
	@$(BIN)/pytest --collect-only -q > $(VENV)/collected || { cat $(VENV)/collected; exit 1; }

unit: $(VENV)/installed ## Run the tests that are not long; with COVERAGE=yes, measure their coverage: on Python 3.11 it takes nearly twice as long
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -rs -m 'not long and not clients' $(if $(COVERAGE),--cov --cov-report=term:skip-covered)

coverage: ## The same with COVERAGE=yes
	$(MAKE) unit COVERAGE=yes

test-long: $(VENV)/installed ## Run the long tests: whole installations, many kills, many jobs; ONLY names folders
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m 'long and not shared' $(ONLY)

test-shared: $(VENV)/installed ## Compare with CRDs and recordings of others, if they are here: see CONTRIBUTING.md
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m shared --ignore $(CASES) tests/published

test-cases: $(VENV)/installed ## Play the cases of users, if they are here; ONLY names files: see CONTRIBUTING.md
	$(BIN)/pytest -n 6 -m shared $(or $(ONLY),$(CASES))

test-clients: $(VENV)/installed $(CLIENTS:%=build/clients/%/installed) ## Run clients of others against the embedded hub; installs them, 600 MB; ONLY names files
	$(BIN)/pytest -v -rs -m clients --timeout 300 $(or $(ONLY),tests/clients)

test-failed: $(VENV)/installed ## Run the tests that failed last again, one after the other
	$(BIN)/pytest --last-failed --last-failed-no-failures none

test-envtest: $(VENV)/installed ## Run the hub tests on a real API server; needs KUBEBUILDER_ASSETS; CRDS names a folder with others
	@$(BIN)/pytest -n $(ENVTEST_WORKERS) --dist worksteal --envtest $(if $(CRDS),--crds '$(CRDS)') --timeout 300 -rs tests

test-kind: $(VENV)/installed ## Play stories 1 to 3 on what ./setup-env.sh has made
	@$(BIN)/pytest --kind -v --timeout 1800 tests/kind

test-real: $(VENV)/installed ## Check a real hub with Kueue: HUB=kubeconfig WORKER_KUBECONFIGS=name=kubeconfig,… DISPATCHER=yes
	@$(BIN)/pytest -v -rs $(if $(HUB),--hub-kubeconfig '$(HUB)') $(if $(WORKER_KUBECONFIGS),--worker-kubeconfigs '$(WORKER_KUBECONFIGS)') \
	  $(if $(DISPATCHER),--dispatcher) tests/real

docs: $(VENV)/installed ## Build the documentation site into build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

docs-serve: $(VENV)/installed ## Show the documentation site on http://127.0.0.1:8000, and follow changes
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --strict

lines: ## Count the lines: Python by package, the controller's by folder, the documents, the manifests
	@count() { n=$$(git ls-files -z -- "$$@" | xargs -0r cat | wc -l); [ "$$n" = 0 ] || printf '%8d  %s\n' "$$n" "$$name"; }; \
	for name in placement_ac kubectl_placement placement_lab bench tests website; do count "$$name/*.py"; done; \
	for name in placement_ac/*/ placement_ac/core/*/; do count "$$name*.py"; done; \
	name='docs and README, in English'; count README.md 'docs/*.md' ':!docs/zh'; \
	name='charts, config and samples'; count charts config samples

format: $(VENV)/installed ## Format the code and mend what lint can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/installed ## Measure a change and a burst, beside the least that can be done; QUICK=1, also below: small, in a few minutes
	$(BIN)/python -m bench $(if $(QUICK),--quick)

bench-jobs: $(VENV)/installed ## Measure when jobs start, their copies, and how long all take; on real servers with HUB and WORKER_KUBECONFIGS as for test-real, and DISPATCHER
	@$(if $(HUB),$(BIN)/python -m bench.real_jobs --hub-kubeconfig '$(HUB)' --worker-kubeconfigs '$(WORKER_KUBECONFIGS)' \
	  --dispatcher '$(DISPATCHER)',$(BIN)/python -m bench.jobs --kueue '$(KUEUE)') $(if $(QUICK),--jobs 20)

bench-flips: $(VENV)/installed ## Measure how long jobs wait to start while the best cluster changes
	$(BIN)/python -m bench.flips --parallel 3 --kueue '$(KUEUE)' $(if $(QUICK),--rows placement-ac --running 3 --seconds 10 --flips 2 --gap 4)

bench-growth: $(VENV)/installed ## Measure how a change, a burst and a start grow with checks, clusters and Workloads
	$(BIN)/python -m bench.growth $(if $(QUICK),--quick)

bench-memory: $(VENV)/installed ## Measure the memory at rest, from nothing to 5,000 clusters and to 100,000 Workloads
	$(BIN)/python -m bench.memory $(if $(QUICK),--quick)

bench-trace: $(VENV)/installed ## Count the files and calls of the controller that one changed decision runs through
	$(BIN)/python -m bench.trace

bench-profile: $(VENV)/installed ## Show where the controller's time goes while decisions change
	$(BIN)/python -m bench.profile $(if $(QUICK),--checks 20 --changes 40)

lock: $(VENV)/installed ## Lock what the image holds and what the tests use, with hashes, by pyproject.toml
	@echo '# The packages in the image, each with its hashes. Made by `make lock` from pyproject.toml; not edited by hand.' > requirements.lock
	$(BIN)/uv pip compile $(LOCK) pyproject.toml >> requirements.lock
	@echo '# The packages that build the wheel for the image, with hashes. Made by `make lock`; not edited by hand.' > requirements-build.lock
	@echo '# The packages that the demo and the commands of an admin need, each with its hashes. Made by `make lock`; not edited by hand.' > requirements-demo.lock
	$(BIN)/uv pip compile $(LOCK) $(NOT_OURS) $(PROJECTS) >> requirements-demo.lock
	echo 'hatchling>=1.27' | $(BIN)/uv pip compile $(LOCK) - >> requirements-build.lock
	@echo '# The packages that make the SBOM of a release, with hashes. Made by `make lock`; not edited by hand.' > requirements-sbom.lock
	echo 'cyclonedx-bom>=7.2,<8' | $(BIN)/uv pip compile $(LOCK) - >> requirements-sbom.lock
	@echo '# The packages that develop and test it, with hashes. Made by `make lock` from pyproject.toml; not edited by hand.' > requirements-dev.lock
	$(BIN)/uv pip compile $(LOCK) --all-extras $(NOT_OURS) $(PROJECTS) >> requirements-dev.lock
	for client in $(CLIENTS); do \
		locked=tests/clients/requirements/$$client.lock; \
		echo '# The packages of `make test-clients`, with hashes. Made by `make lock` from the .in file beside it; not edited by hand.' > $$locked; \
		$(BIN)/uv pip compile $(LOCK) tests/clients/requirements/$$client.in >> $$locked || exit; \
	done

sbom: $(SBOM_VENV)/installed ## List the packages in requirements.lock as a CycloneDX document; SBOM names it
	@mkdir -p '$(dir $(SBOM))'
	@# Ignored: a lock does not say which package needs which, so the document has no graph.
	PYTHONWARNINGS=ignore $(SBOM_VENV)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-reproducible \
		--output-file '$(SBOM)' requirements.lock

chaos: $(VENV)/installed ## Run two replicas under random faults for ten minutes; SEED and SECONDS name another play
	$(BIN)/python -m tests.chaos --seed $(or $(SEED),1) --seconds $(or $(SECONDS),600)

day: $(VENV)/installed ## Play a day of jobs and troubles in virtual time, in each mode; SEED and HOURS name another one
	$(BIN)/python -m tests.day --seed $(or $(SEED),1) --hours $(or $(HOURS),24)

audit: $(VENV)/installed ## Look the locked packages up among the known vulnerabilities; needs a network
	$(BIN)/pip-audit --strict --progress-spinner off --disable-pip --require-hashes --requirement requirements-dev.lock

image: ## Build the image; IMAGE names it
	docker build --tag '$(IMAGE)' .

dist: $(WHEEL_VENV)/installed ## Build the wheels of the three packages into the folder DIST, to install the commands elsewhere
	rm -f '$(DIST)'/*.whl
	for package in . kubectl_placement placement_lab; do \
		(cd $$package && '$(abspath $(WHEEL_VENV))/bin/hatchling' build --target wheel --directory '$(abspath $(DIST))') || exit; \
	done

clean: ## Remove the virtual environment and what the tools left
	rm -rf $(VENV) build dist .coverage .coverage.* htmlcov .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(SBOM_VENV)/installed: requirements-sbom.lock
	$(PYTHON) -m venv $(SBOM_VENV)
	$(SBOM_VENV)/bin/pip install --quiet --require-hashes --requirement requirements-sbom.lock
	@touch $@

$(WHEEL_VENV)/installed: requirements-build.lock
	$(PYTHON) -m venv $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/pip install --quiet --require-hashes --requirement requirements-build.lock
	@touch $@

build/clients/%/installed: tests/clients/requirements/%.lock | $(VENV)/installed
	$(PYTHON) -m venv build/clients/$*
	VIRTUAL_ENV=build/clients/$* $(BIN)/uv pip install --quiet --require-hashes --requirement $< || \
		build/clients/$*/bin/pip install --quiet --require-hashes --requirement $<
	@touch $@

define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'placement-ac needs Python 3.11 or newer; name one: make PYTHON=python3.12 …' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@awk '/^[a-z]/ { uv = /^uv==/ } uv' requirements-dev.lock > $(VENV)/uv.lock
	$(BIN)/pip install --quiet --require-hashes --requirement $(VENV)/uv.lock
	@# uv takes a tenth of pip's time; where only pip knows the package index (pip.conf), pip does it.
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes --requirement $(1) || \
		$(BIN)/pip install --quiet --require-hashes --requirement $(1)
	$(BIN)/pip install --quiet --no-deps $(OURS)
	@touch $@
endef

$(VENV)/installed: $(PROJECTS) requirements-dev.lock
	$(call install,requirements-dev.lock)

$(VENV)/installed-demo: $(PROJECTS) requirements-demo.lock
	@echo 'Installing what the demo needs into $(VENV)'
	$(call install,requirements-demo.lock)
