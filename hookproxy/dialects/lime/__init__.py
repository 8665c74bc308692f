"""Lime."""
