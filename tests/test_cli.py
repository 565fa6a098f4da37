"""The command line: output, exit codes, and errors of one line."""

import errno
import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from safetensors import safe_open
from typer.testing import CliRunner

import transformer
from transformer.cli import app
from transformer.data.corpora import corpus_names
from transformer.inference.translator import Translator
from transformer.interop import CTranslate2Translator, from_marian
from transformer.recipes.presets import PRESETS
from transformer.recipes.record import read_record
from transformer.training.checkpoint import load_state

ROOT = Path(transformer.__file__).parent.parent
COMMANDS = ("train", "translate", "evaluate", "average", "export", "corpora", "info")
SMALL = dict(
    vocab_size=300, d_model=16, d_ff=16, max_steps=6, batch_tokens=200, warmup_steps=4,
    log_every=1, validate_every=3, save_every=2, keep_last=2, score_pairs=2, beam_size=1,
    train_pairs="none",
)  # fmt: skip


def settings(**changes):
    return [word for item in (SMALL | changes).items() for word in ("--set", "{}={}".format(*item))]


def run(*arguments, code=0, input=None, env=None):
    result = CliRunner().invoke(app, [str(a) for a in arguments], input=input, env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == code, result.output
    return result


def fails(*arguments, saying, input=None):
    """Exit code 2 and one line on standard error."""
    result = run(*arguments, code=2, input=input)
    assert result.stderr.startswith("transformer: error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    assert re.search(saying, result.stderr), result.stderr
    return result


def command(*arguments, **options):
    """The command as a process of its own."""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "transformer.cli", *map(str, arguments)],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
        **dict(stdout=subprocess.PIPE) | options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Two aligned files."""
    folder = tmp_path_factory.mktemp("text")
    nouns = ["cat", "dog", "house", "tree", "river", "train", "book", "window"]
    pairs = [(f"the {a} sees a {b}.", f"le {a} voit un {b}.") for a in nouns for b in nouns]
    (folder / "t.en").write_text("".join(f"{source}\n" for source, _ in pairs))
    (folder / "t.fr").write_text("".join(f"{target}\n" for _, target in pairs))
    return folder / "t.en", folder / "t.fr"


@pytest.fixture(scope="module")
def files(text):
    return "--source-file", text[0], "--target-file", text[1]


@pytest.fixture(scope="module")
def trained(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("runs") / "small"
    return folder, run("train", "smoke", "-o", folder, *files, *settings())


class TestFrame:
    def test_help_answers_without_loading_torch(self):
        code = (
            "import sys, transformer, transformer.cli as c\n"
            "sys.argv[1:] = ['train', '--help']\n"
            "try: c.main()\n"
            "except SystemExit as e: assert not e.code\n"
            "heavy = {'torch', 'numpy', 'tokenizers', 'huggingface_hub'} & set(sys.modules)\n"
            "assert not heavy, heavy\n"
            "from transformer import Translator\n"
            "assert 'torch' in sys.modules"
        )
        process = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True)
        assert process.returncode == 0, process.stderr.decode()
        assert b"transformer train smoke" in process.stdout

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_help_shows_an_example(self, name):
        shown = run(name, "--help").stdout
        assert re.search(rf"Examples?:\n    +(accelerate.*)?transformer {name}\b", shown)

    def test_version_is_that_of_the_distribution(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert run("--version").stdout == f"transformer-book {project['version']}\n"
        assert transformer.__version__ == project["version"]

    def test_the_package_offers_its_names(self):
        for name in transformer.__all__:
            assert getattr(transformer, name) is not None
            assert name in dir(transformer)
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            transformer.nothing  # noqa: B018


class TestTrain:
    def test_it_prints_the_plan_the_scores_and_where_the_model_is(self, trained):
        folder, result = trained
        lines = result.stdout.splitlines()
        assert lines[0].startswith("smoke: t.en, 61 training pairs")
        assert any(line.startswith("time: about") for line in lines)
        assert lines[-1] == f"model: {folder / 'model'}, record: {folder / 'run.json'}"
        assert any("BLEU" in line and "version:" in line for line in lines)
        assert result.stderr == ""
        preset = read_record(folder / "run.json")["preset"]
        assert preset["model"]["d_model"] == 16 and preset["training"]["max_steps"] == 6
        assert preset["train_pairs"] is None

    def test_the_same_command_resumes_with_more_steps(self, trained, files):
        folder = trained[0]
        shown = run("train", "smoke", "-o", folder, *files, *settings(max_steps=7)).stdout
        assert "going on from step 6" in shown
        assert read_record(folder / "run.json")["steps"] == 7

    @pytest.mark.parametrize(
        "arguments, saying",
        [
            (["smok"], "unknown preset 'smok'; did you mean 'smoke'?"),
            (["smoke", "--set", "dmodel=16"], "unknown field 'dmodel'; did you mean 'd_model'?"),
            (["smoke", "--set", "d_model"], "a change is written FIELD=VALUE, got 'd_model'"),
            (["smoke", "--set", "d_model=big"], "d_model must be an integer, got 'big'"),
            (["smoke", "--set", "dropout=nan"], "dropout must be a number, got 'nan'"),
            (["smoke", "--set", "compile=yes"], "compile must be true or false, got 'yes'"),
            (["smoke", "--set", "precision=fp8"], "precision must be one of fp32, bf16, fp16"),
            (["smoke", "--set", "corpus=tatoeba-en-xx"], "unknown corpus 'tatoeba-en-xx'; did you"),
            (["smoke", "--source-file", "a"], "--source-file and --target-file"),
            (["smoke", "--test-source-file", "a", "--test-target-file", "b"], "--source-file"),
            (["smoke", "--source-file", "a.en", "--target-file", "a.de"], "no such file: a.en"),
            (["smoke", "--data-dir", "nowhere"], "data_dir must be a directory"),
        ],
    )
    def test_bad_input_gives_one_line_and_no_folder(self, tmp_path, arguments, saying, monkeypatch):
        monkeypatch.chdir(tmp_path)
        fails("train", *arguments, saying=saying)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize(
        "source, target, saying",
        [
            (b"a\nb\n", b"a\n", "equally many lines: .* has 2, .* has 1"),
            (b"a\n\xff\n", b"a\nb\n", "is not UTF-8: line 2 holds the byte 0xff"),
            (b"a\nb\n", b"c\nd\n", "vocab_size 300 is larger than the text supports"),
        ],
    )
    def test_bad_text_gives_one_line_and_no_folder(self, tmp_path, source, target, saying):
        (tmp_path / "a").write_bytes(source)
        (tmp_path / "b").write_bytes(target)
        files = ["--source-file", tmp_path / "a", "--target-file", tmp_path / "b"]
        fails("train", "smoke", "-o", tmp_path / "run", *files, *settings(), saying=saying)
        assert not (tmp_path / "run").exists()

    def test_a_folder_with_something_else_is_refused(self, tmp_path, files, trained):
        (tmp_path / "thesis.tex").touch()
        fails("train", "smoke", "-o", tmp_path, *files, *settings(), saying="thesis.tex")
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
        fails(
            "train", "smoke", "-o", trained[0], *files, *settings(d_model=32),
            saying=r"another configuration \(model.d_model: 16 there, 32 here\)",
        )  # fmt: skip

    def test_a_loss_that_is_no_number_is_named(self, tmp_path, files):
        hot = settings(learning_rate_factor="1e38", save_every=1)
        fails("train", "smoke", "-o", tmp_path, *files, *hot, saying=r"loss is \S+ at step \d+")


class TestInterruption:
    def test_a_signal_saves_and_the_same_command_resumes(self, tmp_path, files):
        folder = tmp_path / "run"
        process = command(
            "train", "smoke", "-o", folder, *files, *settings(max_steps=10**6, save_every=50)
        )
        deadline = time.monotonic() + 240
        while not (folder / "state.pt").exists():
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 143, err
        assert err == b""
        last = out.decode().splitlines()[-1]
        pattern = r"stopped at step ([\d,]+) of 1,000,000, .* the same command resumes"
        stopped = int(re.fullmatch(pattern, last)[1].replace(",", ""))
        assert load_state(folder / "state.pt")["progress"]["step"] == stopped
        more = settings(max_steps=stopped + 1, save_every=50)
        shown = run("train", "smoke", "-o", folder, *files, *more).stdout
        assert f"going on from step {stopped:,}" in shown
        assert read_record(folder / "run.json")["steps"] == stopped + 1

    def test_only_one_of_two_processes_prints(self, tmp_path, files):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        launch = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1",
                  f"--master-port={port}", "-m", "transformer.cli", "train", "smoke",
                  "-o", tmp_path / "run", *files, *settings(max_steps=2)]  # fmt: skip
        environment = os.environ | {
            "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true",
        }  # fmt: skip
        process = subprocess.run(
            [sys.executable, *map(str, launch)],
            env=environment, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
        assert process.returncode == 0, process.stderr[-2000:]
        assert process.stdout.count("training pairs") == 1
        assert ", 2 processes" in process.stdout
        assert process.stdout.count("record: ") == 1
        assert read_record(tmp_path / "run" / "run.json")["steps"] == 2


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a disk of some kilobytes; only root may."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(kilobytes, remount=False, read_only=False):
        options = f"{'remount,' * remount}{'ro,' * read_only}size={kilobytes}k"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], capture_output=True
        )
        if done.returncode:
            pytest.skip("cannot mount a small disk here")
        return disk

    yield mount
    gc.collect()  # what failed may still hold a file open there
    subprocess.run(["umount", str(disk)], capture_output=True)


def require_whole_files(folder):
    """Nothing is half-written, whatever stopped the program."""
    for path in folder.rglob("*"):
        assert not path.name.endswith((".tmp", ".part")) and ".saving" not in path.name
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                for name in file.keys():  # noqa: SIM118 (it is no dictionary)
                    file.get_tensor(name)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".pt":
            load_state(path)


class TestFullDisk:
    @pytest.mark.parametrize("kilobytes", [16, 240])
    def test_no_space_is_one_line_and_the_run_resumes_later(self, small_disk, files, kilobytes):
        """Space runs out at the tokenizer, or at the state."""
        folder = small_disk(kilobytes) / "run"
        arguments = "train", "smoke", "-o", folder, *files, *settings()
        fails(*arguments, saying=r"(?i)no space left|cannot write")
        require_whole_files(folder)
        small_disk(20_000, remount=True)
        run(*arguments)
        assert read_record(folder / "run.json")["steps"] == 6

    def test_a_read_only_disk_is_one_line_and_its_files_stay(self, trained, small_disk, files):
        folder = small_disk(20_000)
        begun = "train", "smoke", "-o", folder / "run", *files, *settings(max_steps=1)
        run(*begun)
        before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        small_disk(20_000, remount=True, read_only=True)
        fails(*begun, "--set", "max_steps=2", saying="Read-only .*; choose another folder")
        fails("average", trained[0], "--last", 1, "-o", folder / "mean", saying="Read-only")
        fails("export", trained[0], folder / "out", "--to", "marian", saying="Read-only")
        after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert after == before
        assert run("translate", "-m", folder / "run", "the cat").stdout.count("\n") == 1


class TestTranslate:
    def test_arguments_and_standard_input_give_what_the_translator_gives(self, trained):
        texts = ["the cat sees a dog.", "the tree"]
        expected = "".join(f"{line}\n" for line in Translator.from_pretrained(trained[0])(texts))
        assert run("translate", *texts, "--model", trained[0]).stdout == expected
        piped = run("translate", "-m", trained[0], input="\n".join(texts))
        assert piped.stdout == expected and piped.stderr == ""

    def test_one_line_comes_out_for_one_that_goes_in(self, trained):
        lines = "the cat\r\n\n   \nthe\u2028dog\nthe tree"
        shown = run("translate", "-m", trained[0], input=lines).stdout
        assert shown.count("\n") == 5
        assert [bool(line) for line in shown.split("\n")] == [True, False, False, True, True, False]
        alone = run("translate", "-m", trained[0], "the cat").stdout
        assert shown.split("\n")[0] == alone.strip("\n")
        assert run("translate", "-m", trained[0], input="").stdout == ""

    def test_bad_lines_are_named_and_those_before_them_answered(self, trained):
        result = fails(
            "translate", "-m", trained[0], input=b"the cat\nthe \xe4\n",
            saying="standard input is not UTF-8: line 2 holds the byte 0xe4",
        )  # fmt: skip
        assert result.stdout.count("\n") == 1
        result = fails(
            "translate", "-m", trained[0], input="the cat\n" + "cat " * 10_000 + "\n",
            saying=r"line 2 has \d+ tokens, more than the 1024 that the model takes",
        )  # fmt: skip
        assert result.stdout.count("\n") == 1

    @pytest.mark.parametrize(
        "options, saying",
        [
            (["-m", "nothing"], "no trained model 'nothing'"),
            (["--beam-size", 0], "beam_size must be at least 1, got 0"),
            (["--penalty", "wu"], "penalty must be one of .*gnmt.*fairseq.*, got 'wu'"),
            (["--device", "tpu9"], "device must be one of this machine, got 'tpu9'"),
        ],
    )
    def test_bad_options_give_one_line(self, trained, options, saying, monkeypatch):
        # As outside the tests, where no annotation is checked.
        monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
        fails("translate", "-m", trained[0], "the cat", *options, saying=saying)

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
    def test_a_full_disk_under_the_output_is_one_line(self, trained):
        with open("/dev/full", "wb") as full:
            process = command("translate", "-m", trained[0], "the cat", stdout=full)
            said = process.communicate(timeout=60)[1].decode()
        assert process.returncode not in (0, None)
        assert said.count("\n") == 1 and "No space left" in said

    def test_a_pipe_is_answered_line_by_line_and_may_close(self, trained):
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
        assert process.wait(timeout=60) == 141
        assert process.stderr.read() == b""


class TestEvaluate:
    def test_scores_come_with_signatures(self, trained, text, files):
        shown = run("evaluate", "-m", trained[0], *files, "--beam-size", 1).stdout.splitlines()
        assert shown[0] == f"{trained[0]} on {text[0]}: 64 pairs, beam 1, alpha 0.6 (gnmt)"
        assert re.fullmatch(r"BLEU \d+\.\d\d \(nrefs:1\|.*version:.*\)", shown[1])
        assert re.fullmatch(r"chrF2 \d+\.\d\d \(nrefs:1\|.*version:.*\)", shown[2])

    def test_a_split_of_a_corpus_by_name(self, trained, text, tmp_path):
        for name in ("newstest2013", "newstest2014"):
            for path, side in zip(text, ("en", "fr"), strict=True):
                lines = path.read_text().splitlines(keepends=True)
                count = 5 if name == "newstest2013" else 7
                (tmp_path / f"{name}.en-fr.{side}").write_text("".join(lines[:count]))
        options = "--corpus", "wmt-newstest-en-fr", "--data-dir", tmp_path, "--beam-size", 1
        assert ": 7 pairs" in run("evaluate", "-m", trained[0], *options).stdout
        shown = run("evaluate", "-m", trained[0], *options, "--split", "validation").stdout
        assert "wmt-newstest-en-fr validation: 5 pairs" in shown
        saying = "split must be one of validation, test, .* got 'train'"
        fails("evaluate", "-m", trained[0], *options, "--split", "train", saying=saying)

    def test_bad_input(self, trained, files, tmp_path):
        both = "--corpus", "tatoeba-en-de"
        fails("evaluate", "-m", trained[0], *files, *both, saying="either --corpus or files")
        fails("evaluate", "-m", trained[0], *files[:2], saying="--target-file")
        moses = "--text", "moses-lowercase"
        fails("evaluate", "-m", trained[0], *files, *moses, saying="--text needs --corpus")
        fails("evaluate", "-m", trained[0], "--corpus", "tatoeba", saying="unknown corpus")


class TestAverage:
    def test_a_run_and_its_named_checkpoints_give_the_same_model(self, trained, tmp_path):
        shown = run("average", trained[0], "--last", 2).stdout
        assert shown.startswith(f"{trained[0] / 'average-2'}: the mean of step-")
        names = sorted((trained[0] / "checkpoints").glob("step-*"))[-2:]
        run("average", *names, "-o", tmp_path / "mine")
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            by_run = (trained[0] / "average-2" / name).read_bytes()
            assert by_run == (tmp_path / "mine" / name).read_bytes()
        assert run("translate", "-m", tmp_path / "mine", "the cat").stdout.count("\n") == 1

    def test_bad_input(self, trained, tmp_path):
        fails("average", trained[0], "--last", 9, saying="holds 2 checkpoints, fewer than last=9")
        fails("average", tmp_path / "no", saying="no folder")
        checkpoint = next((trained[0] / "checkpoints").glob("step-*"))
        fails("average", checkpoint, saying="--output must name a folder")
        (tmp_path / "taken").write_text("mine")
        fails("average", checkpoint, "-o", tmp_path, saying="exists; choose another")
        assert (tmp_path / "taken").read_text() == "mine"
        broken = tmp_path / "step-00000001.safetensors"
        broken.write_bytes(checkpoint.read_bytes()[:-5])
        fails("average", broken, "-o", tmp_path / "o", saying="not a whole safetensors file")
        assert not (tmp_path / "o").exists()


class TestShow:
    def test_corpora_lists_every_corpus_once(self, monkeypatch, tmp_path):
        monkeypatch.delenv("TRANSFORMER_DATA_DIR", raising=False)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        rows = [re.split(r"  +", line) for line in run("corpora").stdout.splitlines()]
        assert [row[0] for row in rows[1:]] == corpus_names()
        table = {row[0]: row[1:] for row in rows}
        assert table["tatoeba-en-de"][:3] == ["en -> de", "yes", "part of the package"]
        assert table["multi30k-en-de"][1:3] == ["no", "download"]

    def test_info_of_this_installation_and_of_a_preset(self):
        shown = run("info").stdout
        for name in ("python", "torch", "device", *PRESETS):
            assert name in shown
        shown = run("info", "wmt14-base").stdout
        assert re.search(r"^parameters +63,082,496 ", shown, re.M)
        assert re.search(r"^d_model +512$", shown, re.M)

    def test_what_info_shows_can_be_set(self, trained, files, tmp_path):
        shown = re.findall(r"^(\w+) +(\S+)$", run("info", "smoke").stdout, re.M)
        from transformer.recipes.overrides import parse_changes

        words = [f"{name}={value}" for name, value in shown if name not in ("name", "parameters")]
        assert len(words) > 40
        preset = PRESETS["smoke"]
        assert preset.with_changes(**parse_changes(preset, words)) == preset

    def test_info_of_a_model(self, trained):
        shown = run("info", trained[0] / "model").stdout
        count = read_record(trained[0] / "run.json")["parameters"]
        assert re.search(rf"^parameters +{count:,} ", shown, re.M)
        assert re.search(r"^vocab_size +300$", shown, re.M)
        fails("info", "nothing", saying="no trained model 'nothing'")


class TestExport:
    def test_every_form_loads_and_translates_as_the_model(self, trained, tmp_path):
        pytest.importorskip("ctranslate2")
        pytest.importorskip("sentencepiece")
        model, to = trained[0] / "model", "ctranslate2"
        wanted = Translator.from_pretrained(model).translate(["the cat"], beam_size=1, max_length=5)
        shown = run(
            "export", model, tmp_path / "c", "--to", "ctranslate2", "--quantization", "int8"
        )
        assert re.fullmatch(r".*c: ctranslate2, int8, 0\.\d MB\n", shown.stdout)
        run("export", trained[0], tmp_path / "f", "--to", to)
        served = CTranslate2Translator(tmp_path / "f", threads=1)
        assert served.translate(["the cat"], beam_size=1, max_length=5) == wanted
        run("export", model, tmp_path / "m", "--to", "marian")
        back = from_marian(tmp_path / "m")
        assert back.model.config.d_model == 16
        assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "f", "m"]

    @pytest.mark.parametrize(
        ("options", "saying"),
        [
            (["--to", "tensorflow"], "--to must be one of ctranslate2, marian, .*'tensorflow'"),
            (["--to", "onnx", "--quantization", "int8"], "--quantization is for --to ctranslate2"),
            (["--to", "ctranslate2", "--quantization", "int4"], "quantization must be one of"),
        ],
    )
    def test_bad_options_give_one_line_and_no_folder(self, trained, tmp_path, options, saying):
        fails("export", trained[0], tmp_path / "out", *options, saying=saying)
        assert not list(tmp_path.iterdir())

    def test_a_failure_leaves_nothing_and_what_is_there_stays(self, trained, tmp_path, monkeypatch):
        def fail(translator, folder, *_):
            folder.mkdir()
            (folder / "half").touch()
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr("transformer.interop.marian_export.to_marian", fail)
        fails("export", trained[0], tmp_path / "out", "--to", "marian", saying="No space left")
        assert not list(tmp_path.iterdir())
        (tmp_path / "mine").touch()
        fails("export", trained[0], tmp_path, "--to", "marian", saying="exists; choose another")
        assert (tmp_path / "mine").exists()

    def test_a_missing_extra_is_named(self, trained, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "ctranslate2", None)
        saying = re.escape("pip install 'transformer-book[export]'")
        fails("export", trained[0], tmp_path / "out", "--to", "ctranslate2", saying=saying)
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
        fails("export", trained[0], tmp_path / "out", "--to", "onnx", saying=saying)
        assert not list(tmp_path.iterdir())
