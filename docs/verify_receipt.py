#!/usr/bin/env python3
"""Verifies a receipt that `hookproxy audit receipt` has made: python3 verify_receipt.py RECEIPT.json KEY.pub

It needs Python 3.8 and nothing else: no package, no hookproxy, no network. KEY.pub is the public key of the gateway, as
OpenSSH (`ssh-ed25519 AAAA...`) or PEM, which you have from somebody whom you trust: a receipt that brings its own
key proves nothing. Exit status: 0 if all that it says is proven, 1 if not, 2 if a file cannot be read.

What is proven: each line is one of those of an audit that the owner of the key has signed, unchanged.
1. The leaf is SHA-256 of a zero byte and the line; a node is SHA-256 of a one byte and its two children (RFC 6962).
2. The path leads from the leaf to the root in the checkpoint (RFC 9162, 2.1.3.2).
3. The signature (Ed25519, RFC 8032) is of the checkpoint as canonical JSON (JCS, RFC 8785).
"""

import base64
import hashlib
import json
import re
import sys

RECEIPT = "hookproxy audit receipt 1"
CHECKPOINT = "hookproxy audit checkpoint 1"

# --- Ed25519 ---

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)


def point(text):
    """The point that 32 bytes stand for, as (X, Y, Z, T); None if they stand for none."""
    y = int.from_bytes(text, "little")
    sign, y = y >> 255, y & ((1 << 255) - 1)
    if y >= P:
        return None
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * ROOT_OF_MINUS_1 % P
    if (x * x - x2) % P or (x == 0 and sign):
        return None
    x = P - x if x & 1 != sign else x
    return x, y, 1, x * y % P


def add(one, other):
    a = (one[1] - one[0]) * (other[1] - other[0]) % P
    b = (one[1] + one[0]) * (other[1] + other[0]) % P
    c, d = 2 * one[3] * other[3] * D % P, 2 * one[2] * other[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(number, at):
    total = (0, 1, 1, 0)
    while number:
        if number & 1:
            total = add(total, at)
        at, number = add(at, at), number >> 1
    return total


BASE = point((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signed(public, signature, text):
    """Whether the owner of the public key has signed the text."""
    if len(signature) != 64 or len(public) != 32:
        return False
    key, commitment = point(public), point(signature[:32])
    number = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or number >= ORDER or times(8, key)[0] == 0:
        return False
    hashed = int.from_bytes(hashlib.sha512(signature[:32] + public + text).digest(), "little") % ORDER
    left, right = times(number, BASE), add(commitment, times(hashed, key))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


# --- the public key ---


def ssh_blob(public):
    return b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + public


def public_keys(text):
    """The public keys in a file, by the names that ssh-keygen -l shows."""
    keys = []
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))  # one that was taken out
    for found in re.findall(r"-----BEGIN PUBLIC KEY-----([^-]+)-----END PUBLIC KEY-----", text):
        der = base64.b64decode("".join(found.split()), validate=True)
        if len(der) == 44 and der.startswith(bytes.fromhex("302a300506032b6570032100")):
            keys.append(der[12:])
    for found in re.findall(r"ssh-ed25519\s+([A-Za-z0-9+/=]+)", text):
        blob = base64.b64decode(found, validate=True)
        if blob == ssh_blob(blob[-32:]):
            keys.append(blob[-32:])
    return {
        "SHA256:" + base64.b64encode(hashlib.sha256(ssh_blob(key)).digest()).decode().rstrip("="): key for key in keys
    }


# --- the tree and the texts ---


def root_by_path(leaf, index, size, path):
    """The root of a tree of this size with this leaf at this index; None: the path does not fit it."""
    if not 0 <= index < size:
        return None
    number, last, found = index, size - 1, leaf
    for other in path:
        if last == 0:
            return None
        if number & 1 or number == last:
            found = hashlib.sha256(b"\1" + other + found).digest()
            while number and not number & 1:
                number, last = number >> 1, last >> 1
        else:
            found = hashlib.sha256(b"\1" + found + other).digest()
        number, last = number >> 1, last >> 1
    return found if last == 0 else None


def canonical(value):
    """JCS of what a checkpoint has: texts, whole numbers, true and false, and objects of them."""
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda member: member[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(member) for name, member in members) + "}"
    if isinstance(value, str) or value is True or value is False:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and abs(value) < 2**53:
        return str(value)
    raise ValueError("a checkpoint has no such value")


def once(members):
    """The members of an object, none twice: else two readers could read different values."""
    if len(dict(members)) < len(members):
        raise ValueError("an object has a name twice")
    return dict(members)


def exactly(text):
    """JSON with its numbers as they are spelled."""
    number = lambda spelled: ("number", spelled)  # noqa: E731
    return json.loads(text, parse_int=number, parse_float=number, object_pairs_hook=once)


def require(holds, what):
    if not holds:
        raise ValueError(what)


def proven(entry, entry_as_spelled, keys):
    """What an entry of the receipt proves, as its record and its checkpoint. Raises ValueError, and others like it."""
    line, checkpoint = entry["line"], entry["checkpoint"]
    require(checkpoint["format"] == CHECKPOINT, "it has no checkpoint that this program knows")
    require(checkpoint["key"] in keys, f"it was signed with another key: {checkpoint['key']}")
    signature = base64.b64decode(entry["signature"], validate=True)
    text = canonical(checkpoint).encode()
    require(is_signed(keys[checkpoint["key"]], signature, text), "the signature does not fit the checkpoint")
    leaf = hashlib.sha256(b"\0" + line.encode()).digest()
    path = [bytes.fromhex(one) for one in entry["path"]]
    root = root_by_path(leaf, entry["index"], checkpoint["lines"], path)
    require(root is not None and root.hex() == checkpoint["root"], "the line is not one of those that were signed")
    require(exactly(line) == entry_as_spelled["record"], "the record is not that of the line")
    return json.loads(line), checkpoint


def main(arguments):
    if len(arguments) != 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    try:
        with open(arguments[0], encoding="utf-8") as file:
            text = file.read()
        with open(arguments[1], encoding="utf-8") as file:
            keys = public_keys(file.read())
    except (OSError, ValueError) as error:
        print(f"cannot be read: {error}", file=sys.stderr)
        return 2
    if not keys:
        print(f"{arguments[1]}: has no public Ed25519 key", file=sys.stderr)
        return 2
    try:
        receipt, spelled = json.loads(text, object_pairs_hook=once), exactly(text)
        require(receipt["format"] == RECEIPT, "it is not a receipt that this program knows")
        require(receipt["records"], "it has no records")
        for number, entry in enumerate(receipt["records"]):
            record, checkpoint = proven(entry, spelled["records"][number], keys)
            require(record["call"] == receipt["call"], "a record is of another call")
            print(sentence(record, checkpoint))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        print(visible(f"{arguments[0]}: NOT PROVEN: {what}"))
        return 1
    return 0


def sentence(record, checkpoint):
    who = record.get("user", "?")
    what = f"{record.get('server')}/{record.get('tool')}: {record.get('decision') or 'none'}, {record.get('result')}"
    where = f"checkpoint {checkpoint['number']} of {checkpoint['host']}:{checkpoint['path']} ({checkpoint['time']})"
    return visible(f"proven: {record.get('time')} {who} {what}; {where}, signed by {checkpoint['key']}")


def visible(text):
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
