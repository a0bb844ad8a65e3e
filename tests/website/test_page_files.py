"""The page as a file: what others wrote is data, and the file makes no request."""

import json

import pytest

from website.page_files import page_file

HOSTILE = ["</script><script>bad()</script>", "<!--<script>", "<!-- policy -->\n", "/* script */", "]]>"]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_data_ends_the_element_they_are_in(text: str) -> None:
    page, mild = page_file({"name": text}), page_file({"name": "mild"})
    begin = page.index('type="application/json">') + len('type="application/json">')
    data, end, rest = page[begin:].partition("</script>")
    assert json.loads(data) == {"name": text}
    assert (page[:begin], end + rest) == tuple(mild.split('{"name":"mild"}'))


def test_a_file_makes_no_request() -> None:
    assert "default-src 'none'" in page_file({})
    assert "connect-src" not in page_file({})
