"""A hook of MkDocs: links that suit a repository become links that suit a site.

Links from a page to files outside docs/ become the files' paths: the site has no copy of the source, and a path that
does not exist fails the build. A link that is labelled with the name of a page's file gets the page's title.
"""

import os
import posixpath
import re
from pathlib import Path
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)\s#]+)(?:#[^)]*)?\)")
_BY_FILE_NAME = re.compile(r"\[([\w-]+\.md)\]\((\1(?:#[^)\s]*)?)\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Return a page's text with its links out of the documentation, and its links named after files, rewritten."""
    root = os.path.dirname(config.docs_dir)

    def name_path(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page.file.src_uri), link[2]))
        if not os.path.exists(os.path.join(root, path)):
            raise FileNotFoundError(f"{page.file.src_uri} links to {path}, which does not exist")
        words = link[1].strip("`")
        return f"`{path}`" if words in (path, posixpath.basename(path)) else f"{words} (`{path}`)"

    def name_title(link: re.Match[str]) -> str:
        path = Path(config.docs_dir, link[1])
        title = path.read_text().partition("\n")[0].lstrip("# ") if path.exists() else link[1]
        return f"[{title}]({link[2]})"

    return _BY_FILE_NAME.sub(name_title, _OUTSIDE.sub(name_path, markdown))
