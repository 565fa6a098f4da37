"""``transformer translate``: arguments, files and streams."""

import gzip
from dataclasses import replace

import pytest
import torch

from tests.cli.conftest import command, fails, run
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer


def test_arguments_and_standard_input_give_what_the_translator_gives(trained):
    texts = ["the cat sees a dog.", "the tree"]
    expected = "".join(f"{line}\n" for line in Translator.from_pretrained(trained[0])(texts))
    assert run("translate", *texts, "--model", trained[0]).stdout == expected
    piped = run("translate", "-m", trained[0], input="\n".join(texts))
    assert piped.stdout == expected and piped.stderr == ""


def test_one_line_comes_out_for_one_that_goes_in(trained):
    lines = "the cat\r\n\n   \nthe\u2028dog\nthe tree"
    shown = run("translate", "-m", trained[0], input=lines).stdout
    assert shown.count("\n") == 5
    assert [bool(line) for line in shown.split("\n")] == [True, False, False, True, True, False]
    alone = run("translate", "-m", trained[0], "the cat").stdout
    assert shown.split("\n")[0] == alone.strip("\n")
    assert run("translate", "-m", trained[0], input="").stdout == ""


@pytest.fixture(scope="module")
def learned(trained, tmp_path_factory):
    """The folder of a model with 60 learned positions, and random weights."""
    translator = Translator.from_pretrained(trained[0])
    config = replace(translator.model.config, positions="learned", max_length=60)
    folder = tmp_path_factory.mktemp("learned")
    return Translator(Transformer(config), translator.tokenizer).save_pretrained(folder)


def test_bad_lines_are_named_and_those_before_them_answered(trained, learned):
    result = fails(
        "translate", "-m", trained[0], input=b"the cat\nthe \xe4\n",
        saying="standard input is not UTF-8: line 2 holds the byte 0xe4",
    )  # fmt: skip
    assert result.stdout.count("\n") == 1
    result = fails(
        "translate", "-m", learned, input="the cat\n" + "cat " * 10_000 + "\n",
        saying=r"line 2 has \d+ tokens, more than the 60 that the model takes",
    )  # fmt: skip
    assert result.stdout.count("\n") == 1


def test_a_file_becomes_a_file_line_by_line(trained, tmp_path):
    texts = ["the cat sees a dog.", "", "the tree"]
    (tmp_path / "my.en").write_text("\n".join(texts))
    (tmp_path / "my.en.gz").write_bytes(gzip.compress("\n".join(texts).encode()))
    expected = "".join(f"{line}\n" for line in Translator.from_pretrained(trained[0])(texts))
    for name in ("my.en", "my.en.gz"):
        result = run(
            "translate", "-m", trained[0], "-i", tmp_path / name, "-o", tmp_path / f"{name}.fr"
        )
        assert result.stdout == "" and (tmp_path / f"{name}.fr").read_text() == expected
    piped = run("translate", "-m", trained[0], "--input", "-", input="\n".join(texts))
    assert piped.stdout == expected
    assert len([*tmp_path.iterdir()]) == 4
    old = "translate", "-m", "nothing", "the cat", "-o", tmp_path / "my.en.fr"
    fails(*old, saying="my.en.fr exists; choose another file")
    assert (tmp_path / "my.en.fr").read_text() == expected


def test_an_error_keeps_the_finished_part_and_blames_no_disk(trained, tmp_path, monkeypatch):
    (tmp_path / "bad.en").write_bytes(b"the cat\n\nthe dog\n\xe4\n")
    new = "translate", "-m", trained[0], "-i", tmp_path / "bad.en", "-o", tmp_path / "new.fr"
    fails(*new, saying=r"bad.en is not UTF-8: line 4 .*; .* in .*new.fr.partial")
    expected = Translator.from_pretrained(trained[0])(["the cat", "", "the dog"])
    found = (tmp_path / "new.fr.partial").read_text()
    assert found == "".join(f"{line}\n" for line in expected)
    assert not (tmp_path / "new.fr").exists()
    # The same command again does not overwrite them.
    fails(*new, saying=r"new.fr.partial exists, from a command that has not finished; rename or")
    assert (tmp_path / "new.fr.partial").read_text() == found
    (tmp_path / "new.fr.partial").unlink()

    def fail(*_, **__):
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Translator, "translate", fail)
    fails(*new, saying=r"error: CUDA out of memory$")
    assert [path.name for path in tmp_path.iterdir()] == ["bad.en"]


def test_the_best_translations_come_with_line_number_and_score(trained):
    texts = ["the cat sees a dog.", "the tree"]
    translator = Translator.from_pretrained(trained[0])
    options = "--beam-size", 3, "--alpha", 1.0
    found = translator.translate(texts, beam_size=3, alpha=1.0, n_best=2, return_scores=True)
    shown = run("translate", "-m", trained[0], *options, "--n-best", 2, "--scores", *texts).stdout
    assert [line.split("\t") for line in shown.splitlines()] == [
        [str(number), f"{best.score:.4f}", best.text]
        for number, of_line in enumerate(found, 1)
        for best in of_line
    ]
    shown = run("translate", "-m", trained[0], *options, "--scores", *texts).stdout
    assert shown == "".join(f"{best[0].score:.4f}\t{best[0].text}\n" for best in found)


@pytest.mark.parametrize(
    "options, saying",
    [
        (["--beam-size", 0], "beam_size must be a whole number from 1 to 10,000, got 0"),
        (["--beam-size", 100_000], "--beam-size x --batch-size must be at most 16,384"),
        (["--batch-size", 0], "--batch-size must be at least 1, got 0"),
        (["--n-best", 9], "n_best must be .*4.*, got 9"),
        (["--n-best", 2, "--split-sentences"], "either --split-sentences or --n-best"),
        (["--penalty", "wu"], "penalty must be one of .*gnmt.*fairseq.*, got 'wu'"),
        (["--alpha", "nan"], "alpha must be .*, got nan"),
        (["--device", "tpu9"], "device must be one of this machine, got 'tpu9'"),
        (["--input", "no.en"], "either TEXT or --input"),
        ([], "no trained model 'nothing'"),
    ],
)
def test_options_are_checked_before_the_model_is_loaded(options, saying, monkeypatch):
    # As outside the tests, where no annotation is checked.
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    fails("translate", "-m", "nothing", "the cat", *options, saying=saying)


def test_a_pipe_is_answered_line_by_line_and_may_close(trained):
    process = command("translate", "-m", trained[0], "--batch-size", 1, "--beam-size", 1)
    process.stdin.write(b"the cat\n")
    process.stdin.flush()
    answer = process.stdout.readline().decode()  # before the next line is read
    assert answer == run("translate", "-m", trained[0], "--beam-size", 1, "the cat").stdout
    process.stdout.close()
    try:
        process.stdin.write(b"the dog\n" * 1000)
        process.stdin.close()
    except BrokenPipeError:
        pass
    assert process.wait(timeout=300) == 141
    assert process.stderr.read() == b""
