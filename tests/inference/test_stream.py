"""Text of any kind through a pipe: exactly one line comes out per line that goes in."""

import io

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from transformer.data.lines import iterate_lines
from transformer.data.tokenizer import Tokenizer
from transformer.inference import stream
from transformer.inference.stream import read_lines, translate_lines
from transformer.inference.translator import Translator

# All characters at which str.splitlines or a file in text mode ends a line.
LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.fixture(scope="module")
def translator(unchecked, small_transformer):
    """Random weights, which produce any bytes, line ends among them."""
    tokenizer = Tokenizer.train(["Where is the train station?", "Grüße aus Köln 🙂"] * 3, 270)
    model = small_transformer(tokenizer.vocab_size, positions="learned", max_length=80)
    return Translator(model, tokenizer)


def answers(translator, data, at_once=4):
    lines = read_lines(io.BytesIO(data))
    return list(translate_lines(translator, lines, at_once, beam_size=1, max_length=5))


ODD = [
    "", " ", "\t\xa0\u3000", "\x00\x01\x02", "\x1b[31mred", "e\u0301" * 9, "👩‍👩‍👧🏽", "🙂" * 15,
    "שלום \u202eעולם", "\u200b", "\ufeff", "\ufffd", "日本語", "a\u2028b", *LINE_ENDS[1:], "<eos>",
]  # fmt: skip


def test_odd_texts_are_answered_in_order_and_as_if_alone(translator):
    found = answers(translator, "".join(f"{line}\n" for line in ODD * 2).encode())
    assert found[: len(ODD)] == found[len(ODD) :] and len(found) == 2 * len(ODD)
    for line, answer in zip(ODD, found, strict=False):
        (alone,) = translator.translate([line], beam_size=1, max_length=5)
        assert answer == " ".join(alone.splitlines())
        assert answer == "" or line.strip()


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=8), max_size=5)
)
@example(["\r", "\x1c", "a\u2028", "\x85\x85"])
def test_as_many_lines_come_out_as_go_in(translator, lines):
    found = answers(translator, "".join(f"{line}\n" for line in lines).encode())
    text = "".join(f"{line}\n" for line in found)
    assert len(text.splitlines()) == len(lines)
    assert len(list(io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))) == len(lines)


def test_a_line_without_end_is_refused_before_memory_is_full(monkeypatch):
    monkeypatch.setattr(stream, "LONGEST_LINE", 1000)

    class Endless(io.RawIOBase):
        read_so_far = 0

        def readable(self):
            return True

        def readinto(self, buffer):
            self.read_so_far += len(buffer)
            assert self.read_so_far < 1_000_000
            buffer[:] = b"x" * len(buffer)
            return len(buffer)

    with pytest.raises(ValueError, match="line 1: more than 1,000 bytes"):
        next(read_lines(io.BufferedReader(Endless())))
    ok = list(read_lines(io.BytesIO(b"x" * 999 + b"\n" + b"y" * 1000)))
    assert list(map(len, ok)) == [999, 1000]


@pytest.mark.parametrize(
    "data, lines",
    [
        (b"a\r\r\nb\r", ["a\r", "b"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n\n", ["", ""]),
        (b"\xef\xbb\xbfa", ["a"]),
    ],
)
def test_a_stream_has_the_lines_of_a_file(tmp_path, data, lines):
    (tmp_path / "text").write_bytes(data)
    assert list(read_lines(io.BytesIO(data))) == lines
    assert list(iterate_lines(tmp_path / "text", may_be_empty=True)) == lines
