"""
A picture in an HTML file that loads nothing from any server. Pure.

A tooltip shows the details of the part under the pointer or the focus; a filter highlights the parts with
some words and all that they are connected to. The Content-Security-Policy allows only the page's own script
and style, by their hashes.
"""

import base64
import hashlib
from collections.abc import Sequence
from typing import Final

from kubectl_placement.drawing.svg import FONT, Element, color_css, element, to_text

_RULES: Final = """
:root{color-scheme:light dark}
body{margin:0;font:14px/1.5 $FONT;background:$page;color:$ink}
header{display:flex;flex-wrap:wrap;gap:4px 24px;align-items:center;padding:12px 20px}
header{border-bottom:1px solid $faint}
h1{font-size:18px;margin:0}
p{margin:0;color:$muted}
label{margin-left:auto}
input{font:inherit;padding:4px 8px;width:16em;border-radius:6px}
input{background:$plain;color:$ink;border:1px solid $line}
input::placeholder{color:$muted;opacity:1}
output{color:$muted;min-width:6em}
main{overflow:auto}
main svg{display:block;max-width:100%;min-width:1100px;height:auto}
.off{opacity:.15}
[data-detail]:focus{outline:none}
[data-detail]:focus .box{stroke:$path;stroke-width:3}
#tip{position:fixed;max-width:32em;padding:8px 12px;background:$page;color:$ink;border:1px solid $line}
#tip{border-radius:6px;white-space:pre-line;overflow-wrap:anywhere;pointer-events:none}
#tip[hidden],tr[hidden]{display:none}
details{padding:12px 20px}
table{border-collapse:collapse}
th,td{text-align:left;vertical-align:top;padding:3px 16px 3px 0;white-space:pre-line}
th,td{border-bottom:1px solid $faint}
"""
STYLE: Final = color_css(_RULES.replace("$FONT", FONT).strip().splitlines())


SCRIPT: Final = """
'use strict';
const tip = document.getElementById('tip');
const filter = document.getElementById('filter');
const parts = [...document.querySelectorAll('[data-detail]')];
const edges = [...document.querySelectorAll('[data-from]')];
const rows = [...document.querySelectorAll('tbody tr')];
function show(part) {
  tip.textContent = part.dataset.detail;
  tip.hidden = false;
  part.setAttribute('aria-describedby', 'tip');
  const at = part.getBoundingClientRect();
  const left = Math.min(Math.max(at.left, 8), innerWidth - tip.offsetWidth - 8);
  const below = at.bottom + 8 + tip.offsetHeight < innerHeight;
  tip.style.left = Math.max(left, 8) + 'px';
  tip.style.top = Math.max(below ? at.bottom + 8 : at.top - tip.offsetHeight - 8, 8) + 'px';
}
function hide() {
  tip.hidden = true;
  parts.forEach(part => part.removeAttribute('aria-describedby'));
}
function reach(from, to, found) {
  let grown = true;
  while (grown) {
    grown = false;
    for (const edge of edges) {
      if (found.has(edge.dataset[from]) && !found.has(edge.dataset[to])) {
        found.add(edge.dataset[to]);
        grown = true;
      }
    }
  }
  return found;
}
function sift() {
  const words = filter.value.toLowerCase().split(/\\s+/).filter(Boolean);
  const fits = text => words.every(word => text.includes(word));
  const hits = parts.filter(part => fits(part.dataset.find));
  const ids = hits.map(part => part.id);
  const kept = new Set([...reach('from', 'to', new Set(ids)), ...reach('to', 'from', new Set(ids))]);
  for (const part of parts) {
    part.classList.toggle('off', !kept.has(part.id));
    part.setAttribute('tabindex', kept.has(part.id) ? 0 : -1);
  }
  edges.forEach(edge => edge.classList.toggle(
    'off', !(kept.has(edge.dataset.from) && kept.has(edge.dataset.to))));
  rows.forEach(row => { row.hidden = !fits(row.textContent.toLowerCase()); });
  document.getElementById('count').textContent = words.length ? `${hits.length} of ${parts.length}` : '';
}
for (const part of parts) {
  part.addEventListener('pointerenter', () => show(part));
  part.addEventListener('pointerleave', hide);
  part.addEventListener('focus', () => show(part));
  part.addEventListener('blur', hide);
}
document.addEventListener('keydown', event => { if (event.key === 'Escape') hide(); });
filter.addEventListener('input', sift);
"""


def page(
    title: str, message: str, drawn: Element, style: str, heads: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    """Return the page: the picture `drawn` with its `style`, and the same as a table for screen readers."""
    whole = STYLE + style
    policy = (
        f"default-src 'none'; style-src '{hash_of(whole)}'; script-src '{hash_of(SCRIPT)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", text=title),
        element("style", text=whole),
    )
    box = element(
        "input", id="filter", type="search", autocomplete="off", placeholder="a name, a state, a reason"
    )
    header = element(
        "header",
        element("h1", text=title),
        element("p", text=message),
        element("label", element("span", text="Filter "), box),
        element("output", id="count", for_="filter", aria_live="polite", text=" "),
    )
    headings = element("tr", *(element("th", scope="col", text=text) for text in heads))
    lines = [element("tr", *(element("td", text=text or " ") for text in row)) for row in rows]
    table = element("table", element("thead", headings), element("tbody", *lines))
    details = element("details", element("summary", text="The same as a table"), table)
    tip = element("div", id="tip", role="tooltip", hidden="hidden", text=" ")
    body = to_text(element("body", header, element("main", drawn), details, tip))
    # The script is inserted unescaped: HTML does not unescape `>` and `&` in scripts. The style has neither.
    body = body.removesuffix("</body>") + f"<script>{SCRIPT}</script></body>"
    return f'<!DOCTYPE html>\n<html lang="en">{to_text(head)}{body}</html>\n'


def hash_of(text: str) -> str:
    """Return the hash of a script or a style for a Content-Security-Policy."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
