"""Pages whose prose is written by hand and whose figures come from records.

What ``<!-- KIND NAME -->`` opens and ``<!-- end -->`` closes is written anew by a program, and a
test holds page and record together.
"""

import re
from collections.abc import Mapping


def _pattern(kind: str) -> re.Pattern[str]:
    return re.compile(rf"<!-- {kind} ([\w-]+) -->.*?<!-- end -->", re.DOTALL)


def fill_in(page: str, kind: str, texts: Mapping[str, str]) -> str:
    """Write what is known into the page, whatever stood there.

    Args:
        page: in Markdown, with its markers.
        kind: of the markers, such as "choice".
        texts: by the names that the markers use.

    Returns:
        The page; filling it in again changes nothing.

    Raises:
        ValueError: if a marker has a name without a text.
    """

    def filled(match: re.Match[str]) -> str:
        name = match.group(1)
        if name not in texts:
            raise ValueError(f"no {kind} {name!r}; there are {', '.join(texts)}")
        return f"<!-- {kind} {name} -->{texts[name]}<!-- end -->"

    return _pattern(kind).sub(filled, page)


def marked(page: str, kind: str) -> list[str]:
    """List the names that a page asks for, in its order.

    Args:
        page: in Markdown.
        kind: of the markers.
    """
    return _pattern(kind).findall(page)
