# SPDX-License-Identifier: Apache-2.0
"""Our CBOR against another implementation: cbor_cross.py ECHO GOLDEN_FOLDER

Values: what cbor2 encodes canonically, we decode and encode to the same bytes. Damage: whatever
bytes we accept, cbor2 decodes to a value whose canonical encoding is those bytes. Golden files:
likewise. Exits 77, "skipped", where cbor2 is not installed.
"""
import io
import math
import pathlib
import random
import subprocess
import sys

try:
    import cbor2
except ImportError:
    print("python3-cbor2 is not installed")
    sys.exit(77)

INTEGERS = [0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**63 - 1]
FLOATS = [0.0, -0.0, 1.5, 32767.0, 65536.0, 65505.0, 2.0**-24, 2.0**-25, 2.0**-14, 0.1, 1e38, 1e39, 2.0**-149]


def value(rng, depth):
    kind = rng.randrange(9 if depth > 0 else 7)
    if kind == 0:
        return rng.choice(INTEGERS)
    if kind == 1:
        return -1 - rng.choice(INTEGERS)
    if kind == 2:
        return rng.randbytes(rng.choice([0, 1, 23, 24, 255, 256]))
    if kind == 3:
        return "".join(rng.choice("aZ 0\u00e9\u20ac\U0001f41f") for _ in range(rng.randrange(30)))
    if kind == 4:
        return rng.choice([True, False, None])
    if kind == 5:
        return rng.choice(FLOATS) * rng.choice([1, -1])
    if kind == 6:
        return math.ldexp(rng.getrandbits(rng.choice([3, 11, 24, 53])), rng.randrange(-160, 130))
    if kind == 7:
        return [value(rng, depth - 1) for _ in range(rng.choice([0, 1, 3, 25]))]
    keys = [rng.choice(INTEGERS + list(range(40))) for _ in range(rng.choice([0, 1, 4, 25]))]
    return {key: value(rng, depth - 1) for key in keys}


def canonical(v):
    return cbor2.dumps(v, canonical=True)


def beyond_cbor2(v):
    """Some cbor2 versions give 32 bits to what 16 hold from 32768 up; such values are not judged."""
    if isinstance(v, float):
        return 32768 <= abs(v) < 65536
    if isinstance(v, dict):
        return any(beyond_cbor2(item) for item in v.values())
    return isinstance(v, list) and any(beyond_cbor2(item) for item in v)


def damaged(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data))
        change = rng.randrange(4)
        if change == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif change == 1:
            data[at] = rng.randrange(256)
        elif change == 2 and len(data) > 1:
            del data[at]
        else:
            data.insert(at, rng.randrange(256))
    return bytes(data)


def decoded(data):
    stream = io.BytesIO(data)
    v = cbor2.CBORDecoder(stream).decode()
    assert stream.read() == b"", data.hex()
    return v


def main(echo, golden):
    rng = random.Random(8949)
    values = [value(rng, 3) for _ in range(3000)]
    good = [canonical(v) for v in values if not beyond_cbor2(v)]
    good += [f.read_bytes() for f in sorted(pathlib.Path(golden).glob("*.cbor"))]
    good = [g for g in good if len(g) < 20000]
    short = [g for g in good if len(g) < 60]
    bad = [damaged(rng, rng.choice(short)) for _ in range(30000)]
    lines = "".join(data.hex() + "\n" for data in good + bad)
    out = subprocess.run([echo], input=lines, capture_output=True, text=True, check=True).stdout
    answers = out.splitlines()
    assert len(answers) == len(good) + len(bad), (len(answers), len(good) + len(bad))

    for data, answer in zip(good, answers):
        assert answer == data.hex(), f"{data.hex()} came back as {answer}"
        assert canonical(decoded(data)) == data, data.hex()
    counts = {"refused": 0, "skipped": 0, "accepted": 0}
    for data, answer in zip(bad, answers[len(good):]):
        counts[answer if answer in counts else "accepted"] += 1
        if answer == "refused":
            continue
        v = decoded(data)
        if answer != "skipped":
            assert answer == data.hex(), f"{data.hex()} came back as {answer}"
            assert beyond_cbor2(v) or canonical(v) == data, data.hex()
    print(len(good), "values agree;", "of", len(bad), "damaged ones", counts)
    assert min(counts.values()) > 0


main(*sys.argv[1:])
