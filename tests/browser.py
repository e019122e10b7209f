"""Headless Chromium, driven by playwright, for the tests of pages."""

import shutil

import pytest

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="needs a browser: playwright is missing (make test-page)"
)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
if CHROMIUM is None:
    pytest.skip("needs a browser: apt-get install chromium", allow_module_level=True)
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield browser
        browser.close()
