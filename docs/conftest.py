"""The pages are tested here, the examples by tests/test_examples.py, the site by test_docs.py."""

from importlib.util import find_spec

collect_ignore_glob = ["_build/*", "_ext/*", "examples/*", "gallery/*", "generated/*", "conf.py"]
# Pages that need what may not be installed.
PAGES = {
    "guides/gpu.rst": "torch",
    "guides/cluster.rst": "dask",
    "guides/file_formats.rst": "duckdb",
}
collect_ignore = [page for page, library in PAGES.items() if find_spec(library) is None]
