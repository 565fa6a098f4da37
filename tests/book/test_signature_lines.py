"""Arguments of a signature stand in a list that is one."""

import importlib.util
from pathlib import Path

PATH = Path(__file__).parents[2] / "book" / "_ext" / "signature_lines.py"
SPEC = importlib.util.spec_from_file_location("signature_lines", PATH)
signature_lines = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(signature_lines)

FIELDS = '<dl class="field-list"><dt>Raises:</dt><dd>ValueError</dd></dl>'


def test_only_the_list_of_arguments_changes():
    page = (
        '<dt class="sig"><span class="sig-paren">(</span>\n\n<dl>\n<dd><em>x</em>,</dd>\n'
        f'<dd><em>mask</em>,</dd>\n</dl>\n\n<span class="sig-paren">)</span></dt>{FIELDS}<dl></dl>'
    )
    mended = signature_lines.mend(page)
    assert mended.count('<li class="sig-line">') == mended.count("</li>") == 2
    assert '<ul class="sig-lines">' in mended and mended.endswith(f"{FIELDS}<dl></dl>")
    assert signature_lines.mend(mended) == mended
