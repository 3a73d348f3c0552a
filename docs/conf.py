"""How Sphinx builds the site."""

import importlib.metadata

project = "scikit-sketch"
author = "the scikit-sketch developers"
copyright = f"2026, {author}"
release = importlib.metadata.version("scikit-sketch")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc"]
exclude_patterns = ["_build"]
default_role = "autolink"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": True}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "scikit-sketch"
html_theme_options = {"show_prev_next": False, "secondary_sidebar_items": ["page-toc"]}
html_show_sourcelink = False

# scikit-learn adds these, with text that refers to its own pages.
INHERITED = {"score", "set_fit_request", "set_partial_fit_request", "set_score_request"}


def skip_inherited(app, what, name, obj, skip, options):
    return True if name in INHERITED else None


def setup(app):
    app.connect("autodoc-skip-member", skip_inherited)
