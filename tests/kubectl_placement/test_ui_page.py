"""The page and its data: what others wrote is data, and characters that nobody sees are shown."""

import json

import pytest

from kubectl_placement.ui.page import page_file, read_page, to_json

TEXTS = [
    pytest.param("plain ü 集群 \\ \" ' \n \t", "plain ü 集群 \\ \" ' \n \t", id="as-it-is"),
    pytest.param("\x00\x08\x0c\r\x1b\x7f\x9f", "\\x00\\x08\\x0c\\x0d\\x1b\\x7f\\x9f", id="controls"),
    pytest.param("a\u202eb\u200b\ufeff", "a\\u202eb\\u200b\\ufeff", id="invisible"),
    pytest.param("\\u001b \\x1b \\\\", "\\u001b \\x1b \\\\", id="text-of-an-escape"),
]


@pytest.mark.parametrize(("text", "shown"), TEXTS)
def test_characters_that_nobody_sees_are_shown(text: str, shown: str) -> None:
    assert json.loads(to_json({text: [text]})) == {shown: [shown]}


HOSTILE = ["</script><script>bad()</script>", "<!--<script>", "<!-- policy -->\n", "/* script */", "]]>"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_data_ends_the_element_they_are_in(text: str) -> None:
    page, mild = page_file({"name": text}), page_file({"name": "mild"})
    begin = page.index('type="application/json">') + len('type="application/json">')
    data, end, rest = page[begin:].partition("</script>")
    assert json.loads(data) == {"name": text}
    assert (page[:begin], end + rest) == tuple(mild.split('{"name":"mild"}'))


def test_a_file_makes_no_request_and_only_the_servers_page_has_its_own_rules() -> None:
    page = read_page()
    assert "connect-src 'self'; frame-ancestors 'none'" in page.policy
    assert "<!-- policy -->" not in page.text
    assert "<!-- data -->" not in page.text
    assert "default-src 'none'" in page_file({})
    assert "connect-src" not in page_file({})
