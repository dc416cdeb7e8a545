# Each target sets up what it needs in .venv, and skips that while pyproject.toml is unchanged.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.PHONY: crawl test oldest lint check audit bench map docs docs-check figures dist smoke clean

# The main job on the default corpus: a random crawl, a crawl by influence, and the report that compares them.
crawl: .venv/.crawl
	@$(BIN)/scrapy crawl influence $(ARGS) -s URL_POLICY=random -s WARC_ENABLED=0 > /dev/null
	@$(BIN)/scrapy crawl influence $(ARGS)
	@runs=$$(ls -d crawls/[0-9]* | tail -n 2); run=$$(echo "$$runs" | tail -n 1); \
	  page=$$(tail -n 1 $$run/crawl.jsonl | sed 's/.*"id": "\([^"]*\)".*/\1/'); \
	  $(BIN)/scrapy evaluate $$runs --out report/$${run#crawls/} && \
	  echo && echo "Next, after this line, which puts scrapy on the path of this shell:" && \
	  echo "  source .venv/bin/activate" && \
	  echo "  scrapy explain '$$page' --run $$run    # a page: its text and score, and how the crawl came to it" && \
	  echo "  scrapy dashboard $$run    # the crawl in the browser"

test: .venv/.test
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

# Tests of engine, live crawls and add-on with the lowest versions of Scrapy and Twisted that pyproject.toml takes, in an
# environment of its own: a CI job beside .ci/run, of some ten minutes on two cores.
oldest: .venv/.oldest
	.venv/oldest/bin/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --max-worker-restart 0 -m 'not slow' -q \
	  tests/engine tests/live tests/addon $(ARGS)

lint: .venv/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/prose.py

check: lint
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --max-worker-restart 0 \
	  -m 'not slow and not processes' -q $(ARGS)

# Known advisories of what is installed.
audit: .venv/.test
	.ci/audit

# JSON goes to build/bench; `python -m benchmarks.report --take build/bench` brings it into README and docs.
bench: .venv/.bench
	$(BIN)/python -m benchmarks $(ARGS)

# The picture of the rooms in docs/architecture.md.
map: .venv/.test
	$(BIN)/python docs/map.py

# Source distribution and wheel in dist/, checked.
dist: .venv/.dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# The wheel as a new user would try it, with each Python from 3.10 to 3.14 that is here.
smoke: dist
	.ci/try-wheel dist/*.whl

# The site of docs/, in build/docs, without the network; a link that leads nowhere is an error. `ARGS='-b linkcheck'` asks
# other sites' too.
docs: .venv/.docs
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs $(ARGS)

# The site in a browser, by axe-core; the commands in README and docs/, slow ones too.
docs-check: docs .venv/.test
	$(BIN)/python -m pytest -q tests/docs $(ARGS)

# All pictures of the docs, their figures in benchmarks/measured/demo.json, and the notebook: crawls of the demo web,
# models as measured, and the dashboard of a crawl in headless Chromium.
figures: .venv/.docs .venv/.test
	$(BIN)/python -m docs.figures
	$(BIN)/python -m benchmarks.report
	$(BIN)/python -m benchmarks.trainlm --report > /dev/null
	SCREENSHOTS=1 $(BIN)/python -m pytest -q tests/tools/test_dashboard_browser.py -k "axe_finds and light-size0"
	rm -rf docs/notebooks/crawls
	$(BIN)/jupyter-execute --inplace docs/notebooks/policy.ipynb
	rm -rf docs/notebooks/crawls

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .scrapy

.venv/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "crawl4llm needs Python 3.10 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	touch $@

.venv/.crawl: .venv/.python pyproject.toml
	$(BIN)/python -m pip install --quiet --editable '.[evaluate]'
	touch $@

.venv/.bench: .venv/.crawl
	$(BIN)/python -m pip install --quiet --editable '.[bench]'
	touch $@

.venv/.dist: .venv/.crawl
	$(BIN)/python -m pip install --quiet --editable '.[dist]'
	touch $@

.venv/.docs: .venv/.crawl
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

.venv/.oldest: .venv/.python pyproject.toml
	$(PYTHON) -m venv --clear .venv/oldest
	sed -nE 's/^ *"(Scrapy|Twisted)>=([0-9.]+)",.*/\1==\2/p' pyproject.toml > .venv/oldest/floors.txt
	.venv/oldest/bin/python -m pip install --quiet -r .venv/oldest/floors.txt --editable \
	  '.[all,test]'
	touch $@

.venv/.test: .venv/.crawl
	$(BIN)/python -m pip install --quiet --editable \
	  '.[all,trainlm,wacz,test,check]'
	# pywb replays archives in a test. It asks for other versions of Scrapy's libraries, so it lives apart; where it does
	# not install, that test is skipped.
	-$(PYTHON) -m venv .venv/pywb && .venv/pywb/bin/python -m pip install --quiet --upgrade pip && \
	  .venv/pywb/bin/python -m pip install --quiet 'pywb>=2.9'
	touch $@
