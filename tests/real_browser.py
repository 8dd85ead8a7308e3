"""The system's Chromium, for the tests of a module.

Playwright can be started once at a time in a process, and no other event loop can be while it is.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest


@pytest.fixture(scope="module")
def browser(lacking: Callable[[str], NoReturn]) -> Iterator[Any]:
    """The system's Chromium."""
    places = (os.environ.get("CHROMIUM"), "chromium", "chromium-browser", "google-chrome")
    found = next((path for place in places if place and (path := shutil.which(place))), None)
    if found is None:
        lacking("chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # as root, Chromium has no sandbox of its own; the pages are ours and load nothing
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()
