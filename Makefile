# The two commands are `make book` and `make test`. `make help` lists the rest.
# PYTHON is the interpreter that makes the virtual environment; WORKERS is how many tests run at once.

PYTHON  ?= python3
VENV    ?= .venv
WORKERS ?= 2

BIN       := $(VENV)/bin
PY        := $(BIN)/python
INSTALLED := $(VENV)/.installed
BUILT     := _build/html/.built

# Everything that a page can be made of. Folders are in the list, so that a deleted file counts too;
# the /. keeps them apart from the targets of the same name.
SOURCES := $(shell find book/. notebooks/. transformer/. \
	\( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -o -print 2>/dev/null)

# One thread a process: tests and notebooks run side by side. A backend set in the reader's shell
# would silence the figures of the notebooks.
export OMP_NUM_THREADS ?= 1
unexport MPLBACKEND

.PHONY: help book test unit notebooks verify smoke check browser pdf environments lint links fuzz bench gpu table3 clean

help:
	@echo "make book       build the book and say where to open it"
	@echo "make test       run everything that CI runs"
	@echo "make unit       tests of the package, the notebooks' form and the tools"
	@echo "make verify     run every notebook and compare with its stored outputs"
	@echo "make smoke      run the training notebook with the preset 'smoke'"
	@echo "make check      build the book and check its pages"
	@echo "make notebooks  execute every notebook in place"
	@echo "make browser    open every page in Chromium: phone and desk, light and dark"
	@echo "make pdf        print the whole book into one file, _build/book.pdf"
	@echo "make environments  try other versions of Python, the oldest and newest torch: PYTHONS=3.12"
	@echo "make lint       ruff and mypy: style, form, types"
	@echo "make links      ask every outside link of the book whether it is still there"
	@echo "make fuzz       feed the readers of files with damaged ones: SECONDS=60 for each"
	@echo "make bench      compare the speed with the peers (installs them) and record it"
	@echo "make gpu        record the runs that are missing or stale, best first: MINUTES=25 JOBS=4"
	@echo "                DATA_DIR=... PRESETS=\"...\" SEEDS=\"1 2\"; LIST=1 only shows the plan"
	@echo "make table3     record every row of Table 3, at a size for this machine: MINUTES=25"
	@echo "make clean      remove the built book and the caches (not the environment)"

$(INSTALLED): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed, '$(PYTHON)' is" `$(PYTHON) --version 2>&1`; \
		echo "Name another one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@MPLBACKEND=agg $(PY) -c "import matplotlib.font_manager"
	@touch $@

# Sphinx's own incremental build leaves stale pages and style files behind, so a build is either
# complete or not needed at all.
$(BUILT): $(INSTALLED) _config.yml _toc.yml $(SOURCES)
	@rm -rf _build/html _build/.doctrees
	$(BIN)/jupyter-book build . -W -n --keep-going --all
	@touch $@

book: $(BUILT)
	@echo
	@echo "The book is at _build/html/index.html. Open it in a browser:"
	@echo "  file://$(CURDIR)/_build/html/index.html"

# The unit tests come last, so that their summary closes the log.
test: check browser verify smoke unit

unit: $(INSTALLED)
	$(PY) -m pytest -q -n $(WORKERS) tests

verify: $(INSTALLED)
	$(PY) -m pytest -q --nbval --nbval-current-env \
		--nbval-sanitize-with notebooks/nbval.cfg --nbval-cell-timeout 300 \
		-n $(WORKERS) --dist loadfile --ignore=notebooks/runs notebooks

smoke: $(INSTALLED)
	$(PY) tools/run_notebook.py notebooks/16_training.ipynb _build/smoke/16_training.ipynb preset=smoke

check: $(BUILT)
	$(PY) tools/check_book.py _build/html

# Debian's Chromium is installed where there is none and we may; elsewhere it is named and missed.
browser: $(BUILT)
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		command -v google-chrome >/dev/null || { command -v apt-get >/dev/null && test "$$(id -u)" = 0 && \
		  apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
		{ echo "The pages are tested in Chromium. Install it: apt install chromium"; exit 1; }
	BOOK_HTML=_build/html $(PY) -m pytest -q -n $(WORKERS) tests/browser

pdf: $(BUILT)
	$(PY) tools/make_pdf.py _build/html _build/book.pdf

notebooks: $(INSTALLED)
	$(PY) tools/execute_notebooks.py

# A few gigabytes each; what is not on this machine is named and left out.
environments: $(INSTALLED)
	$(PY) tools/check_environments.py $(PYTHONS)

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

links: $(INSTALLED)
	$(BIN)/jupyter-book build . --builder linkcheck --path-output _build/links

# What a reader does with bytes that nobody thought of. One that breaks ends this with an error.
SECONDS ?= 60
READERS := tokenizer configuration trees weights checkpoint state lines pairs gzip settings
fuzz: $(INSTALLED)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[fuzz]"
	for reader in $(READERS); do \
		$(PY) tests/fuzz/fuzz_readers.py $$reader -max_total_time=$(SECONDS) -rss_limit_mb=3000 \
			-verbosity=0 || exit 1; done

bench: $(INSTALLED)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[bench]"
	$(PY) tests/benchmarks/bench.py

# All of these may be left out: the plan is in tools/run_plan.py, and without a limit it is run
# to its end. Ctrl-C saves what is running; the same command goes on.
gpu: $(INSTALLED)
	$(PY) tools/record_runs.py $(PRESETS) $(if $(SEEDS),--seeds $(SEEDS)) \
		$(if $(MINUTES),--minutes $(MINUTES)) $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(DATA_DIR),--data-dir $(DATA_DIR)) $(if $(LIST),--list)

# What is recorded stays; on a GPU the rows are larger and the text is all of the corpus.
table3: $(INSTALLED)
	$(PY) tools/record_table_3.py $(if $(MINUTES),--minutes $(MINUTES)) \
		$(if $(SEEDS),--seeds $(SEEDS)) $(if $(DATA_DIR),--data-dir $(DATA_DIR))

clean:
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
