"""Sphinx settings of the reader's edition; build.py puts the sources together and calls
Sphinx on them.
"""

import re
import shutil
from importlib import metadata
from pathlib import Path

from docutils import nodes

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
myst_enable_extensions = [
    "dollarmath",
    "amsmath",
    "colon_fence",
    "deflist",
    "attrs_inline",
]
myst_dmath_double_inline = True  # notebooks have $$ formulas within paragraphs
myst_heading_anchors = 3
napoleon_use_ivar = True  # attributes as a list
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
math_number_all = False
mathjax_path = "mathjax/tex-chtml.js"
numfig = True

html_theme = "sphinx_book_theme"
html_title = "dagsvm_lab"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_context = {"default_mode": "auto"}
html_css_files = ["edition.css"]
html_js_files = ["code.js", ("tables.js", {"defer": "defer"})]
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
links = (
    link.rpartition(", ")
    for link in metadata.metadata("dagsvm-lab").get_all("Project-URL")
)
if home := {name: link for name, _, link in links}.get("Repository"):
    html_theme_options |= {
        "repository_url": home,
        "path_to_docs": "notebooks",
        "launch_buttons": {
            "binderhub_url": "https://mybinder.org",
            "notebook_interface": "jupyterlab",
        },
    }
html_copy_source = False
html_show_sourcelink = False
MATHJAX = ("tex-chtml.js", "output/chtml/", "input/tex/extensions/", "ui/")
# What a page does not need to be read: an icon font, as a script of 1.6 MB and again as
# files of 115 kB, for a dozen icons, which edition.css draws; on all pages but that of
# the search its scripts, 43 kB.
ICON_SCRIPT = re.compile(r"<script[^>]*fontawesome\.js[^>]*></script>\s*")
ICON_FACE = re.compile(r"@font-face\s*\{[^}]*/fontawesome/[^}]*\}")
SEARCH = re.compile(
    r'<script (src="(?:\.\./)*(?:_static/)?'
    r"(?:searchtools|language_data|searchindex)\.js[^>]*></script>\s*)"
)


def copy_mathjax(app, failed) -> None:
    """Copy what the pages need of MathJax, so that no page asks another host."""
    root = "sphinx-mathjax-offline/static/mathjax/"
    target = Path(app.outdir) / "_static" / "mathjax"
    for file in metadata.files("sphinx-mathjax-offline") or ():
        name = str(file).removeprefix(root)
        if failed is None and str(file).startswith(root) and name.startswith(MATHJAX):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file.locate(), target / name)


def lighten(app, failed) -> None:
    """Take what no reader needs from the built pages; put the notebooks beside them."""
    if failed is not None:
        return
    out = Path(app.outdir)
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        text = ICON_SCRIPT.sub("", text)
        text = SEARCH.sub(r"<script defer \1" if page.stem == "search" else "", text)
        page.write_text(text, encoding="utf-8")
    for file in (out / "_static" / "scripts").glob("fontawesome.*"):
        file.unlink()
    for sheet in (out / "_static" / "styles").glob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        sheet.write_text(ICON_FACE.sub("", text), encoding="utf-8")
    shutil.rmtree(out / "_static" / "vendor" / "fontawesome")
    sources = out / "_sources"  # where the theme's download button looks
    sources.mkdir(exist_ok=True)
    for notebook in (out / "_static" / "notebooks").glob("*.ipynb"):
        shutil.copy(notebook, sources)


def bars(app, what, name, obj, options, lines) -> None:
    """Keep |f| in a docstring from being read as a substitution."""
    lines[:] = [line.replace("|", r"\|") for line in lines]


def whole_names(app, what, name, obj, options, lines) -> None:
    """Keep the underscore that ends an attribute's name: in reST it marks a link."""
    lines[:] = [
        re.sub(r"^(:(?:ivar|vartype) \w+)_:", r"\1\\_:", line) for line in lines
    ]


def plain_list(app, page, template, context, doctree) -> None:
    """Take back the role of the list of works: Sphinx gives its items another."""
    context["body"] = context.get("body", "").replace(
        'role="list" class="citation-list"', 'class="citation-list"'
    )


def name_notebook(app, page, template, context, doctree) -> None:
    """Tell the theme's download button where the page's notebook is, if it has one."""
    if (Path(app.srcdir) / f"{page}.ipynb").is_file():
        context["sourcename"] = f"{page}.ipynb"
    else:
        context["page_source_suffix"] = ""


def prose_alone(app, doctree) -> None:
    """Keep code out of the search: its names drown the words."""
    for block in doctree.findall(nodes.literal_block):
        block["classes"].append("no-search")


def setup(app):
    """Register what happens to docstrings, to a page, and after the build."""
    app.connect("doctree-read", prose_alone)
    app.connect("html-page-context", plain_list)
    app.connect("html-page-context", name_notebook, priority=100)
    app.connect("autodoc-process-docstring", bars)
    app.connect("autodoc-process-docstring", whole_names, priority=900)
    app.connect("build-finished", copy_mathjax)
    app.connect("build-finished", lighten)
