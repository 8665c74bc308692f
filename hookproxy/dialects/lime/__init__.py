"""Lime."""

from .hook_file import LIME

__all__ = ["LIME"]
