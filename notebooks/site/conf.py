"""Sphinx settings of the reader's edition; build.py puts the sources together and calls Sphinx on them."""

import shutil
from importlib import metadata
from pathlib import Path

project = "dagsvm_lab"
author = "The dagsvm_lab authors"
copyright = "the dagsvm_lab authors, BSD-3-Clause"
version = release = metadata.version("dagsvm-lab")
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
]
bibtex_bibfiles = ["references.bib"]
nb_execution_mode = "off"
nb_merge_streams = True
nb_render_markdown_format = "myst"
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_dmath_double_inline = True  # notebooks have $$ formulas within paragraphs
myst_heading_anchors = 3
napoleon_use_ivar = True  # attributes as a list
autodoc_typehints = "none"
autodoc_member_order = "bysource"
math_number_all = False
mathjax_path = "mathjax/tex-chtml.js"
numfig = True

html_theme = "sphinx_book_theme"
html_title = "dagsvm_lab"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_css_files = ["edition.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "use_download_button": True,
    "use_fullscreen_button": False,
    "navbar_persistent": [],
    "home_page_in_toc": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
links = (link.rpartition(", ") for link in metadata.metadata("dagsvm-lab").get_all("Project-URL"))
if home := {name: link for name, _, link in links}.get("Repository"):
    html_theme_options |= {
        "repository_url": home,
        "path_to_docs": "notebooks",
        "launch_buttons": {"binderhub_url": "https://mybinder.org", "notebook_interface": "jupyterlab"},
    }
html_copy_source = False
html_show_sourcelink = False
MATHJAX = ("tex-chtml.js", "output/chtml/", "input/tex/extensions/", "ui/")


def copy_mathjax(app, failed) -> None:
    """Copy what the pages need of MathJax from its package, so that no page asks another host."""
    root = "sphinx-mathjax-offline/static/mathjax/"
    target = Path(app.outdir) / "_static" / "mathjax"
    for file in metadata.files("sphinx-mathjax-offline") or ():
        name = str(file).removeprefix(root)
        if failed is None and str(file).startswith(root) and name.startswith(MATHJAX):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), target / name)


def bars(app, what, name, obj, options, lines) -> None:
    """Keep |f| in a docstring from being read as a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def plain_list(app, page, template, context, doctree) -> None:
    """Take back the role of the list of works: Sphinx gives its items another than a list's."""
    context["body"] = context.get("body", "").replace('role="list" class="citation-list"', 'class="citation-list"')


def setup(app):
    """Register what happens to docstrings, to a page, and after the build."""
    app.connect("html-page-context", plain_list)
    app.connect("autodoc-process-docstring", bars)
    app.connect("build-finished", copy_mathjax)
