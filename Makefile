# The two commands are `make book` and `make test`. `make help` lists the rest.
# PYTHON is the interpreter that makes the virtual environment; WORKERS is how many tests run at once.

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2

BIN       := $(VENV)/bin
PY        := $(BIN)/python
PIP       := $(PY) -m pip install --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.installed
TESTED    := $(VENV)/.installed-for-tests
BUILT     := _build/html/.built

# All inputs of the pages, and a file with their names, so that a deleted one counts too. Folders would
# not do: Python changes them when it adds a __pycache__.
LISTED  := _build/.sources
SOURCES := $(shell mkdir -p _build; find book notebooks transformer \
	\( -name __pycache__ -o -name .ipynb_checkpoints -o -path book/make \) -prune -o -type f -print \
	| sort >$(LISTED).new; cmp -s $(LISTED).new $(LISTED) || cp $(LISTED).new $(LISTED); cat $(LISTED))

# One thread per process: tests and notebooks run side by side. A backend set in the reader's shell
# would silence the figures of the notebooks.
export OMP_NUM_THREADS ?= 1
unexport MPLBACKEND
# Some container images set it. Without compiled files, each process that the tests start compiles the
# package again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help book test unit notebooks verify portable smoke check browser pdf lint links bench gpu table3 \
	address release clean

help:
	@echo "make book       build the book and say where to open it"
	@echo "make test       run the main job of CI"
	@echo "make unit       run the tests of the package and of the notebooks' form"
	@echo "make verify     run every notebook and compare with its stored outputs"
	@echo "make portable   run verify and unit as on other processors, and with two threads"
	@echo "make smoke      run the training notebook with the preset 'smoke'"
	@echo "make check      build the book and check its pages"
	@echo "make notebooks  execute every notebook in place"
	@echo "make browser    open every page in Chromium: phone and desktop, light and dark"
	@echo "make pdf        print the whole book into one file, _build/book.pdf"
	@echo "make lint       check style, form and types with ruff and mypy"
	@echo "make links      check that the book's links to other sites still work"
	@echo "make bench      compare the speed with other implementations (installs them), and record it"
	@echo "make gpu        record the speed on a GPU, then the runs of Table 2 that are missing"
	@echo "                PRESETS=\"...\" SEEDS=\"1 2\" DATA_DIR=... MINUTES=25 LIST=1"
	@echo "make table3     train and record the rows of Table 3, at a size for this machine"
	@echo "                SEEDS=\"1 2\" DATA_DIR=... MINUTES=25"
	@echo "make address    set the public address in all files: REPO=owner/name [PAGES=url]"
	@echo "make release    build the packages into dist/, try each in a fresh environment, and publish them;"
	@echo "                DRY=1 uploads nothing"
	@echo "make clean      remove the built book and the caches (not the environment)"

# Python compiles what it imports; pip would compile all. PyTorch's package holds 120 MB of programs
# that test it.
$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed, '$(PYTHON)' is" `$(PYTHON) --version 2>&1`; \
		echo "Name another one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile -r requirements.txt
	@cd $(VENV)/lib/python*/site-packages/torch && rm -rf test bin/test_*
	@MPLBACKEND=agg $(PY) -c "import matplotlib.font_manager"
	@touch $@

$(TESTED): $(INSTALLED) requirements-test.txt
	$(PIP) --no-compile -r requirements-test.txt
	@touch $@

$(LISTED): ;

# Sphinx's own incremental build leaves stale pages and style files behind, so a build is either
# complete or not needed at all.
$(BUILT): $(INSTALLED) _config.yml _toc.yml $(LISTED) $(SOURCES)
	@rm -rf _build/html _build/.doctrees
	$(BIN)/jupyter-book build . -W -n --keep-going --all
	@touch $@

book: $(BUILT)
	@echo
	@echo "The book is at _build/html/index.html. Open it in a browser:"
	@echo "  file://$(CURDIR)/_build/html/index.html"

# The build takes one core, so lint and smoke have the other. The unit tests come last, so that their
# summary closes the log.
test: $(TESTED)
	@$(MAKE) --no-print-directory -j2 check lint smoke
	@$(MAKE) --no-print-directory browser verify unit

unit: $(TESTED)
	$(PY) -m pytest -q -n $(WORKERS) tests

verify: $(TESTED)
	$(PY) -m pytest -q --nbval --nbval-current-env \
		--nbval-sanitize-with notebooks/nbval.cfg --nbval-cell-timeout 300 \
		-n $(WORKERS) --dist loadfile --ignore=notebooks/runs notebooks

# PyTorch, MKL and oneDNN each choose instructions for the processor; make test leaves them the choice.
portable: $(TESTED)
	@for setting in ATEN_CPU_CAPABILITY=default "ATEN_CPU_CAPABILITY=avx2 OMP_NUM_THREADS=2" \
		"MKL_ENABLE_INSTRUCTIONS=AVX2 ONEDNN_MAX_CPU_ISA=AVX2 OMP_NUM_THREADS=2"; do \
		echo "$$setting"; env $$setting $(MAKE) --no-print-directory -k verify unit || failed=1; \
	done; test -z "$$failed"

smoke: $(INSTALLED)
	$(PY) -m book.make smoke

check: $(BUILT)
	$(PY) -m book.make check _build/html

# Chromium is installed on Debian if it is missing and we may; elsewhere a message asks for it.
browser: $(TESTED) $(BUILT)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		command -v google-chrome >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && \
		  apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
		{ echo "The pages are tested in Chromium. Install it: apt install chromium"; exit 1; }
	BOOK_HTML=_build/html $(PY) -m pytest -q -n $(WORKERS) --dist loadgroup tests/browser

pdf: $(TESTED) $(BUILT)
	$(PY) -m book.make pdf _build/html _build/book.pdf

notebooks: $(INSTALLED)
	$(PY) -m book.make execute

lint: $(TESTED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

links: $(INSTALLED)
	$(BIN)/jupyter-book build . --all --builder linkcheck --path-output _build/links

bench: $(TESTED)
	$(PIP) -e ".[bench]"
	$(PY) -m transformer_book.speed.bench

# Each option may be left out. Ctrl-C saves what is running; the same command goes on.
gpu: $(INSTALLED)
	$(PY) -m transformer_book.studies.translation.record --gpu $(PRESETS) $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(DATA_DIR),--data-dir $(DATA_DIR)) \
		$(if $(LIST),--list)

table3: $(INSTALLED)
	$(PY) -m transformer_book.studies.choices.record $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(DATA_DIR),--data-dir $(DATA_DIR))

address: $(INSTALLED)
	@$(PY) -m book.make address "$(REPO)" "$(PAGES)"

release: $(TESTED)
	$(PY) -m book.make release $(if $(DRY),--dry)

clean:
	rm -rf _build build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
