"""How Sphinx builds the site."""

import importlib.metadata
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "scikit-sketch"
author = "the scikit-sketch developers"
copyright = f"2026, {author}"
release = importlib.metadata.version("scikit-sketch")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "site_pages",
]
exclude_patterns = ["_build", "examples"]
default_role = "autolink"
# So that `StreamingPCA` is found from every page.
rst_prolog = ".. currentmodule:: sksketch\n"

autosummary_generate = True
autodoc_typehints = "none"
# What our own base classes give is documented with each class, what others give is not.
FOREIGN = "BaseEstimator TransformerMixin ClassifierMixin RegressorMixin ClusterMixin ABC Generic"
FOREIGN += " ClassNamePrefixFeaturesOutMixin MetaEstimatorMixin Exception tuple Protocol"
autodoc_default_options = {"members": True, "inherited-members": FOREIGN.replace(" ", ",")}
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 60,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
html_title = "scikit-sketch"
html_theme_options = {
    "logo": {
        "text": "scikit-sketch",
        "image_light": "_static/favicon.svg",
        "image_dark": "_static/favicon.svg",
    },
    "show_prev_next": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "scale": []},
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "start": [], "benchmarks": [], "papers": [], "scale": []}
html_show_sourcelink = False


# What runners ask of an estimator; the classes of `sksketch.models` document it.
FOR_RUNNERS = {
    *("end_pass", "for_shard", "is_of_plain_rows", "measure_first", "n_passes", "new_sketch"),
    *("pilot_rows", "reading", "shard_template", "take_pilot"),
}


def skip_inherited(app, what, name, obj, skip, options):
    """Leave out what scikit-learn adds, with text that refers to its own pages.

    Fitted attributes are listed with their class, and what is for runners is not for readers.
    """
    foreign = getattr(obj, "__module__", None) or ""
    request = re.fullmatch(r"set_\w+_request", name)
    listed = isinstance(obj, property) and name.endswith("_")
    hidden = request or listed or name in FOR_RUNNERS or foreign.startswith("sklearn")
    return True if hidden else None


def mend_names(app, what, name, obj, options, lines):
    """Print attributes as they are: inherited ones would link to a namesake elsewhere."""
    for i, line in enumerate(lines):
        line = re.sub(r":obj:`(\w+) <[^>]*>`", r"**\1**", line)
        # In "array of shape (n_components_, n_features)" the underscore is no link either.
        lines[i] = re.sub(r"shape \(.*", lambda m: re.sub(r"_(?=[,)])", r"\\_", m[0]), line)


def setup(app):
    app.connect("autodoc-skip-member", skip_inherited)
    # After numpydoc, which makes the links.
    app.connect("autodoc-process-docstring", mend_names, priority=900)
