"""The page and its data: what others wrote is data, and characters that nobody sees are shown."""

import json

import pytest

from kubectl_placement.ui.page import read_page, to_json

TEXTS = [
    pytest.param("plain ü 集群 \\ \" ' \n \t", "plain ü 集群 \\ \" ' \n \t", id="as-it-is"),
    pytest.param("\x00\x08\x0c\r\x1b\x7f\x9f", "\\x00\\x08\\x0c\\x0d\\x1b\\x7f\\x9f", id="controls"),
    pytest.param("a\u202eb\u200b\ufeff", "a\\u202eb\\u200b\\ufeff", id="invisible"),
    pytest.param("\\u001b \\x1b \\\\", "\\u001b \\x1b \\\\", id="text-of-an-escape"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_characters_that_nobody_sees_are_shown(text: str, shown: str) -> None:
    assert json.loads(to_json({text: [text]})) == {shown: [shown]}


def test_the_servers_page_has_its_own_rules_and_no_place_for_data() -> None:
    page = read_page()
    assert "connect-src 'self'; frame-ancestors 'none'" in page.policy
    assert "<!-- policy -->" not in page.text
    assert "<!-- data -->" not in page.text
