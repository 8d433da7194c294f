"""The reader's edition in a real browser, wide and narrow.

Pages, links, formulas, search, claims, interactive figures, and axe's rules.
"""

import gzip
import html
import json
import re
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urldefrag

import numpy as np
import pytest

from dagsvm_lab import DAGSVC, FilteredDAGSVC, MaxWinsSVC, bounds, load
from dagsvm_lab.files import project_root
from dagsvm_lab.papers import papers
from dagsvm_lab.papers.findings import findings
from dagsvm_lab.plots import touch
from dagsvm_lab.report.record import QUIET
from dagsvm_lab.report.verdicts import binomial_interval
from dagsvm_lab.systems.sparse import leads

pytestmark = pytest.mark.slow
CHAPTERS = [p.stem for p in sorted((project_root() / "notebooks").glob("*.ipynb"))]
PAGES = [
    "index",
    "report",
    *CHAPTERS,
    "install",
    "claims",
    "tables",
    "open",
    "glossary",
    "references",
    "recipes",
    "svc",
    "choose",
    "reference",
]


def recorded(explorer):
    """The data of an interactive figure, as notebook 00 recorded it."""
    file = project_root() / "figures" / "00_tour" / f"touch_{explorer}.json"
    return json.loads(file.read_text(encoding="utf-8"))


def resize(browser, width, height=1000):
    screen = {
        "width": width,
        "height": height,
        "deviceScaleFactor": 1,
        "mobile": width < 600,
    }
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def wait(browser, script, seconds=20):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, seconds).until(
        lambda b: b.execute_script(f"return {script}")
    )


@pytest.mark.parametrize("page", PAGES)
def test_page_loads_whole_without_errors_or_foreign_requests(server, browser, page):
    resize(browser, 1440)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(f"{server}/{page}.html")
    typeset = (
        "MathJax.startup.promise.then(() => {window.mathDone = true})"
        " && window.mathDone === true"
    )
    ready = (
        "document.readyState == 'complete'"
        f" && (!window.MathJax || !MathJax.startup || {typeset})"
    )
    wait(browser, ready, 40)
    severe = [
        entry["message"]
        for entry in browser.get_log("browser")
        if entry["level"] == "SEVERE"
    ]
    assert not severe
    messages = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")
    ]
    asked = [
        m["params"]["request"]["url"]
        for m in messages
        if m["method"] == "Network.requestWillBeSent"
    ]
    assert all(url.startswith((server, "data:", "blob:")) for url in asked)
    assert not [
        m
        for m in messages
        if m["method"] == "Network.responseReceived"
        and m["params"]["response"]["status"] >= 400
    ]
    assert (
        browser.execute_script(
            "return document.querySelectorAll('mjx-merror, .MathJax_Error').length"
        )
        == 0
    )
    formulas = browser.execute_script(
        "return document.querySelectorAll('.math').length"
    )
    rendered = browser.execute_script(
        "return document.querySelectorAll('.math mjx-container').length"
    )
    assert rendered >= formulas
    browser.execute_script(
        "document.querySelectorAll('pre, code, .math, script')"
        ".forEach(part => part.remove())"
    )
    left = browser.execute_script(
        "return document.querySelector('article').textContent"
    )
    assert not re.findall(r".{30}(?:\$|\\[a-z]{3,}).{30}", left, re.S)


@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(server, browser, page):
    resize(browser, 390, 844)
    browser.get(f"{server}/{page}.html")
    wait(browser, "document.readyState == 'complete'")
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= 390
    typeset = "document.querySelector('.math mjx-container')"
    wait(browser, f"!document.querySelector('.math') || {typeset}")
    left = browser.execute_script(
        "return [...document.querySelectorAll('div.math mjx-container')]"
        ".map(f => f.getBoundingClientRect().left)"
    )
    assert min(left, default=0) >= 0, "what sticks out to the left cannot be read"


def test_every_internal_link_anchor_and_image_resolves(built):
    pages = {p: p.read_text(encoding="utf-8") for p in built.glob("*.html")}
    ids = {p: set(re.findall(r'\bid="([^"]+)"', text)) for p, text in pages.items()}
    lost = []
    for page, text in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            address, anchor = urldefrag(target)
            if re.match(r"[a-z]+:|//", address) or target in ("#", ""):
                continue
            file = (
                (page.parent / unquote(address.partition("?")[0])).resolve()
                if address
                else page
            )
            if not file.exists() or (
                anchor and file in ids and unquote(anchor) not in ids[file]
            ):
                lost.append(f"{page.name} -> {target}")
    assert not lost


def test_chapters_link_to_one_another_and_to_what_explains_them(built):
    text = {
        name: (built / f"{name}.html").read_text(encoding="utf-8") for name in PAGES
    }
    for chapter in CHAPTERS:
        assert all(
            f'href="{page}.html' in text[chapter]
            for page in ("glossary", "tables", "open")
        )
        numbers = re.findall(
            r'<figure class="numbered" id="figure-(\d+)\.(\d+)"', text[chapter]
        )
        assert (
            numbers
            == [(str(int(chapter[:2])), str(k + 1)) for k in range(len(numbers))]
            and numbers
        )
        assert all(
            f'href="{chapter}.html#figure-{a}.{b}"' in text["tables"]
            for a, b in numbers
        )
        assert (
            'class="cell tag_hide-input' in text[chapter]
            and "glossary.html#term-" in text[chapter]
        )
    for key, paper in papers().items():
        chapter = next(text[c] for c in CHAPTERS if c.startswith(key))
        cited, listed = "references.html#", f'href="claims.html?paper={key}"'
        assert cited in chapter and listed in chapter
        assert [
            id for id in paper.claims if f'href="claims.html#{id}"' not in chapter
        ] == []
        assert (
            f'href="{next(c for c in CHAPTERS if c.startswith(key))}.html"'
            in text["open"]
        )
    assert all(
        'href="#eq-2"' in text[chapter] and '<a id="eq-2">' in text[chapter]
        for chapter in CHAPTERS[1:4]
    )
    assert (
        'href="05_head_to_head.html"' in text["00_tour"]
        and 'href="01_platt' in text["05_head_to_head"]
    )


def test_the_front_page_has_the_scorecard_the_findings_the_idea_and_the_commands(built):
    text = (built / "index.html").read_text(encoding="utf-8")
    marks = re.findall(r'<a class="v v-[\w-]+" href="claims\.html#([^"]+)"', text)
    assert marks == [id for paper in papers().values() for id in paper.claims]
    found = findings(project_root() / "figures")
    assert len(found) == 5 and all(
        html.escape(said.split("**")[1], quote=False) in text for said in found
    )
    assert "_static/idea.svg" in text and "make papers" in text and "make test" in text


def test_the_report_is_a_page_of_ten_minutes(built):
    text = (built.parent / "source" / "report.md").read_text(encoding="utf-8")
    assert 2000 <= len(text.split()) <= 3200
    assert "{" not in text and not re.search(r"\b(?:nan|inf|None)\b", text)
    assert text.count("**What holds.**") == text.count("**Why.**") == len(papers())
    pictures = re.findall(r'<img src="(_static/report/[^"]+)"', text)
    assert len(pictures) == 5 and all((built / file).is_file() for file in pictures)
    front = (built / "index.html").read_text(encoding="utf-8")
    body = front[front.index("<article") :]
    assert body.index('href="report.html"') < body.index('href="00_tour.html"')


def test_the_readme_says_on_its_first_screen_what_was_found():
    root = project_root()
    text = (root / "README.md").read_text(encoding="utf-8")
    first = text.partition("\n## ")[0]
    assert len(first.splitlines()) < 45
    assert all(f"- {said}\n" in first for said in findings(root / "figures"))
    pictures = re.findall(r'<img src="([^"]+)"[^>]*alt="([^"]{20,})"', first)
    assert len(pictures) == 2 and all((root / file).is_file() for file, _ in pictures)
    assert all(f"(notebooks/{chapter}.ipynb)" in first for chapter in CHAPTERS)
    links = metadata.metadata("dagsvm-lab").get_all("Project-URL")
    assert all(
        f"({link.rpartition(', ')[2]})" in first
        for link in links
        if link.startswith("Paper")
    )
    assert all(f"make {goal}" in first for goal in ("papers", "test", "lab", "site"))


@pytest.mark.parametrize("page", ["index", "report", *CHAPTERS])
def test_a_page_sends_little(server, browser, built, page):
    """All that a page asks for, fonts included, and the figures further down, packed as
    servers do it.
    """
    resize(browser, 1440)
    browser.get(f"{server}/{page}.html")
    typeset = "document.querySelector('.math mjx-container')"
    wait(browser, f"!document.querySelector('.math') || {typeset}", 40)
    wait(
        browser,
        "document.readyState == 'complete' && document.fonts.status == 'loaded'",
    )
    asked = browser.execute_script(
        "const names = [...performance.getEntriesByType('resource').map(r => r.name),"
        " ...[...document.images].map(i => i.src), location.href];"
        "return names.filter(name => name.startsWith(location.origin))"
    )
    files = {
        built / unquote(re.split("[?#]", url.removeprefix(f"{server}/"))[0])
        for url in asked
    }
    sizes = [len(gzip.compress(file.read_bytes())) for file in files]
    limit = 900_000 if page in CHAPTERS else 450_000
    assert sum(sizes) <= limit, f"{page} sends {sum(sizes):,} bytes"


def test_no_page_asks_for_an_icon_font(built):
    assert not list(built.rglob("fontawesome*.js")) + list(built.rglob("fa-*.woff2"))
    for sheet in built.rglob("*.css"):
        assert "/fontawesome/" not in sheet.read_text(encoding="utf-8"), sheet
    for page in built.glob("*.html"):
        icons = set(
            re.findall(r"\bfa-(?!solid|regular|lg|fw)[a-z-]+", page.read_text())
        )
        drawn = (built / "_static" / "edition.css").read_text(encoding="utf-8")
        assert [name for name in icons if f".{name} {{" not in drawn] == [], page


@pytest.mark.parametrize("page", CHAPTERS)
def test_figures_are_whole_on_a_wide_screen(server, browser, page):
    resize(browser, 1440)
    browser.get(f"{server}/{page}.html")
    wait(browser, "document.readyState == 'complete'")
    cut = browser.execute_script(
        "return [...document.querySelectorAll('figure .scroll')]"
        ".filter(box => box.scrollWidth > box.clientWidth + 1)"
        ".map(box => box.getAttribute('aria-label'))"
    )
    assert not cut


@pytest.mark.parametrize("page", CHAPTERS)
def test_verdicts_are_seen_on_a_phone(server, browser, page):
    """Claims are cards there: their verdicts do not stand beyond the edge."""
    resize(browser, 390, 844)
    browser.get(f"{server}/{page}.html")
    wait(browser, "document.readyState == 'complete'")
    beyond = browser.execute_script(
        "return [...document.querySelectorAll('table.claims td')]"
        ".filter(cell => cell.getBoundingClientRect().right > innerWidth)"
        ".map(cell => cell.textContent)"
    )
    assert not beyond


def test_an_output_without_a_word_is_left_out(built):
    for chapter in CHAPTERS:
        text = (built / f"{chapter}.html").read_text(encoding="utf-8")
        assert "IPython.core.display" not in text, chapter


@pytest.mark.parametrize("explorer", ["walk", "plane", "bound"])
def test_interactive_figures_work_from_disk(browser, built, explorer):
    browser.get((built / "00_tour.html").as_uri())
    drawn = f"document.querySelector('#{explorer}').childElementCount > 1"
    assert wait(browser, drawn), f"{explorer} stays empty"


def test_the_download_button_gives_the_notebook(built):
    for notebook in (project_root() / "notebooks").glob("*.ipynb"):
        text = (built / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert f'href="_sources/{notebook.name}"' in text
        assert (
            built / "_sources" / notebook.name
        ).read_bytes() == notebook.read_bytes()


def test_one_switch_unfolds_all_code(server, browser):
    resize(browser, 1440)
    browser.get(f"{server}/00_tour.html")
    wait(browser, "document.querySelector('.code-switch') !== null")
    folded = (
        "return [...document.querySelectorAll('.cell details.hide')]"
        ".filter(d => !d.open).length"
    )
    assert browser.execute_script(folded) > 10
    browser.find_element("css selector", ".code-switch").click()
    assert browser.execute_script(folded) == 0
    browser.find_element("css selector", ".code-switch").click()


def test_names_of_attributes_are_whole(built):
    text = (built / "reference" / "DAGSVC.html").read_text(encoding="utf-8")
    assert "<strong>classes_</strong>" in text


def test_every_picture_says_what_it_shows(built):
    silent = []
    for page in built.glob("*.html"):
        for tag in re.findall(r"<img\b[^>]*>", page.read_text(encoding="utf-8")):
            alt = re.search(r'alt="([^"]*)"', tag)
            if not alt or len(alt[1]) < 12:
                silent.append(f"{page.name}: {tag[:90]}")
    assert not silent


@pytest.mark.parametrize("words", ["Theorem 2", "Fisher"])
def test_search_finds(server, browser, words):
    resize(browser, 1440)
    browser.get(f"{server}/search.html?q={words.replace(' ', '+')}")
    assert wait(browser, "document.querySelectorAll('#search-results li a').length > 0")


def test_a_click_on_a_claim_lands_on_its_cell(server, browser):
    browser.get(f"{server}/claims.html")
    links = browser.execute_script(
        "return [...document.querySelectorAll('#claim-list tbody a')]"
        ".map(a => a.getAttribute('href'))"
    )
    assert len(set(links)) > 20
    browser.execute_script(
        "document.querySelector('#claim-list tbody tr[data-kind=statement] a').click()"
    )
    wait(browser, "location.hash.startsWith('#claim-')")
    assert browser.execute_script(
        "return document.getElementById(location.hash.slice(1)) !== null"
    )
    seen = browser.execute_script(
        "return document.getElementById(location.hash.slice(1))"
        ".getBoundingClientRect().top"
    )
    assert seen < 1000


def test_claims_are_filtered(server, browser):
    browser.get(f"{server}/claims.html?verdict=not+reproduced")
    wait(browser, "document.readyState == 'complete'")
    seen = (
        "return [...document.querySelectorAll('#claim-list tbody tr')]"
        ".filter(r => !r.hidden).map(r => ({...r.dataset}))"
    )
    shown = browser.execute_script(seen)
    assert shown and all(
        "not reproduced" in (row["verdict"], row["inferred"]) for row in shown
    )
    for name, value in (("paper", "02_yu2011"), ("kind", "cell")):
        browser.find_element(
            "css selector", f"[data-filter={name}] option[value='{value}']"
        ).click()
        assert len(shown) > len(shown := browser.execute_script(seen)) > 0
        assert {row[name] for row in shown} == {value}


def shown_sample(browser, box):
    """Which sample a walk shows: each opens on one from which something is learnt."""
    said = browser.execute_script(f"return document.querySelector('{box}').textContent")
    return int(re.search(r"Sample (\d+) of", said)[1]) - 1


def test_the_walk_shows_the_packages_numbers(server, browser, built):
    sets = recorded("walk")
    browser.get(f"{server}/00_tour.html")
    wait(browser, "document.querySelector('#walk [data-key=end]') !== null")
    rows = sets["digits"]["systems"]["DDAG"]["rows"]
    for _ in rows:
        browser.execute_script("document.querySelector('#walk [data-key=end]').click()")
        text = browser.execute_script(
            "return document.querySelector('#walk [data-system=DDAG]').textContent"
        )
        row = rows[shown_sample(browser, "#walk")]
        assert f"Answer: {row['answer']}." in text
        assert f"Kernel values so far: {row['steps'][-1]['kernel']}." in text
        assert f"Value {row['steps'][-1]['f']:.3f}" in text
        browser.execute_script(
            "document.querySelector('#walk [data-key=next-row]').click()"
        )


def test_the_plane_answers_as_its_machines_do_and_to_keys(server, browser, built):
    from selenium.webdriver.common.keys import Keys

    model = recorded("plane")
    browser.get(f"{server}/00_tour.html")
    wait(browser, "document.querySelector('#plane').dagsvm !== undefined")
    points, answers = model["checked"]["points"], model["checked"]["answers"]
    assert len(points) == 10 and {"Max Wins", "DDAG", "filtered DAG"} <= set(answers)
    for name, labels in answers.items():
        for (x, y), label in zip(points, labels, strict=True):
            ask = (
                "return document.querySelector('#plane').dagsvm"
                f".answer({name!r}, {x}, {y}).label"
            )
            assert browser.execute_script(ask) == label, (name, x, y)
    before = browser.execute_script(
        "return document.querySelector('#plane .told').textContent"
    )
    browser.find_element("css selector", "#plane canvas").send_keys(Keys.ARROW_RIGHT)
    assert (
        browser.execute_script(
            "return document.querySelector('#plane .told').textContent"
        )
        != before
    )


def test_the_bound_page_computes_what_the_package_does(server, browser):
    browser.get(f"{server}/00_tour.html")
    wait(browser, "document.querySelector('#bound').dagsvm !== undefined")
    dagsvm = "return document.querySelector('#bound').dagsvm"
    rng = np.random.default_rng(1)
    for _ in range(10):
        K = int(rng.integers(1, 300))
        gamma = rng.uniform(0.05, 1)
        m = int(rng.integers(100, 10**7))
        delta = rng.uniform(0.01, 0.2)
        found = browser.execute_script(
            f"{dagsvm}.theorem({K}, {gamma}, 1, {m}, {delta})"
        )
        assert found == pytest.approx(
            bounds.theorem1(np.full(K, gamma), 1.0, m, delta), rel=1e-9
        )
        wrong = int(rng.integers(0, 40))
        rows = int(rng.integers(50, 3000))
        found = browser.execute_script(f"{dagsvm}.binomial({wrong}, {rows}, 0.025)")
        assert 100 * found == pytest.approx(binomial_interval(wrong, rows)[1], abs=1e-6)


@pytest.fixture(scope="module")
def frames(built):
    """Pages of what `touch.interactive` shows in JupyterLab, and the systems fitted."""
    d = load("artificial", n_per_class=60, seed=3)
    wins = MaxWinsSVC(C=10, gamma=0.1).fit(d.X, d.y)
    others = {
        "DDAG": DAGSVC(C=10, gamma=0.1),
        "filtered DAG": FilteredDAGSVC(C=10, gamma=0.1),
    }
    systems = {
        name: est.fit_over(wins.machines_, d.X, d.y) for name, est in others.items()
    }
    fresh = load("artificial", n_per_class=60, seed=4)
    systems["filtered DAG"].calibrate(fresh.X, fresh.y)
    rows = np.random.default_rng(5).uniform(-8, 8, (10, 2))
    data = {"set": touch.walks(systems, rows, wins.predict(rows), d.X, d.y)}
    (built / "lab").mkdir(exist_ok=True)
    drawn = touch.plane({"Max Wins": wins} | systems, d.X, d.y)
    assert json.dumps(
        [data, drawn], allow_nan=False
    )  # a page could not read NaN or infinity
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(QUIET, raising=False)
        for kind, given in (("walk", data), ("plane", drawn), ("bound", None)):
            said = []
            patch.setattr("IPython.display.display", said.append)
            touch.interactive(kind, given)
            page = f"<!doctype html><meta charset=utf-8>{said[0].data}"
            (built / "lab" / f"{kind}.html").write_text(page, encoding="utf-8")
    return {"Max Wins": wins} | systems, rows


def into_frame(browser, server, kind):
    browser.switch_to.default_content()
    browser.get(f"{server}/lab/{kind}.html")
    browser.switch_to.frame(0)
    wait(browser, "document.querySelector('#here').children.length > 0")


def test_the_walk_in_a_notebook_shows_what_the_estimators_say(server, browser, frames):
    systems, rows = frames
    into_frame(browser, server, "walk")
    from selenium.webdriver.common.keys import Keys

    for _ in rows:
        browser.find_element("css selector", "[data-key=end]").send_keys(Keys.ENTER)
        k = shown_sample(browser, "#here")
        for name in ("DDAG", "filtered DAG"):
            label, cost = systems[name].predict_with_cost(rows[[k]])
            text = browser.execute_script(
                f"return document.querySelector('[data-system=\"{name}\"]').textContent"
            )
            assert f"Answer: {label[0]}." in text
            assert f"Kernel values so far: {cost.kernel_evaluations[0]}." in text
            first_stage = name == "filtered DAG"  # counted as a decision
            machines = cost.binary_decisions[0] - first_stage
            assert f"{machines} of 15 machines" in text
            assert ("the filter and" in text) == first_stage
        browser.find_element("css selector", "[data-key=next-row]").click()
    browser.switch_to.default_content()


def test_the_walk_shows_the_filter_and_its_threshold(server, browser, frames):
    systems, rows = frames
    est = systems["filtered DAG"]
    into_frame(browser, server, "walk")
    for _ in rows:
        k = shown_sample(browser, "#here")
        own = "document.querySelector('[data-system=\"filtered DAG\"]')"
        text = browser.execute_script(f"return {own}.textContent")
        lead = leads(est.filter_.decision(rows[[k]]))[0]
        out = est.classes_[lead > est.bound_]
        rejected = " ".join(map(str, out))
        assert (f"rejects {rejected}." if len(out) else "rejects no class") in text
        assert f"threshold {est.bound_:.2f}" in text
        bars = browser.execute_script(
            f"return [...{own}.querySelectorAll('rect')]"
            ".map(r => +r.getAttribute('width'))"
        )
        assert len(bars) == 6
        assert np.argsort(bars, kind="stable").tolist() == np.argsort(lead).tolist()
        browser.find_element("css selector", "[data-key=next-row]").click()
    browser.switch_to.default_content()


@pytest.mark.parametrize("kind", ["walk", "plane", "bound"])
def test_each_interactive_figure_says_what_to_try(server, browser, frames, kind):
    into_frame(browser, server, kind)
    said = browser.execute_script(
        "return document.querySelector('#here .hint').textContent"
    )
    assert said.startswith("Try: ")
    browser.switch_to.default_content()


def test_the_plane_opens_where_systems_disagree(server, browser, frames):
    into_frame(browser, server, "plane")
    answers = browser.execute_script(
        "return [...document.querySelectorAll('tr[data-system]')]"
        ".map(r => r.children[1].textContent)"
    )
    assert len(set(answers)) > 1
    browser.switch_to.default_content()


@pytest.mark.parametrize("explorer", ["walk", "bound"])
def test_letters_of_interactive_figures_are_read_on_a_phone(server, browser, explorer):
    resize(browser, 390, 844)
    browser.get(f"{server}/00_tour.html")
    wait(browser, f"document.querySelector('#{explorer} svg text') !== null")
    sizes = browser.execute_script(
        f"return [...document.querySelectorAll('#{explorer} svg text')]"
        ".map(t => t.getBoundingClientRect().height)"
    )
    assert min(sizes) >= 10, "pixels"
    wide = browser.execute_script(
        f"const box = document.querySelector('#{explorer}');"
        "return box.scrollWidth - box.clientWidth"
    )
    assert wide <= 0, "nothing is cut off"
    resize(browser, 1440)


def test_the_plane_in_a_notebook_answers_as_the_estimators_do(server, browser, frames):
    systems, rows = frames
    into_frame(browser, server, "plane")
    ask = "return document.querySelector('#here').dagsvm"
    for name, est in systems.items():
        place = np.searchsorted(est.classes_, est.predict(rows))
        for (x, y), label in zip(rows, place, strict=True):
            assert (
                browser.execute_script(f"{ask}.answer({name!r}, {x}, {y}).label")
                == label
            )
    for alpha in (0.004, 0.01, 0.1):
        for (x, y), held in zip(
            rows, systems["filtered DAG"].predict_set(rows, alpha), strict=True
        ):
            found = browser.execute_script(
                f"{ask}.uncertain('filtered DAG', {alpha}, {x}, {y})"
            )
            assert found == np.flatnonzero(held).tolist()
    browser.execute_script(
        "const alpha = document.querySelector('input[type=range]');"
        "alpha.value = .05; alpha.dispatchEvent(new Event('input'))"
    )
    assert "At α = 0.05" in browser.execute_script(
        "return document.querySelector('#here .told').textContent"
    )
    browser.switch_to.default_content()


def test_the_bound_in_a_notebook_heeds_keys(server, browser, frames):
    from selenium.webdriver.common.keys import Keys

    into_frame(browser, server, "bound")
    first = "return +document.querySelector('[data-bound=\"Theorem 1\"]').dataset.value"
    before = browser.execute_script(first)
    browser.find_element("css selector", "input[name=m]").send_keys(Keys.ARROW_RIGHT)
    assert browser.execute_script(first) < before
    browser.switch_to.default_content()


DARK = [
    page for page in PAGES if page not in ("reference", *CHAPTERS[1:])
]  # the others look as these do


@pytest.mark.parametrize(
    ("page", "dark"),
    [*((page, True) for page in DARK), *((page, False) for page in PAGES)],
)
def test_axe_finds_nothing_serious(server, browser, page, dark):
    if find_spec("axe_core_python") is None:
        pytest.skip("axe-core-python is not installed")
    axe = (
        Path(find_spec("axe_core_python").origin)
        .with_name("axe.min.js")
        .read_text(encoding="utf-8")
    )
    resize(browser, 1440)
    browser.get(f"{server}/{page}.html")
    wait(browser, "document.readyState == 'complete'")
    browser.execute_script(
        "document.documentElement.dataset.theme = arguments[0]",
        "dark" if dark else "light",
    )
    browser.execute_script(axe)
    where = (
        {"exclude": [["pre"]]} if page not in DARK else "html"
    )  # code looks the same in all, and is long
    browser.set_script_timeout(120)
    found = browser.execute_async_script(
        "axe.run(arguments[0], {resultTypes: ['violations']}).then(arguments[1])", where
    )
    bad = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    assert not [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in bad]
