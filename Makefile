# Every target calls one script; what a script does is said in its first line.
# The distribution's own Python, the nodes' version first: one from pyenv or conda is often built without optimization, with
# which tests take a quarter longer.
PYTHON ?= $(firstword $(wildcard /usr/bin/python3.11 /usr/bin/python3.12 /usr/bin/python3.13) python3)
NODES ?= 3
TOOLS := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help setup setup-wheels setup-torch test lint unit parity docs-check sanity oldest molecule molecule-vm faults format readmes demo bench compat el-evidence docs lab lab-down lab-ssh vm vm-down build clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1	\2/p' $(MAKEFILE_LIST) | expand -t 14

setup: ## Install the pinned tools into .venv and link the collection
	@$(PYTHON) tools/setup.py

setup-wheels: ## The same, and download the CPU build of PyTorch for the lab's nodes
	@$(PYTHON) tools/setup.py --wheels

setup-torch: ## The same, and install PyTorch into .venv for the unit tests
	@$(PYTHON) tools/setup.py --torch

test: setup-torch ## Run every check; the last line counts them
	@$(TOOLS) tools/run_tests.py

lint: setup ## Part of test: ruff, mypy, shellcheck, yamllint, ansible-lint
unit: setup-torch ## Part of test: unit tests of plugins and tools
parity: setup-torch ## Part of test: specs, defaults and READMEs agree; the built collection; real playbooks
docs-check: setup ## Part of test: plugin documentation, changelog, variable tables
sanity: setup ## Part of test: ansible-test sanity
oldest: setup-torch ## Part of test: unit tests, real playbooks and syntax with the oldest supported ansible-core
molecule: setup-wheels ## Part of test: the molecule scenarios on nodes of a lab
molecule-vm: setup ## Part of test: the molecule scenario on a virtual machine
faults: setup-torch setup-wheels ## The check against faults that are made for real, and the long tests (not part of test)
lint unit parity docs-check sanity oldest molecule molecule-vm faults:
	@$(TOOLS) tools/run_tests.py $@

format: setup ## Format all Python files
	@.venv/bin/ruff check --fix --quiet; .venv/bin/ruff format

readmes: setup ## Write the variable tables of the role READMEs and of docs/variables.md, the table of findings, the page of symptoms
	@$(TOOLS) tools/role_readmes.py
	@$(TOOLS) tools/variables_page.py
	@$(TOOLS) tools/findings_index.py
	@$(TOOLS) tools/text_pages.py

demo: ## From a fresh machine to an all_reduce verdict (ARGS= goes to ansible-playbook)
	@$(PYTHON) tools/demo.py $(ARGS)

bench: setup ## Time a second run of site.yml and the check on the running lab, and compare its bandwidth with a bare run
	@$(TOOLS) tools/bench.py
	@$(TOOLS) tools/bench_check.py --plot docs/images/check-cost.svg
	@$(TOOLS) tools/bench_bandwidth.py --here 2
	@$(TOOLS) tools/bench_report.py

compat: setup-wheels ## Run site.yml on the lab with every promised ansible-core and as every kind of user (ARGS="--only 2.16")
	@$(TOOLS) tools/compat.py $(ARGS)

el-evidence: setup ## Print a report about real EL machines (ARGS="-i prod"), or about the tests on an image (LAB_IMAGE=...)
	@$(TOOLS) tools/el_evidence.py $(ARGS)

docs: setup ## Build the documentation as a site, docs/build/html (ARGS=--external also asks for addresses on the web)
	@$(TOOLS) tools/docs_site.py $(ARGS)

lab: setup-wheels ## Start a lab of NODES nodes
	@$(TOOLS) tools/lab/lab.py up --nodes $(NODES)

lab-down: setup ## Remove the lab
	@$(TOOLS) tools/lab/lab.py down

lab-ssh: setup ## Open a shell on one node (NODE=n1)
	@$(TOOLS) tools/lab/lab.py ssh $(NODE)

vm: setup ## Start a virtual machine with a kernel of its own
	@$(TOOLS) tools/lab/vm.py up

vm-down: setup ## Remove it
	@$(TOOLS) tools/lab/vm.py down

build: setup ## Build the collection archive, and the check as one file without Ansible, into dist/
	@.venv/bin/ansible-galaxy collection build --output-path dist --force
	@$(TOOLS) tools/standalone.py

clean: ## Remove what setup, tests and builds made here (the lab has its own target)
	@rm -rf .venv .venv-docs .venv-galaxy .venv-oldest .venv*.removing-* .ansible dist docs/build tests/output .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
