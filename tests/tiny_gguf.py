"""A model of random weights, small enough to make and load in a blink: what it says means nothing.

It never ends an answer by itself, so that an answer is as long as the request allows, and says ASCII only,
or (`halves`) only bytes that are no character of their own. For that every embedding points along the first
axis, and the output rows of what it never says point the other way.

`tiny_model()` makes it once per test process; `python -m tests.tiny_gguf FILE` writes one by hand.
"""

import functools
import sys
import tempfile
from pathlib import Path

import gguf
import numpy as np

HIDDEN, FEED_FORWARD, LAYERS, HEADS, KV_HEADS = 64, 160, 2, 4, 2
CONTEXT = 8192
STEADY = 40.0  # far above what the layers add to the first axis
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = ("Ġ t", "h e", "Ġt he", "i n", "Ġ a", "r e")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def write(path: Path, *, seed: int = 0, halves: bool = False) -> Path:
    """Write a llama GGUF of about 110,000 random parameters. The same seed gives the same file."""
    symbols = _byte_symbols()
    high = symbols[128:]
    words = (*CONTROL, *symbols, *(merge.replace(" ", "") for merge in MERGES))
    silent = {*words} - {*high} if halves else {*CONTROL, *high}
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(HIDDEN // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(words)
    kinds = [gguf.TokenType.CONTROL] * len(CONTROL) + [gguf.TokenType.NORMAL] * (len(words) - len(CONTROL))
    writer.add_token_types(kinds)
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(0)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)
    for name, shape in _shapes(len(words)):
        values = _values(np.random.default_rng([seed, len(name), *name.encode()]), shape)
        if name == "token_embd.weight":
            values[:, 0] = STEADY
        elif name == "output.weight":
            values[:, 0] = [-STEADY if word in silent else 0.0 for word in words]
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="reef-tiny-")


@functools.cache
def tiny_model() -> Path:
    """The model of this test process."""
    return write(Path(_folder().name) / "tiny.gguf")


def _shapes(words: int) -> list[tuple[str, tuple[int, ...]]]:
    head = HIDDEN // HEADS
    block = {
        "attn_norm": (HIDDEN,),
        "attn_q": (HIDDEN, HIDDEN),
        "attn_k": (KV_HEADS * head, HIDDEN),
        "attn_v": (KV_HEADS * head, HIDDEN),
        "attn_output": (HIDDEN, HIDDEN),
        "ffn_norm": (HIDDEN,),
        "ffn_gate": (FEED_FORWARD, HIDDEN),
        "ffn_up": (FEED_FORWARD, HIDDEN),
        "ffn_down": (HIDDEN, FEED_FORWARD),
    }
    layers = [
        (f"blk.{layer}.{name}.weight", shape) for layer in range(LAYERS) for name, shape in block.items()
    ]
    return [
        ("token_embd.weight", (words, HIDDEN)),
        *layers,
        ("output_norm.weight", (HIDDEN,)),
        ("output.weight", (words, HIDDEN)),
    ]


def _values(
    dice: np.random.Generator, shape: tuple[int, ...]
) -> "np.ndarray[tuple[int, ...], np.dtype[np.float32]]":
    if len(shape) == 1:
        return np.ones(shape, dtype=np.float32)
    return dice.normal(0, shape[-1] ** -0.5, shape).astype(np.float32)


def _byte_symbols() -> list[str]:
    """The 256 characters by which a GPT-2 vocabulary writes single bytes."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
