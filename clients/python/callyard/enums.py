"""Enumerations of the generated models."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class OpenEnum(StrEnum):
    """An enumeration that also accepts the values of a newer front door.

    Such a value equals its text, and belongs to no member of the class.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        member = str.__new__(cls, value)
        member._name_ = member._value_ = value
        return member
