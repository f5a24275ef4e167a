"""A hook of MkDocs: links from a page to files outside docs/ become the files' paths.

The site is for reading anywhere, and has no copy of the source. A path that does not exist fails the build.
"""

import os
import posixpath
import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)\s#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return a page's text with its links out of the documentation replaced by paths."""
    root = os.path.dirname(config.docs_dir)

    def name_path(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), link[2]))
        if not os.path.exists(os.path.join(root, path)):
            raise FileNotFoundError(f"{page.file.src_uri} links to {path}, which does not exist")
        words = link[1].strip("`")
        return f"`{path}`" if words in (path, posixpath.basename(path)) else f"{words} (`{path}`)"

    return _OUTSIDE.sub(name_path, markdown)
