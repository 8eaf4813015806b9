"""The Memory page without a browser: fill in its inputs, and read its answers."""

from typing import Any

from streamlit.testing.v1 import AppTest

from tests.page import open_app, unescaped, words


def open_page() -> AppTest:
    return open_app().switch_page("views/memory.py").run()


def put(page: AppTest, /, **values: Any) -> AppTest:
    """Set inputs by their key without `memory.`, with __ for a dot; then run once."""
    kinds = (page.selectbox, page.number_input, page.checkbox, page.text_input, page.text_area, page.toggle)
    found = {one.key: one for kind in (*kinds, page.segmented_control) for one in kind}
    for name, value in values.items():
        found[f"memory.{name.replace('__', '.')}"].set_value(value)
    return page.run()


def gemma(**more: Any) -> AppTest:
    """Gemma 3 12B with 32,768 positions for four slots."""
    return put(open_page(), **{"model": "Gemma 3 12B", "ctx": 32768, "slots": 4} | more)


def metrics(page: AppTest) -> dict[str, str]:
    return {one.label: one.value for one in page.metric}


def told(page: AppTest) -> str:
    return unescaped(words(page))


def errors(page: AppTest) -> list[str]:
    return [unescaped(one.value) for one in page.error]
