# make papers    set everything up and execute every notebook (ARGS="--only 01 --jobs 2" to choose)
# make test      set everything up and run the whole test suite, notebooks included
# make full      execute the full profile: half an hour on two cores; rewrites the record in figures/
# make lab       JupyterLab in the environment
# make bench     time the solvers against LIBSVM
# make scorecard verdict on every claim of the papers, from the record
# make lint      formatting and lint
# make clean     remove the environment and what was run in it

SHELL = /bin/sh
VENV = .venv/bin/python
READY = .venv/.ready
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && echo "$$p" && break; done)

.PHONY: help papers test full lab bench scorecard lint clean
help:
	@sed -n 's/^# //p' Makefile

# The stamp holds the folder it was made in: a checkout that moved is set up again.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed: make PYTHON=/path/to/python3 ..."; exit 1; }
	"$(PYTHON)" -m venv .venv
	$(VENV) -m pip install --quiet --constraint constraints.txt --editable ".[test,cluster]"
	@printf '%s\n' "$(CURDIR)" > $(READY)

papers: $(READY)
	OPENBLAS_NUM_THREADS=1 $(VENV) -m dagsvm_lab papers $(ARGS)

test: $(READY)
	OPENBLAS_NUM_THREADS=1 $(VENV) -m pytest -n 2 --dist loadfile --no-loadscope-reorder --nbval --nbval-current-env tests notebooks $(ARGS)

full: $(READY)
	OPENBLAS_NUM_THREADS=1 $(VENV) -m dagsvm_lab papers --profile full -p out_dir figures --out runs/full --resume $(ARGS)
	$(VENV) -m dagsvm_lab scorecard

lab: $(READY)
	$(VENV) -m jupyterlab $(ARGS) notebooks

bench: $(READY)
	$(VENV) -m pip install --quiet --constraint constraints.txt --editable ".[bench]"
	$(VENV) -m dagsvm_lab bench $(ARGS)

scorecard: $(READY)
	$(VENV) -m dagsvm_lab scorecard

lint: $(READY)
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .

clean:
	rm -rf .venv runs .pytest_cache .ruff_cache .hypothesis *.egg-info
