"""The browser of tests, and how legible a text in it is."""

import os
import shutil
from pathlib import Path

import pytest

READABLE = 4.5
"""WCAG 2.1, 1.4.3: the minimum contrast of text."""
PLACES = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
COLOURS = """
() => {
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const found = getComputedStyle(at).backgroundColor;
      if (found !== 'rgba(0, 0, 0, 0)') return found;
    }
    return 'rgb(255, 255, 255)';
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || ['SCRIPT', 'STYLE'].includes(element.tagName)) continue;
    if (element.checkVisibility()) {
      const { color, fill } = getComputedStyle(element);
      found.push([walk.currentNode.data, element instanceof SVGElement ? fill : color, ground(element)]);
    }
  }
  return found;
}
"""
"""Each visible text with its colour, and the colour behind it."""
STICKING_OUT = """
() => [...document.querySelectorAll('body *')]
  .filter(one => one.checkVisibility() && !one.closest('.skip, thead, svg, .scroll > *'))
  .filter(one => Math.max(one.getBoundingClientRect().right - innerWidth, -one.getBoundingClientRect().x) > 1)
  .map(one => one.tagName + '#' + one.id + '.' + one.className)
"""
"""Visible elements that are wider than the window, save what scrolls by itself."""
OPTIONS = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]


def browser_path() -> str:
    """Return the path of Chromium; without it the test fails in CI and is skipped elsewhere."""
    found = next((place for place in PLACES if Path(place).exists()), shutil.which("chromium"))
    if found:
        return found
    reason = "there is no Chromium on this machine: apt-get install chromium"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def luminance(colour: str) -> float:
    """WCAG 2.1: relative luminance of `rgb(r, g, b)`."""
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(",")]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)
