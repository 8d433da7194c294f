"""The edition, served on loopback, and a headless Chromium that reaches no other host.

Tests are skipped where there is no Chromium.
"""

import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from dagsvm_lab.files import project_root


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    pytest.importorskip("sphinx_book_theme", reason="the extra `site` is not installed")
    pytest.importorskip("myst_nb", reason="the extra `site` is not installed")
    out = tmp_path_factory.mktemp("site")
    build = project_root() / "notebooks" / "site" / "build.py"
    done = subprocess.run([sys.executable, build, out], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return out / "html"


@pytest.fixture(scope="session")
def server(built):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(built)))
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()


@pytest.fixture(scope="session")
def browser():
    webdriver = pytest.importorskip(
        "selenium.webdriver", reason="selenium is not installed"
    )
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("no Chromium with its driver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    flags = (
        "headless=new no-sandbox disable-gpu disable-quic no-first-run hide-scrollbars"
    )
    quiet = "disable-component-update disable-background-networking disable-sync"
    only_loopback = "host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
    for flag in (*flags.split(), *quiet.split(), only_loopback):
        options.add_argument(f"--{flag}")
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    window = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield window
    window.quit()
