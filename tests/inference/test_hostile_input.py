"""Models from strangers and text of any kind: refused in one line or answered, line for line."""

import io
import json
import os
import pickle
import re
import resource
import struct
import sys

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from transformer.data.tokenizer import Tokenizer
from transformer.inference import stream
from transformer.inference.stream import decoded_lines, limited_lines, translate_lines
from transformer.inference.translator import Translator
from transformer.interop import marian
from transformer.interop.marian_files import read_weights
from transformer.model.transformer import Transformer
from transformer.training.checkpoint import load_pretrained, load_weights, save_pretrained

FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
# All at which str.splitlines or somebody's text mode ends a line.
LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["Where is the train station?", "Grüße aus Köln 🙂"] * 3, 270)


@pytest.fixture(scope="module")
def translator(small_transformer, tokenizer):
    """Random weights, which produce any bytes, line ends among them."""
    return Translator(small_transformer(tokenizer.vocab_size, max_length=80), tokenizer)


@pytest.fixture
def folder(translator, tokenizer, tmp_path):
    folder = save_pretrained(translator.model, tokenizer, tmp_path / "model")
    (folder / "checksums.json").unlink()  # of what others wrote
    return folder


@pytest.fixture
def unchecked(monkeypatch):
    """As outside the tests, where no annotation is checked."""
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)


def refused(folder):
    """One of our errors, in one line, by each way in."""
    for load in (Translator.from_pretrained, load_pretrained, Transformer.from_pretrained):
        with pytest.raises(ValueError) as caught:
            load(folder)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 800
    return str(caught.value)


# ---------------------------------------------------------------------- configurations


STRANGE = [None, True, -1, 0, 3, 10**6, 10**12, 10**30, 0.5, float("nan"), "", "big", [1], {}]


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def test_anything_in_any_field_of_a_configuration(folder, unchecked):
    """Loaded, and then it translates; or refused; and never by asking for the memory."""
    file = folder / "config.json"
    whole, before, loaded = json.loads(file.read_text()), memory(), 0
    fields = whole.get("config", whole)
    for name in list(fields):
        for value in STRANGE:
            kept = fields[name]
            fields[name] = value
            file.write_text(json.dumps(whole))
            fields[name] = kept
            try:
                other = Translator.from_pretrained(folder)
            except ValueError as error:
                assert "\n" not in str(error)
                continue
            loaded += 1
            if loaded % 3 == 0:
                try:
                    other.translate(["Where?"], max_length=2)
                except ValueError as error:
                    assert "not finite" in str(error)
    assert loaded > 10
    assert memory() - before < 1 << 29


@pytest.mark.parametrize(
    "field, value",
    [
        ("vocab_size", 10**12),
        ("vocab_size", 10**6),
        ("d_model", 10**5),
        ("d_ff", 10**9),
        ("num_layers", 10**9),
        ("num_decoder_layers", 10**9),
        ("max_length", 10**12),
        ("max_length", 10**30),
        ("d_model", "16"),
        ("attention_scale", "x"),
        ("layer_norm_eps", "small"),
        ("final_norm", "yes"),
        ("pad_id", 0.0),
    ],
)
def test_a_model_larger_than_its_weights_is_refused_at_once(folder, field, value, unchecked):
    file = folder / "config.json"
    whole = json.loads(file.read_text())
    whole.get("config", whole)[field] = value
    file.write_text(json.dumps(whole))
    # Before the memory is asked for, so not with torch's words.
    reasons = "place for|numbers are needed|bytes for positions|must be of type|must be divisible"
    assert re.search(f"{reasons}|not supported between|too big to", refused(folder))


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"null", b"{", b"{}", b"7", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 9999],
)
def test_a_configuration_that_is_none(folder, text, unchecked):
    (folder / "config.json").write_bytes(text)
    refused(folder)


@pytest.mark.parametrize(
    "field, value",
    [
        ("vocab_size", 10**12),
        ("d_model", 2**20),
        ("encoder_layers", 10**9),
        ("max_position_embeddings", 10**12),
    ],
)
def test_a_marian_model_larger_than_its_weights_is_refused_at_once(field, value):
    small = dict(vocab_size=60, d_model=16, decoder_start_token_id=1, pad_token_id=1)
    for stack in ("encoder", "decoder"):
        small |= {f"{stack}_layers": 1, f"{stack}_attention_heads": 2, f"{stack}_ffn_dim": 16}
    sizes = [60 * 16, *[16 * 16] * 20]
    marian._require_fitting(marian._configuration(marian.DEFAULTS | small), sizes)
    with pytest.raises(ValueError, match="numbers, the weights|layers need|max_position"):
        wrong = marian._configuration(marian.DEFAULTS | small | {field: value})
        marian._require_fitting(wrong, sizes)


# ---------------------------------------------------------------------- weights


@pytest.mark.parametrize("part", ["header", "numbers"])
def test_one_flipped_bit_in_a_saved_model_is_noticed(folder, part):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    header = 8 + struct.unpack("<Q", data[:8])[0]
    data[header // 2 if part == "header" else header + 1001] ^= 16
    path.write_bytes(data)
    refused(folder)


@FEW
@given(data=st.data())
def test_any_header_of_weights(data, tmp_path, translator):
    """Safetensors begin with the size of a JSON header: both can claim anything."""
    path = tmp_path / "model.safetensors"
    entry = st.fixed_dictionaries(
        {
            "dtype": st.sampled_from(
                ["F32", "F16", "BF16", "I64", "BOOL", "U8", "F64", "X9", "", "C64"]
            ),
            "shape": st.lists(st.sampled_from([0, 1, 2, 4, 2**31, 2**62, -1, 10**30]), max_size=3),
            "data_offsets": st.lists(st.sampled_from([0, 4, 8, 16, 2**63, -4]), max_size=3),
        }
    )
    meta = st.just({"crc32": "00000000"}) | st.just({"crc32": 7}) | st.just([])
    header = data.draw(st.dictionaries(st.sampled_from(["a", "b", ""]), entry, max_size=2))
    if data.draw(st.booleans()):
        header["__metadata__"] = data.draw(meta)
    text = json.dumps(header).encode()
    claimed = data.draw(st.sampled_from([len(text)] * 4 + [0, 1, 2**40, 2**64 - 1]))
    path.write_bytes(
        struct.pack("<Q", claimed) + text + bytes(data.draw(st.sampled_from([0, 4, 16])))
    )
    for read in (load_weights, lambda p: read_weights(p.parent)):
        try:
            read(path)
        except ValueError as error:
            assert "\n" not in str(error)


def test_an_empty_file_of_weights(folder):
    (folder / "model.safetensors").write_bytes(b"")
    refused(folder)


class Malicious:
    def __init__(self, victim):
        self.victim = str(victim)

    def __reduce__(self):
        return os.mkdir, (self.victim,)


def test_a_pickle_in_place_of_any_file_runs_nothing(folder, tmp_path):
    victim = tmp_path / "victim"
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        path = folder / name
        whole = path.read_bytes()
        path.write_bytes(pickle.dumps(Malicious(victim)))
        with pytest.raises(ValueError):
            Translator.from_pretrained(folder)
        path.write_bytes(whole)
    # A repository with a pickle only, as it would come from the Hub or a Marian model.
    (folder / "model.safetensors").unlink()
    torch.save({"a": Malicious(victim)}, folder / "pytorch_model.bin")
    with pytest.raises((ValueError, FileNotFoundError)):
        Transformer.from_pretrained(folder)
    with pytest.raises(ValueError, match="pytorch_model.bin"):
        read_weights(folder)
    assert not victim.exists()


def test_weights_that_are_no_numbers_are_told_at_the_first_sentence(folder):
    path = folder / "model.safetensors"
    weights = {name: torch.full_like(w, float("nan")) for name, w in load_file(path).items()}
    save_file(weights, path)
    with pytest.raises(ValueError, match="not finite"):
        Translator.from_pretrained(folder)("Where?")


# ---------------------------------------------------------------------- text


def answers(translator, data, at_once=4):
    lines = decoded_lines(limited_lines(io.BytesIO(data)))
    return list(translate_lines(translator, lines, at_once, beam_size=1, max_length=5))


def assert_one_line(text):
    assert not any(end in text for end in LINE_ENDS), repr(text)


ODD = [
    "", " ", "\t\xa0\u3000", "\x00\x01\x02", "\x1b[31mred", "e\u0301" * 9, "👩‍👩‍👧🏽", "🙂" * 15,
    "שלום \u202eעולם", "\u200b", "\ufeff", "\ufffd", "日本語", "a\u2028b", *LINE_ENDS[1:], "<eos>",
]  # fmt: skip


def test_odd_texts_are_answered_in_order(translator):
    lines = [f"{line}".replace("\n", " ") for line in ODD * 2]
    found = answers(translator, "".join(f"{line}\n" for line in lines).encode())
    assert len(found) == len(lines)
    assert found[: len(ODD)] == found[len(ODD) :]
    for line, answer in zip(lines, found, strict=True):
        assert_one_line(answer)
        # No text but blanks: nothing to say. Every line is answered as if it stood alone.
        (alone,) = translator.translate([line], beam_size=1, max_length=5)
        assert answer == " ".join(alone.splitlines())
        if not line.strip():
            assert answer == ""


@settings(FEW, max_examples=25)
@given(
    lines=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=8), max_size=5
    )
)
@example(lines=["\r", "\x1c", "a\u2028", "\x85\x85"])
def test_as_many_lines_come_out_as_go_in(translator, lines):
    data = "".join(f"{line}\n" for line in lines).encode()
    found = answers(translator, data)
    assert len(found) == len(lines)
    text = "".join(f"{line}\n" for line in found)
    # Whoever reads them, in whatever mode.
    assert len(text.splitlines()) == len(lines)
    assert len(io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8").readlines()) == len(
        lines
    )


def test_line_ends_that_the_model_produces_become_blanks(translator, monkeypatch):
    output = "a" + "b".join(LINE_ENDS) + "c"
    monkeypatch.setattr(Translator, "translate", lambda self, texts, **_: [output] * len(texts))
    for answer in answers(translator, b"one\ntwo\n"):
        assert answer == "a " + "b " * (len(LINE_ENDS) - 1) + "c"


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "ab " * 33_000, "\u0301" * 100_000, "🙂" * 100_000]
)
def test_100_000_characters_are_refused_with_their_line(translator, text):
    data = f"Where?\n{text}\nnever\n".encode()
    found = []
    with pytest.raises(
        ValueError, match=r"line 2 has [\d]+ tokens, more than the 80 that"
    ) as caught:
        for answer in translate_lines(translator, decoded_lines(io.BytesIO(data)), 4, beam_size=1):
            found.append(answer)
    assert len(found) == 1 and len(str(caught.value)) < 300


def test_100_000_blanks_are_an_empty_line(translator):
    assert answers(translator, (" " * 100_000 + "\nNo.\n").encode())[0] == ""


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

    lines = limited_lines(io.BufferedReader(Endless()))
    with pytest.raises(ValueError, match="standard input, line 1: more than 1,000 bytes"):
        next(lines)
    ok = list(limited_lines(io.BytesIO(b"x" * 999 + b"\n" + b"y" * 1000)))
    assert list(map(len, ok)) == [1000, 1000]


def test_20_000_lines_in_order_and_no_more_of_them_in_memory_than_a_portion(
    translator, monkeypatch
):
    waiting, most = [0], [0]

    def lines():
        for i in range(20_000):
            waiting[0] += 1
            yield f"line {i}\r\n".encode() if i % 3 else b"\n"

    def translate(self, texts, **options):
        most[0] = max(most[0], waiting[0])
        waiting[0] = 0
        return [text.upper() for text in texts]

    monkeypatch.setattr(Translator, "translate", translate)
    found = translate_lines(translator, decoded_lines(lines()), 64)
    for i, answer in enumerate(found):
        assert answer == (f"LINE {i}" if i % 3 else "")
    assert i == 19_999 and most[0] <= 64
