"""For MkDocs: links to files of the repository outside of docs/ lead to the repository, as they do there."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
_OUTSIDE = re.compile(r"\]\((\.\./[^)#\s]+)")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: object) -> str:
    """The page's text. Raises PluginError for a file that does not exist."""
    folder = posixpath.dirname(f"docs/{page.file.src_uri}")

    def address(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        if path.startswith("docs/"):
            return link[0]
        if not (ROOT / path).exists():
            raise PluginError(f"{page.file.src_uri}: there is no file {path}")
        return f"]({config.extra['repository']}/blob/main/{path}"

    return _OUTSIDE.sub(address, markdown)
