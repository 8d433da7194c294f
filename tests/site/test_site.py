"""The reader's edition in a real browser: pages, links, formulas, search, claims, things to touch, phones, axe."""

import json
import re
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urldefrag

import numpy as np
import pytest

from dagsvm_lab import bounds
from dagsvm_lab.report.record import project_root
from dagsvm_lab.report.verdicts import binomial_interval

CHAPTERS = [p.stem for p in sorted((project_root() / "notebooks").glob("*.ipynb"))]
PAGES = ["index", *CHAPTERS, "touch", "claims", "tables", "open", "glossary", "references", "recipes", "reference"]


def resize(browser, width, height=1000):
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def wait(browser, script, seconds=20):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, seconds).until(lambda b: b.execute_script(f"return {script}"))


@pytest.mark.parametrize("page", PAGES)
def test_page_loads_whole_without_errors_or_foreign_requests(server, browser, page):
    resize(browser, 1440)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(f"{server}/{page}.html")
    wait(browser, "document.readyState == 'complete' && (!window.MathJax || !MathJax.startup || "
         "MathJax.startup.promise.then(() => {window.mathDone = true}) && window.mathDone === true)", 40)  # fmt: skip
    severe = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not severe
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert all(url.startswith((server, "data:", "blob:")) for url in asked)
    assert not [
        m for m in messages if m["method"] == "Network.responseReceived" and m["params"]["response"]["status"] >= 400
    ]
    assert browser.execute_script("return document.querySelectorAll('mjx-merror, .MathJax_Error').length") == 0
    formulas = browser.execute_script("return document.querySelectorAll('.math').length")
    rendered = browser.execute_script("return document.querySelectorAll('.math mjx-container').length")
    assert rendered >= formulas


@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(server, browser, page):
    resize(browser, 390, 844)
    browser.get(f"{server}/{page}.html")
    wait(browser, "document.readyState == 'complete'")
    assert browser.execute_script("return document.scrollingElement.scrollWidth") <= 390


def test_every_internal_link_anchor_and_image_resolves(built):
    pages = {p: p.read_text(encoding="utf-8") for p in built.glob("*.html")}
    ids = {p: set(re.findall(r'\bid="([^"]+)"', text)) for p, text in pages.items()}
    lost = []
    for page, text in pages.items():
        for target in re.findall(r'(?:href|src)="([^"]+)"', text):
            address, anchor = urldefrag(target)
            if re.match(r"[a-z]+:|//", address) or target in ("#", ""):
                continue
            file = (page.parent / unquote(address.partition("?")[0])).resolve() if address else page
            if not file.exists() or (anchor and file in ids and unquote(anchor) not in ids[file]):
                lost.append(f"{page.name} -> {target}")
    assert not lost


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
        "return [...document.querySelectorAll('#claims tbody a')].map(a => a.getAttribute('href'))"
    )
    assert len(set(links)) > 20
    browser.execute_script("document.querySelector('#claims tbody tr[data-kind=statement] a').click()")
    wait(browser, "location.hash.startsWith('#claim-')")
    assert browser.execute_script("return document.getElementById(location.hash.slice(1)) !== null")
    seen = browser.execute_script("return document.getElementById(location.hash.slice(1)).getBoundingClientRect().top")
    assert seen < 1000


def test_claims_are_filtered_by_verdict(server, browser):
    browser.get(f"{server}/claims.html?verdict=not+reproduced")
    wait(browser, "document.readyState == 'complete'")
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#claims tbody tr')].filter(r => !r.hidden)"
        ".map(r => r.dataset.verdict + r.dataset.inferred)"
    )
    assert shown and all("not reproduced" in words for words in shown)


def test_the_walk_shows_the_packages_numbers(server, browser, built):
    sets = json.loads((built / "_static" / "touch" / "touch_walk.json").read_text())
    browser.get(f"{server}/touch.html")
    wait(browser, "document.querySelector('#walk [data-key=end]') !== null")
    rows = sets["digits"]["systems"]["DDAG"]["rows"]
    for row in rows[:10]:
        browser.execute_script("document.querySelector('#walk [data-key=end]').click()")
        text = browser.execute_script("return document.querySelector('#walk [data-system=DDAG]').textContent")
        assert f"Answer: {row['answer']}." in text
        assert f"Kernel values so far: {row['steps'][-1]['kernel']}." in text
        assert f"Value {row['steps'][-1]['f']:.3f}" in text
        browser.execute_script("document.querySelector('#walk [data-key=next-row]').click()")


def test_the_plane_answers_as_its_machines_do_and_to_keys(server, browser, built):
    from selenium.webdriver.common.keys import Keys

    model = json.loads((built / "_static" / "touch" / "touch_plane.json").read_text())
    browser.get(f"{server}/touch.html")
    wait(browser, "document.querySelector('#plane').dagsvm !== undefined")
    points, answers = model["checked"]["points"], model["checked"]["answers"]
    assert len(points) == 10 and {"Max Wins", "DDAG", "conformal DAG"} <= set(answers)
    for name, labels in answers.items():
        for (x, y), label in zip(points, labels, strict=True):
            ask = f"return document.querySelector('#plane').dagsvm.answer({name!r}, {x}, {y}).label"
            assert browser.execute_script(ask) == label, (name, x, y)
    before = browser.execute_script("return document.querySelector('#plane p').textContent")
    browser.find_element("css selector", "#plane canvas").send_keys(Keys.ARROW_RIGHT)
    assert browser.execute_script("return document.querySelector('#plane p').textContent") != before


def test_the_bound_page_computes_what_the_package_does(server, browser):
    browser.get(f"{server}/touch.html")
    wait(browser, "document.querySelector('#bound').dagsvm !== undefined")
    rng = np.random.default_rng(1)
    for _ in range(10):
        K, gamma, m, delta = (
            int(rng.integers(1, 300)),
            rng.uniform(0.05, 1),
            int(rng.integers(100, 10**7)),
            rng.uniform(0.01, 0.2),
        )
        found = browser.execute_script(
            f"return document.querySelector('#bound').dagsvm.theorem({K}, {gamma}, 1, {m}, {delta})"
        )
        assert found == pytest.approx(bounds.theorem1(np.full(K, gamma), 1.0, m, delta), rel=1e-9)
        wrong, rows = int(rng.integers(0, 40)), int(rng.integers(50, 3000))
        found = browser.execute_script(
            f"return document.querySelector('#bound').dagsvm.binomial({wrong}, {rows}, 0.025)"
        )
        assert 100 * found == pytest.approx(binomial_interval(wrong, rows)[1], abs=1e-6)


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("page", ["index", "claims", "touch", "glossary", CHAPTERS[0]])
def test_axe_finds_nothing_serious(server, browser, page, dark):
    if find_spec("axe_core_python") is None:
        pytest.skip("axe-core-python is not installed")
    axe = Path(find_spec("axe_core_python").origin).with_name("axe.min.js").read_text(encoding="utf-8")
    resize(browser, 1440)
    browser.get(f"{server}/{page}.html")
    wait(browser, "document.readyState == 'complete'")
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", "dark" if dark else "light")
    browser.execute_script(axe)
    found = browser.execute_async_script(
        "axe.run({rules: {'color-contrast-enhanced': {enabled: false}}}).then(arguments[arguments.length - 1])"
    )
    bad = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
    assert not [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in bad]
