"""Escape names in paths."""

from __future__ import annotations

from urllib.parse import quote


def segment(name: object) -> str:
    """Return a name as one segment of a path.

    `quote` leaves "." and ".." unchanged, and they would be resolved as relative paths, to
    another operation.
    """
    escaped = quote(str(name), safe="")
    return escaped.replace(".", "%2E") if escaped in (".", "..") else escaped
