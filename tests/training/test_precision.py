"""Half precision: refused where it cannot be, warned of where it is slow."""

import warnings

import pytest

from transformer.training.precision import require_precision


@pytest.fixture
def processor(tmp_path):
    def describe(flags):
        path = tmp_path / "cpuinfo"
        path.write_text(f"vendor_id\t: AuthenticAMD\nflags\t\t: fpu sse2 {flags}\n")
        return path

    return describe


def test_bfloat16_without_units_for_it_warns_and_says_why(processor):
    with pytest.warns(UserWarning, match="no units for bfloat16.*slower"):
        require_precision("bf16", "cpu", processor("avx2 fma"))


@pytest.mark.parametrize("flags", ["avx512_bf16", "amx_bf16 amx_tile", "asimd bf16"])
def test_with_units_there_is_nothing_to_say(processor, flags):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_precision("bf16", "cpu", processor(flags))


@pytest.mark.parametrize("precision, device", [("fp32", "cpu"), ("bf16", "cuda"), ("fp16", "cuda")])
def test_other_precisions_and_devices_are_silent(processor, precision, device):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_precision(precision, device, processor("avx2"))


def test_an_unknown_processor_is_given_the_benefit_of_the_doubt(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_precision("bf16", "cpu", tmp_path / "not there")


def test_float16_on_a_cpu_is_refused(processor):
    with pytest.raises(ValueError, match='"fp16" needs a GPU'):
        require_precision("fp16", "cpu", processor("avx512_bf16"))
