"""A model's file that is cut off is told from a whole one by its head."""

import struct
from contextlib import suppress
from pathlib import Path

import gguf
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daemon.runtimes.gguf import ALIGNMENT, BLOCKS, check_whole
from reef.errors import Invalid
from tests.tiny_gguf import tiny_model

WHOLE = tiny_model().read_bytes()
HEAD = 16_384
"""More bytes than the head of the tiny model has."""


def test_the_blocks_are_those_of_the_library() -> None:
    assert {int(kind): sizes for kind, sizes in gguf.GGML_QUANT_SIZES.items()} == BLOCKS


def test_a_whole_one_passes() -> None:
    check_whole(tiny_model())


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.one_of(st.integers(8, HEAD), st.integers(8, len(WHOLE) - ALIGNMENT)))
def test_any_part_of_it_is_refused(tmp_path: Path, length: int) -> None:
    part = tmp_path / "part.gguf"
    part.write_bytes(WHOLE[:length])
    with pytest.raises(Invalid, match=r"not whole|not a whole") as caught:
        check_whole(part)
    assert caught.value.hint == "download it again"


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    part = tmp_path / "part.gguf"
    part.write_bytes(WHOLE[:-1000])
    with pytest.raises(Invalid, match=f"ends after {len(WHOLE) - 1000:,} bytes of {len(WHOLE):,}"):
        check_whole(part)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(8, HEAD), st.binary(min_size=1, max_size=16))
def test_a_head_of_nonsense_is_at_most_refused(tmp_path: Path, at: int, junk: bytes) -> None:
    file = tmp_path / "junk.gguf"
    file.write_bytes(WHOLE[:at] + junk + WHOLE[at + len(junk) :])
    with suppress(Invalid):  # any other error is a failure
        check_whole(file)


def test_an_array_in_an_array_without_end(tmp_path: Path) -> None:
    nested = struct.pack("<IQ", 9, 1) * 5000
    file = tmp_path / "deep.gguf"
    file.write_bytes(struct.pack("<4sIQQQ1sI", b"GGUF", 3, 0, 1, 1, b"k", 9) + nested)
    with pytest.raises(Invalid, match="makes no sense"):
        check_whole(file)


def test_blocks_and_an_alignment_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "quantised.gguf"
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_custom_alignment(128)
    for name in ("a", "b"):
        values = np.zeros((3, 2 * 18), dtype=np.uint8)
        writer.add_tensor(name, values, raw_dtype=gguf.GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    check_whole(file)
    data = file.read_bytes()
    end = len(data) - (128 - 3 * 2 * 18)  # without what fills the last one up
    file.write_bytes(data[:end])
    check_whole(file)
    file.write_bytes(data[: end - 1])
    with pytest.raises(Invalid, match=f"after {end - 1:,} bytes of {end:,}"):
        check_whole(file)
