## make papers      set everything up and execute every notebook, two at a time (ARGS="--only 01 --jobs 1" to choose)
## make test        set everything up and run the whole test suite, notebooks included
## make test-fast   the tests of the code alone, in a minute
## make lab         JupyterLab on copies of the notebooks in runs/lab: reading changes nothing
## make full        execute the full profile; rewrites the record in figures/
## make scorecard   verdict on every claim of the papers, from the record
## make verdicts    after make full: which verdicts differ from the committed ones (ARGS=runs/mine: of a run kept there)
## make site        build the reader's edition in runs/site/html; make test-site tests it in a browser
## make bench       time the solvers against LIBSVM (ARGS=answers: every graph, batches and rows)
## make lint        formatting, lint, spelling, types, and a scan for what is not safe
## make test-oldest the tests with the oldest versions that pyproject.toml allows
## make test-bare  the fast tests where cvxopt is not installed
## make dist        build wheel and sdist, and test both without this checkout
## make test-peers  scikit-learn's own tests of SVC with MaxWinsSVC in its place
## make fuzz        look for new counterexamples for an hour (MINUTES=5 for less)
## make matrix      the same answers on other processors, threads, hash seeds, languages and paths
## make endurance   200 notebooks on a cluster that loses a worker every minute
## make clean       remove the environments and what was run in them

SHELL = /bin/sh
BIN = .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
VENV = $(BIN)/python
READY = .venv/.ready
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))" 2>/dev/null && echo "$$p" && break; done)
EXTRAS = test,notebooks,cluster
PYTEST = DAGSVM_LAB_QUIET=1 $(VENV) -m pytest -n 2 --dist loadfile --no-loadscope-reorder
MINUTES = 60

.PHONY: help papers test test-fast lab full scorecard verdicts bench site test-site lint test-oldest test-bare test-peers dist fuzz matrix endurance clean
help:
	@sed -n 's/^## //p' Makefile

# The stamp holds the folder it was made in: a checkout that moved is set up again.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif
$(READY): pyproject.toml constraints.txt
	@"$(PYTHON)" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))" 2>/dev/null || { \
		echo "Python 3.11 or newer with venv is needed: make PYTHON=/path/to/python3 ..."; exit 1; }
	"$(PYTHON)" -m venv .venv
	$(VENV) -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	@printf '%s\n' "$(CURDIR)" > $(READY)

papers: $(READY)
	OPENBLAS_NUM_THREADS=1 $(VENV) -m dagsvm_lab papers --jobs 2 -p n_jobs 1 $(ARGS)

test: $(READY)
	$(PYTEST) --nbval --nbval-current-env tests notebooks $(ARGS)

test-fast: $(READY)
	$(PYTEST) -m "not slow" tests $(ARGS)

lab: $(READY)
	@mkdir -p runs/lab/notebooks runs/lab/figures
	@cp figures/scorecard.* runs/lab/figures/
	@for n in notebooks/*.ipynb; do [ "runs/lab/$$n" -nt "$$n" ] || cp "$$n" runs/lab/notebooks/; done
	$(VENV) -m jupyterlab --ServerApp.root_dir=runs/lab --LabApp.default_url=/lab/tree/notebooks/00_tour.ipynb $(ARGS)

full: $(READY)
	OPENBLAS_NUM_THREADS=1 $(VENV) -m dagsvm_lab papers --profile full -p out_dir figures --out runs/full --resume $(ARGS)
	$(VENV) -m dagsvm_lab scorecard

scorecard: $(READY)
	$(VENV) -m dagsvm_lab scorecard

verdicts: $(READY)
	@$(VENV) tests/verdicts.py $(ARGS)

bench: $(READY)
	$(VENV) -m pip install --quiet --constraint constraints.txt --editable ".[bench]"
	$(VENV) -m dagsvm_lab bench $(ARGS)

site: $(READY)
	$(VENV) -m pip install --quiet --constraint constraints.txt --editable ".[site]"
	$(VENV) notebooks/site/build.py runs/site $(ARGS)

test-site: $(READY)
	$(VENV) -m pip install --quiet --constraint constraints.txt --editable ".[site]"
	$(VENV) -m pytest -q tests/site $(ARGS)

lint: $(READY)
	$(VENV) -m pip install --quiet --constraint constraints.txt bandit codespell "pyright[nodejs]"
	$(VENV) -m ruff format --check .
	$(VENV) -m ruff check .
	$(VENV) -m codespell_lib
	$(VENV) -m bandit --quiet --recursive --configfile pyproject.toml dagsvm_lab
	$(VENV) -m pytest -q tests/test_types.py

test-oldest:
	"$(PYTHON)" -m venv runs/oldest
	"$(PYTHON)" tests/oldest.py > runs/oldest/constraints.txt
	runs/oldest/bin/python -m pip install --quiet --constraint runs/oldest/constraints.txt --editable ".[$(EXTRAS)]"
	runs/oldest/bin/python -m pytest -q -n 2 --dist loadfile -m "not slow" tests $(ARGS)

test-bare:
	"$(PYTHON)" -m venv runs/bare
	runs/bare/bin/python -m pip install --quiet --constraint constraints.txt --editable ".[$(EXTRAS)]"
	runs/bare/bin/python -m pip uninstall --quiet --yes cvxopt
	runs/bare/bin/python -m pytest -q -n 2 --dist loadfile -m "not slow" tests $(ARGS)

dist: $(READY)
	$(VENV) -m pip install --quiet --constraint constraints.txt build
	rm -rf dist && $(VENV) -m build --quiet
	sh tests/dist.sh "$(PYTHON)"

test-peers: $(READY)
	$(VENV) tests/peers.py $(ARGS)

fuzz: $(READY)
	HYPOTHESIS_PROFILE=search timeout $(MINUTES)m sh -c \
		'ulimit -v 8000000; while $(PYTEST) -q -m hypothesis --hypothesis-show-statistics tests; do :; done'; [ $$? = 124 ]

matrix: $(READY)
	$(VENV) tests/matrix.py $(ARGS)

endurance: $(READY)
	OPENBLAS_NUM_THREADS=1 $(VENV) tests/endurance.py

clean:
	rm -rf .venv runs dist build .pytest_cache .ruff_cache .hypothesis *.egg-info
