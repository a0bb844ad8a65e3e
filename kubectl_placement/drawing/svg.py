"""
SVG elements, text widths, and colours for light and dark schemes. Pure.

A picture is one file without external fonts, style sheets or scripts. Text widths are upper estimates,
because the viewer chooses the font.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from xml.etree import ElementTree as ET  # only written, never parsed

from placement_ac.core.api.printable import visible

Element = ET.Element

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
NAME_SIZE, TEXT_SIZE, SMALL_SIZE = 14.0, 12.0, 11.0
MARGIN: Final = 20.0
NARROW: Final = frozenset("fijlrtI.,:;|!'()[]/ -·")
WIDE: Final = frozenset("mwMW@%—…")
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot represent."""


def element(tag: str, *children: Element, text: str = "", **attributes: object) -> Element:
    """Return an element; `_` in the name of an attribute becomes `-`, a trailing `_` is removed."""
    made = Element(tag, {name.rstrip("_").replace("_", "-"): _attribute(v) for name, v in attributes.items()})
    made.extend(children)
    if text:
        made.text = clean(text)
    return made


def _attribute(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else clean(str(value))


def clean(text: str) -> str:
    """Return a text that shows control and format characters, with `�` for what XML cannot represent."""
    return _FORBIDDEN.sub("�", visible(text))


def detailed(class_: str, id_: str, message: str, find: str, *parts: Element) -> Element:
    """Return a group with details: a tooltip, or with an `id_` a part of a page, which shows them."""
    if not id_:
        return element("g", element("title", text=message), *parts, class_=class_)
    return element(
        "g",
        *parts,
        id=id_,
        class_=class_,
        tabindex="0",
        role="img",
        aria_label=message,
        data_detail=message,
        data_find=find.lower(),
    )


def text(class_: str, x: float, y: float, content: str, **attributes: object) -> Element:
    """Return a line of text; `x` and `y`: where its baseline begins."""
    return element("text", class_=class_, x=x, y=y, text=content, **attributes)


def legend(marks: Iterable[tuple[str, Element, float]], y: float, gap: float) -> tuple[Element, float]:
    """Return marks in a row, and where the row ends. A mark: its text, an element around y = 0, its width."""
    x, parts = MARGIN, []
    for caption, mark, width in marks:
        beside = text("says", x + width + 8, y + 4, caption)
        parts += [element("g", mark, transform=f"translate({x:.1f} {y:.1f})"), beside]
        x += width + 8 + width_of(caption, TEXT_SIZE) + gap
    return element("g", *parts, class_="legend"), x


def to_text(root: Element) -> str:
    return ET.tostring(root, encoding="unicode")


def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a line in pixels, as an upper estimate; `size`: of the font."""
    return sum(map(_ems, text)) * size * (1.12 if bold else 1.0)


def _ems(letter: str) -> float:
    if letter in NARROW:
        return 0.4
    if letter in WIDE or ord(letter) > 0x2E7F:
        return 1.02
    return 0.7 if letter.isupper() else 0.61


def cut(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """Return the line, shortened with `…` if it does not fit."""
    line = " ".join(text.split())
    if width_of(line, size, bold=bold) <= width:
        return line
    while line and width_of(line + "…", size, bold=bold) > width:
        line = line[:-1]
    return line + "…"


# -- colours and style

PALETTE: Final[Mapping[str, tuple[str, str]]] = {
    "page": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#e6edf3"),
    "muted": ("#57606a", "#9da7b3"),
    "line": ("#8c959f", "#6e7681"),
    "faint": ("#d0d7de", "#30363d"),
    "path": ("#0550ae", "#79c0ff"),
    "plain": ("#f6f8fa", "#161b22"),
    "good": ("#dafbe1", "#12261e"),
    "good-line": ("#1a7f37", "#3fb950"),
    "bad": ("#ffebe9", "#2d1a1e"),
    "bad-line": ("#cf222e", "#f85149"),
    "drain": ("#fff8c5", "#2b2413"),
    "drain-line": ("#9a6700", "#d29922"),
    "next": ("#ddf4ff", "#12233a"),
    "next-line": ("#0969da", "#58a6ff"),
    "late": ("#fbefff", "#211a33"),
    "late-line": ("#8250df", "#a371f7"),
}
"""Each colour in light and dark. Text colours (ink, muted, path) have a contrast of at least 4.5 to 1."""
_NAMED: Final = re.compile(r"\$([a-z-]+)")


def color_css(rules: Iterable[str]) -> str:
    """Return CSS for rules that name colours as `$ink`: light values, and dark ones by media query."""
    rules = tuple(rules)
    dark = "".join(_with_palette(1, rule) for rule in map(_color_rules, rules) if rule)
    return "".join(_with_palette(0, rule) for rule in rules) + f"@media (prefers-color-scheme:dark){{{dark}}}"


TEXT_RULES: Final = (
    f"svg text{{font-family:{FONT};fill:$ink}}",
    ".page{fill:$page}",
    f".name{{font-size:{NAME_SIZE}px;font-weight:600}}",
    f".says{{font-size:{TEXT_SIZE}px}}",
    f"svg .small{{font-size:{SMALL_SIZE}px;fill:$muted}}",
)


def _with_palette(which: int, rule: str) -> str:
    return _NAMED.sub(lambda found: PALETTE[found[1]][which], rule)


def _color_rules(rule: str) -> str:
    """Return the rule with only its colours."""
    head, _, body = rule.rstrip("}").partition("{")
    kept = ";".join(part for part in body.split(";") if "$" in part)
    return f"{head}{{{kept}}}" if kept else ""


def picture(width: float, height: float, title: str, message: str, style: str, *parts: Element) -> Element:
    """Return the whole picture. `style` "": the page around it has the style."""
    head = [
        element("title", id="picture-title", text=title),
        element("desc", id="picture-description", text=message),
        *([element("style", text=style)] if style else []),
        element("rect", class_="page", width="100%", height="100%"),
    ]
    return element(
        "svg",
        *head,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width:.0f} {height:.0f}",
        width=f"{width:.0f}",
        height=f"{height:.0f}",
        role="img" if style else "group",
        aria_labelledby="picture-title picture-description",
    )
