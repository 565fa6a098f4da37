"""Files that were damaged or made to do harm: refused with a message, in bounded memory."""

import copy
import gzip
import io
import json
import tarfile
import tracemalloc
import warnings

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from transformer.data import packed
from transformer.data.corpora import treebank
from transformer.data.corpora.tatoeba import read_pairs
from transformer.data.corpora.treebank import load_treebank, plain, read_trees
from transformer.data.lines import read_lines
from transformer.data.packed import unpack_gzip
from transformer.data.parallel import load_parallel_files
from transformer.data.tokenizer import Tokenizer

FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TEXT = " Wo <pad> ist é 👋\n\x00\u2028"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["a few words to learn pieces from", "der Bahnhof ist"] * 4, 290)


@pytest.fixture(scope="module")
def content(tokenizer, tmp_path_factory):
    path = tmp_path_factory.mktemp("t") / "tokenizer.json"
    tokenizer.save(path)
    return json.loads(path.read_text(encoding="utf-8"))


def whole_or_refused(path, tokenizer):
    """Either an error of ours, or a tokenizer that cuts text as the undamaged one."""
    try:
        loaded = Tokenizer.load(path)
    except ValueError as error:
        assert str(path) in str(error) and "\n" not in str(error) and len(str(error)) < 600
        return False
    ids = loaded.encode(TEXT)
    assert loaded.decode(ids) == TEXT
    assert all(3 <= i < loaded.vocab_size for i in ids)
    assert len(loaded.tokens(ids)) == len(ids)
    return True


def places(value, path=()):
    """Every place in a JSON value; of long lists and tables the first three entries."""
    yield path
    if isinstance(value, dict | list):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in list(entries)[: 3 if len(value) > 20 else None]:
            yield from places(inner, (*path, key))


def put(content, place, value):
    if not place:
        return value
    changed = copy.deepcopy(content)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


@FEW
@given(data=st.data())
def test_a_tokenizer_with_anything_in_any_place(data, content, tokenizer, tmp_path):
    place = data.draw(st.sampled_from(list(places(content))))
    value = data.draw(
        JSON | st.sampled_from(["ByteLevel", "BPE", "x", 10**30, 0.5, {"type": "BPE"}])
    )
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(put(content, place, value)), encoding="utf-8")
    whole_or_refused(path, tokenizer)


@pytest.mark.parametrize(
    "place, value",
    [
        # Of these the library panics, ...
        (("model", "continuing_subword_prefix"), "ByteLevel"),
        (("model", "continuing_subword_prefix"), "a b"),
        # ... of these it drops or changes text in silence, or cuts it by chance.
        (("model", "end_of_word_suffix"), "x"),
        (("model", "dropout"), 0.5),
        (("pre_tokenizer",), None),
        (("pre_tokenizer", "add_prefix_space"), True),
        (("normalizer",), {"type": "Lowercase"}),
        (("truncation",), dict(max_length=3, strategy="LongestFirst", stride=0, direction="Right")),
        (("padding",), {"strategy": {"Fixed": 9}}),
        (
            ("post_processor",),
            {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True},
        ),
        (("model", "vocab", "a"), 10**6),
        (("model", "vocab", "日"), 290),
        (("model", "vocab"), {}),
        (("added_tokens",), []),
    ],
)
def test_a_tokenizer_with_another_option(place, value, content, tokenizer, tmp_path, capfd):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(put(content, place, value)), encoding="utf-8")
    assert not whole_or_refused(path, tokenizer)
    assert capfd.readouterr().err == ""  # no panic's backtrace


def test_a_tokenizer_file_nested_without_end(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text("[" * 200_000)
    assert not whole_or_refused(path, tokenizer)


def test_files_of_older_libraries_that_name_fewer_options_load(content, tokenizer, tmp_path):
    older = copy.deepcopy(content)
    del older["model"]["ignore_merges"], older["model"]["byte_fallback"]
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(older), encoding="utf-8")
    assert whole_or_refused(path, tokenizer)


# ---------------------------------------------------------------------- text


@FEW
@given(data=st.binary(max_size=60), end=st.sampled_from(["", ".gz"]), packed_well=st.booleans())
def test_any_bytes_are_lines_or_an_error(data, end, packed_well, tmp_path):
    path = tmp_path / f"text{end}"
    path.write_bytes(gzip.compress(data) if end and packed_well else data)
    for read in (read_lines, read_pairs, lambda p: load_parallel_files(p, p)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = read(path)
        except ValueError as error:
            assert str(path) in str(error) and "\n" not in str(error)
        else:
            if read is read_lines:
                assert len(found) == data.removesuffix(b"\n").count(b"\n") + 1


@FEW
@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\r"))),
    block=st.integers(1, 40),
    ends=st.sampled_from(["\n", "\r\n"]),
)
def test_any_lines_come_back_one_for_one(lines, block, ends, tmp_path):
    path = tmp_path / "text"
    path.write_bytes("".join(f"{line}{ends}" for line in ["first", *lines]).encode("utf-8-sig"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("transformer.data.lines._BLOCK", block)
        assert read_lines(path) == ["first", *lines]


def test_a_file_that_unpacks_without_end_is_refused_before_memory_is_full(tmp_path, monkeypatch):
    bomb = gzip.compress(bytes(30_000_000))
    assert len(bomb) < 50_000
    path = tmp_path / "text.gz"
    path.write_bytes(bomb)
    assert len(unpack_gzip(bomb, "it")) == 30_000_000  # as much may come of any file
    monkeypatch.setattr(packed, "ALWAYS_ALLOWED", 1 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=r"text\.gz has .* unpacks to more than .* yourself"):
            read_lines(path)
        assert tracemalloc.get_traced_memory()[1] < 15_000_000
    finally:
        tracemalloc.stop()


def test_text_that_packs_well_is_no_bomb(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "ALWAYS_ALLOWED", 0)
    path = tmp_path / "text.gz"
    lines = [f"the {i} cats see the {i * 7} dogs." for i in range(5000)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert read_lines(path) == lines


# ---------------------------------------------------------------------- trees


def archive_of(members, mode="w:gz"):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content) if content is not None else None)
    return data.getvalue()


def member(name, content=b"", **fields):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def test_no_name_in_an_archive_leads_out_of_it(tmp_path):
    secret = tmp_path / "secret.tree"
    secret.write_text("(S (X secret))")
    tree = b"(S (N mine))"
    path = tmp_path / "inner" / "trees.tar.gz"
    path.parent.mkdir()
    links = [
        member(name, type=kind, linkname=str(secret))
        for name, kind in (("a.tree", tarfile.SYMTYPE), ("b.tree", tarfile.LNKTYPE))
    ]
    members = [member("../up.tree", tree), member("/tmp/abs.tree", tree), *links]
    members.append(member("d.tree", type=tarfile.FIFOTYPE))
    path.write_bytes(archive_of(members))
    before = sorted(tmp_path.rglob("*"))
    bank = load_treebank(path)
    assert sorted(bank.articles) == ["abs", "up"]
    assert "secret" not in str(bank.trees())
    assert sorted(tmp_path.rglob("*")) == before


def test_an_archive_that_claims_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(packed, "ALWAYS_ALLOWED", 1 << 20)
    path = tmp_path / "trees.tar.gz"
    path.write_bytes(archive_of([member("a.tree", bytes(20_000_000))]))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="unpacks to 20,000,000 bytes, more than"):
            load_treebank(path)
        assert tracemalloc.get_traced_memory()[1] < 15_000_000
    finally:
        tracemalloc.stop()


@FEW
@given(data=st.data())
def test_a_damaged_archive_is_an_error(data, tmp_path):
    mode = data.draw(st.sampled_from(["w", "w:gz", "w:xz", "w:bz2"]))
    whole = bytearray(archive_of([member("a.tree", b"(S (N mine))")], mode))
    for at in data.draw(st.lists(st.integers(0, min(len(whole), 700) - 1), min_size=1, max_size=3)):
        whole[at] ^= 1 << data.draw(st.integers(0, 7))
    path = tmp_path / "trees.tar"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        load_treebank(path)
    except (ValueError, FileNotFoundError) as error:
        assert "\n" not in str(error)


@FEW
@given(st.text(st.sampled_from("()ab -=1\n"), max_size=40))
def test_any_brackets_are_trees_or_an_error(text):
    try:
        for tree in read_trees(text):
            plain(tree)
    except ValueError as error:
        assert str(error).startswith("text: ")


def test_brackets_of_any_depth_exhaust_nothing():
    deep = treebank.MOST_DEPTH
    for depth in (deep, deep + 1, 100_000):
        text = "(S " * depth + "(N it)" + ")" * depth
        if depth == deep:
            (tree,) = map(plain, read_trees(text))
            assert len(tree.phrases()) == depth and str(tree).count("(S") == depth
        else:
            with pytest.raises(ValueError, match=f"more than {deep} deep"):
                list(read_trees(text))
