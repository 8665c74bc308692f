"""code-assist."""

from .hook_file import CODE_ASSIST

__all__ = ["CODE_ASSIST"]
