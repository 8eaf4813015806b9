"""axe-core 4.14.1 from npm, packed as it is published, under its own licence beside it: what it finds on a page."""

import gzip
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

SCRIPT = Path(__file__).with_name("axe.min.js.gz")
SERIOUS = ("serious", "critical")
RUN = "() => axe.run(document, {resultTypes: ['violations']}).then(found => found.violations)"


def violations(page: Page) -> list[str]:
    """Every serious or critical violation on a page as rule, help and the element, one a line."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(gzip.decompress(SCRIPT.read_bytes()).decode("utf-8"))
    found: list[dict[str, Any]] = page.evaluate(RUN)
    return [
        f"{each['id']}: {each['help']}: {node['html'][:160]}: {node['failureSummary'][:200]}"
        for each in found
        if each["impact"] in SERIOUS
        for node in each["nodes"]
    ]
