"""What every interactive figure must be: a small piece of markup that needs nothing else."""

import base64
import json
import re
from collections.abc import Callable
from typing import Any

from transformer_book.widgets.base import Widget


def self_contained(make: Callable[[], Widget], most: int) -> dict[str, Any]:
    """Check that a figure is small, the same every time, and loads nothing; return its data.

    Args:
        make: makes the figure.
        most: bytes that its markup must stay below.
    """
    shown = make()._repr_mimebundle_()
    html = shown["text/html"]
    assert make()._repr_mimebundle_() == shown and len(html.encode()) < most
    offline = re.sub(r"base64,[^\"]+|http://www.w3.org/2000/svg", "", html)
    assert not re.search(r"https?:|@import|import\(|url\(|fetch|//\w", offline)
    assert html.count("</script>") == 2  # those of the data and of the script, and no label's
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert re.search(r'<img alt="[^"<>]{60,}" src="data:image/png', html)
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html)[1])
    assert data["title"]
    return data
