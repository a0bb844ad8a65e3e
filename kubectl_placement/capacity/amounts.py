"""
Amounts of resources for people, and for programs.

Pure. Amounts are in thousandths.
"""

from typing import Final

BYTES: Final = ("memory", "ephemeral-storage")
"""Resources in bytes; so are those that begin with `hugepages-`."""
UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def number_of(thousandths: int | None) -> int | float | None:
    """Return an amount as a number of GPUs, cores, bytes, …; whole numbers are integers."""
    if thousandths is None:
        return None
    whole, rest = divmod(thousandths, 1000)
    return thousandths / 1000 if rest else whole


def amount_text(thousandths: int | None, resource: str) -> str:
    """Return an amount as people read it: 8, 1.5, 2Ti; rounded to a tenth where it is of bytes."""
    if thousandths is None:
        return "-"
    if resource not in BYTES and not resource.startswith("hugepages-"):
        return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")
    amount, unit = thousandths / 1000, 0
    while abs(amount) >= 1024 and unit + 1 < len(UNITS):
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.1f}".removesuffix(".0") + UNITS[unit]
