"""Listings without docstrings, in lines that fit."""

import ast
import inspect

import pytest
from listings import fitted, hanging, without_docstrings

from transformer.model.attention import MultiHeadAttention
from transformer.model.transformer import Transformer


@pytest.mark.parametrize("shown", [MultiHeadAttention, Transformer])
def test_the_package_fits_without_docstrings_and_is_the_same_code(shown):
    source = inspect.getsource(shown)
    bare = without_docstrings(source)
    short = fitted(bare)
    assert max(map(len, short.splitlines())) <= 76 < max(map(len, source.splitlines()))
    assert ast.dump(ast.parse(short)) == ast.dump(ast.parse(bare))
    scopes = [node for node in ast.walk(ast.parse(bare)) if isinstance(node, ast.FunctionDef)]
    assert scopes and all(ast.get_docstring(scope) is None for scope in scopes)


def test_a_function_with_nothing_but_a_docstring_keeps_a_body():
    assert without_docstrings('def f():\n    """What."""\n') == "def f():\n    ..."


def test_a_long_comment_is_wrapped_and_one_behind_code_moves_above_it():
    code = "x = 1\n" + "y = function_of(x)  # " + "word " * 20 + "\n# " + "long " * 20
    short = fitted(code.strip())
    assert max(map(len, short.splitlines())) <= 76
    assert short.index("word") < short.index("y = ") < short.index("long")
    assert short.count("word") == 20 == short.count("long")


def test_long_lines_wrap_with_a_hanging_indent_and_keep_their_text():
    line = "        return " + "x" * 40
    page = hanging(f"<pre>short\n{line}\n\nend\n</pre>")
    assert f'<span class="line" style="--i:8">{line}\n</span>' in page
    assert page.replace('<span class="line" style="--i:8">', "").replace("</span>", "") == (
        f"<pre>short\n{line}\n\nend\n</pre>"
    )
