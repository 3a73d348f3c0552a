"""What happens to bytes on their way: flipped, cut, swapped, zeroed, repeated, overwritten."""

from __future__ import annotations

from random import Random

# Numbers that sizes and offsets must be checked against.
NUMBERS = (0, 1, 2**7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
TEXTS = (b"-1", b"99999999999999999999", b"nan", b"inf", b"1e999", b"{", b'"', b"\x00", b"\n", b",")


def _place(data: bytes, chance: Random, longest: int = 64) -> tuple[int, int]:
    start = chance.randrange(len(data))
    return start, min(len(data), start + chance.randint(1, longest))


def flip_bit(data: bytes, chance: Random) -> bytes:
    spoiled = bytearray(data)
    spoiled[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(spoiled)


def flip_bytes(data: bytes, chance: Random) -> bytes:
    spoiled = bytearray(data)
    for _ in range(chance.randint(1, 16)):
        spoiled[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(spoiled)


def cut(data: bytes, chance: Random) -> bytes:
    return data[: chance.randrange(len(data))]


def cut_front(data: bytes, chance: Random) -> bytes:
    return data[chance.randint(1, len(data)) :]


def append(data: bytes, chance: Random) -> bytes:
    return data + chance.randbytes(chance.randint(1, 64))


def zero(data: bytes, chance: Random) -> bytes:
    start, stop = _place(data, chance)
    return data[:start] + bytes(stop - start) + data[stop:]


def swap(data: bytes, chance: Random) -> bytes:
    size = chance.randint(1, max(1, min(64, len(data) // 2)))
    a, b = sorted(chance.randrange(len(data)) for _ in range(2))
    first, second = data[a : a + size], data[max(b, a + size) : max(b, a + size) + size]
    between = data[a + size : max(b, a + size)]
    return data[:a] + second + between + first + data[max(b, a + size) + size :]


def remove(data: bytes, chance: Random) -> bytes:
    start, stop = _place(data, chance)
    return data[:start] + data[stop:]


def repeat(data: bytes, chance: Random) -> bytes:
    start, stop = _place(data, chance)
    return data[:stop] + data[start:]


def put_number(data: bytes, chance: Random) -> bytes:
    width = chance.choice((1, 2, 4, 8))
    number = chance.choice(NUMBERS) % 2 ** (8 * width)
    order = chance.choice(("little", "big"))
    start = chance.randrange(len(data))
    return data[:start] + number.to_bytes(width, order) + data[start + width :]


def put_text(data: bytes, chance: Random) -> bytes:
    start, word = chance.randrange(len(data)), chance.choice(TEXTS)
    return data[:start] + word + data[start + chance.choice((0, len(word))) :]


KINDS = (
    *(flip_bit, flip_bytes, cut, cut_front, append, zero, swap, remove, repeat),
    *(put_number, put_text),
)


def spoil(data: bytes, seed: int) -> bytes:
    """Return other bytes; the seed says which, and every kind of damage comes in turn."""
    chance = Random(seed)
    spoiled = KINDS[seed % len(KINDS)](data, chance)
    # Some files meet with more than one accident.
    while spoiled == data or (spoiled and chance.random() < 0.1):
        spoiled = chance.choice(KINDS)(spoiled, chance)
    return spoiled
