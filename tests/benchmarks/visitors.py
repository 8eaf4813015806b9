"""Many visitors at once: contexts that step for a time, what went wrong, and the server's memory before and after.

Run as `python -m tests.benchmarks.visitors [VISITORS] [SECONDS] [WAVES]`; 20, 120, 2 unless told. Every visitor has a
scenario of the library and edits of its own. The server forgets a visitor two minutes after the page was closed, so
memory is taken after that. What the first wave leaves is kept for all: modules and timelines. A later one is to leave
no more. Ends with a non-zero code if it does, or if anything went wrong.

The server runs as the README advises for many visitors, with two malloc arenas: by default glibc gives the threads of
the runs up to eight for each processor, and what is freed in them in small pieces is not handed back to the system.
"""

import shutil
import sys
from pathlib import Path
from threading import Event
from time import monotonic

from playwright.sync_api import Browser, Page, sync_playwright

from kvmodel.library import shipped
from tests.browser.conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES, VIEWPORT
from tests.browser.helpers import open_page, settle, watch
from tests.browser.server import Server, serve
from tests.browser.stepping import click, step_of
from tests.sources import ROOT

FORGOTTEN_SECONDS = 150
MOST_GROWTH = 1.05
"""Memory after the last wave, in that after the first: its pages are not the same ones to the byte."""

ARENAS = {"MALLOC_ARENA_MAX": "2"}

PAUSE = Event()


def resident_mib(pid: int) -> float:
    """Memory of a process that is in use now."""
    [line] = [line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


def visitor(browser: Browser, server: Server, scenario_id: str, complaints: list[str]) -> Page:
    """A context of its own at one scenario."""
    page = browser.new_context(viewport=VIEWPORT).new_page()
    page.on("pageerror", lambda error: complaints.append(f"script: {error}"))
    watch(page)
    open_page(page, f"{server.url}?scenario={scenario_id}")
    return page


def look_around(pages: list[Page], seconds: float) -> int:
    """Let every page step forward, and from its start again at its end, until the time is over; return the steps."""
    end, steps = monotonic() + seconds, 0
    while monotonic() < end:
        for page in pages:
            at_end = page.get_by_role("button", name="Next").is_disabled()
            page.keyboard.press("Home" if at_end else "ArrowRight")
        for page in pages:
            settle(page)
        steps += len(pages)
    return steps


def edits_are_apart(pages: list[Page]) -> list[str]:
    """One edit in every page; each must count its own only."""
    for page in pages:
        page.get_by_label("Text", exact=True).fill("mine")
        click(page, "Add as step")
    told = []
    for page in pages:
        click(page, "Undo")
        if not page.get_by_role("button", name="Undo").is_disabled():
            told.append(f"{page.url}: an edit too many")
        step_of(page)
    return told


def wave(browser: Browser, server: Server, visitors: int, seconds: float, complaints: list[str]) -> float:
    """Visitors that come, step and leave; MiB of the server after they were forgotten."""
    ids = list(shipped())
    pages = [visitor(browser, server, ids[i % len(ids)], complaints) for i in range(visitors)]
    steps = look_around(pages, seconds)
    complaints += edits_are_apart(pages)
    busy = resident_mib(server.pid)
    for page in pages:
        complaints += [f"{page.url}: an exception is shown"] * page.get_by_test_id("stException").count()
        page.context.close()
    PAUSE.wait(FORGOTTEN_SECONDS)
    visitor(browser, server, ids[0], complaints).context.close()
    after = resident_mib(server.pid)
    print(f"{visitors} visitors, {seconds} s, {steps:,} steps: {busy:.0f} MiB with all of them, {after:.0f} MiB after")
    return after


def main(visitors: int = 20, seconds: int = 120, waves: int = 2) -> int:
    """Run it and print what was found."""
    path = next(path for name in CHROMIUM_NAMES if (path := shutil.which(name)))
    complaints: list[str] = []
    with serve(ROOT / "app" / "main.py", **ARENAS) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        visitor(browser, server, next(iter(shipped())), complaints).context.close()
        print(f"server memory: {resident_mib(server.pid):.0f} MiB before")
        left = [wave(browser, server, visitors, seconds, complaints) for _ in range(waves)]
        browser.close()
        complaints += ["the server printed a traceback"] * ("Traceback" in server.printed())
        complaints += ["memory does not return"] * (left[-1] > left[0] * MOST_GROWTH)
    print(f"{len(complaints)} complaints")
    print("\n".join(complaints))
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
