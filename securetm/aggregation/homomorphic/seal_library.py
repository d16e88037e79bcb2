"""Microsoft SEAL through `tenseal.sealapi`, for sums alone: encrypt, add, decrypt arrays of residues. It reads no message.

SEAL loads only bytes that are built here from checked residues, never bytes from the network: its loader also accepts
compressed and seeded forms of every object, which are not checked here. The secret key is shared by the parties.
"""

from __future__ import annotations

import os
import struct
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from securetm.aggregation.homomorphic.helper_processes import Work, spread
from securetm.aggregation.homomorphic.parameters import DEGREE, MODULI, SEED, Fit
from securetm.contracts import Array, Entropy
from securetm.data_classes import dataclass
from securetm.entropy import OperatingSystem
from securetm.errors import Mistake

_PLAIN_HEAD = 32 + 8 + 8 + 16 + 8  # parameters' hash, coefficients, scale, inner header, count
_CIPHER_HEAD = 32 + 1 + 8 + 8 + 8 + 8 + 8 + 16 + 8  # ... and form, polynomials, degree, primes, scale, correction
_BLAKE2XB = 1  # how SEAL draws a polynomial from a seed


def seal() -> Any:
    """The library, or an error that says how to install it."""
    try:
        return import_module("tenseal.sealapi")
    except ImportError as problem:
        raise _no_library() from problem


class Code(Protocol):
    """What differs between BFV and CKKS: how whole numbers become a plaintext and come back."""

    name: str
    ntt: bool

    def context_key(self, fit: Fit) -> tuple[str, int, int]:
        """Scheme, modulus, and BFV's plaintext modulus."""

    def scale(self, fit: Fit) -> float:
        """What SEAL notes in each ciphertext."""

    def write(self, context: SealContext, rows: Array, fit: Fit) -> Iterator[Any]:
        """One plaintext a row."""

    def read(self, context: SealContext, plaintext: Any, fit: Fit) -> Array:
        """The row of a plaintext."""


# ---- objects in and out: SEAL reads and writes files only, so one in memory -------------------------------------------


@dataclass(frozen=True)
class MemoryFile:
    """An open file and its path, through which SEAL reads and writes."""

    number: int
    path: str

    def put(self, content: bytes) -> str:
        """Fills the file, and gives its path."""
        os.pwrite(self.number, content, 0)
        os.ftruncate(self.number, len(content))
        return self.path

    def take(self, thing: Any, size: int) -> bytes:
        """What SEAL writes of an object, whose form without compression has `size` bytes."""
        thing.save(self.path)
        whole = os.pread(self.number, 2 * size + 4096, 0)
        how, content = whole[5], whole[16:]
        if how == 0:
            return content
        if how == 1:
            return zlib.decompress(content)
        from pyarrow import Codec

        return bytes(Codec("zstd").decompress(content, size))


@contextmanager
def memory_file() -> Iterator[MemoryFile]:
    """A file for one piece of work and one thread. It lives in memory where the system can, so no secret touches a disk."""
    number, path = (os.memfd_create("securetm"), "") if hasattr(os, "memfd_create") else tempfile.mkstemp(prefix="securetm")
    try:
        yield MemoryFile(number, path or f"/proc/self/fd/{number}")
    finally:
        os.close(number)
        if path:
            os.unlink(path)


@lru_cache(maxsize=1)
def _opening() -> bytes:
    """The first bytes of every object, as the installed SEAL writes them: magic number, header's size, version."""
    with memory_file() as one:
        seal().Plaintext("1").save(one.path)
        return os.pread(one.number, 5, 0)


def _object(content: bytes) -> bytes:
    return _opening() + bytes(3) + struct.pack("<Q", 16 + len(content)) + content


# ---- contexts and keys --------------------------------------------------------------------------------------------------


class SealContext:
    """One set of parameters: what SEAL needs before it encrypts, adds or decrypts."""

    def __init__(self, scheme: str, modulus: int, plain: int, seed: bytes = b"") -> None:
        api = seal()
        parameters = api.EncryptionParameters(getattr(api.SCHEME_TYPE, scheme))
        parameters.set_poly_modulus_degree(DEGREE)
        parameters.set_coeff_modulus([api.Modulus(modulus)])
        if plain:
            parameters.set_plain_modulus(plain)
        if seed:
            parameters.set_random_generator(api.Blake2xbPRNGFactory(list(struct.unpack("<8Q", seed))))
        self.api = api
        self.modulus = modulus
        self.native = api.SEALContext(parameters, False, api.SEC_LEVEL_TYPE.TC128)  # refuses what is below 128 bits
        self.hash = struct.pack("<4Q", *self.native.first_parms_id())

    def plaintext(self, coefficients: Array, into: MemoryFile) -> Any:
        """A BFV plaintext, or a key's polynomial, as SEAL holds it."""
        made = self.api.Plaintext()
        made.load(self.native, into.put(_object(bytes(32) + _polynomial(coefficients))))
        return made

    def ciphertext(self, halves: Sequence[Array], seed: bytes, ntt: bool, scale: float, into: MemoryFile) -> Any:
        """A ciphertext from its two polynomials, or from the first and the seed of the second."""
        data = b"".join(np.ascontiguousarray(half, dtype="<u8").tobytes() for half in halves)
        head = self.hash + struct.pack("<?QQQdQ", ntt, 2, DEGREE, 1, scale, 1)
        whole = head + _object(struct.pack("<Q", len(data) // 8) + data)
        made = self.api.Ciphertext()
        made.load(self.native, into.put(_object(whole + (_object(bytes([_BLAKE2XB]) + seed) if seed else b""))))
        return made

    def polynomials(self, ciphertext: Any, using: MemoryFile) -> tuple[Array, Array]:
        raw = using.take(ciphertext, _CIPHER_HEAD + 16 * DEGREE)
        both = np.frombuffer(raw, "<u8", 2 * DEGREE, _CIPHER_HEAD)
        return both[:DEGREE], both[DEGREE:]

    def coefficients(self, plaintext: Any, using: MemoryFile) -> Array:
        """The coefficients of a plaintext that has all of them."""
        return np.frombuffer(using.take(plaintext, _PLAIN_HEAD + 8 * DEGREE), "<u8", DEGREE, _PLAIN_HEAD)

    def fresh(self, encrypted: Any, using: MemoryFile) -> tuple[Array, bytes]:
        """The first polynomial of a fresh symmetric ciphertext, and the seed of the second."""
        raw = using.take(encrypted, _CIPHER_HEAD + 8 * DEGREE + 16 + 1 + SEED)
        if raw[-SEED - 1] != _BLAKE2XB:
            raise _no_library()
        return np.frombuffer(raw, "<u8", DEGREE, _CIPHER_HEAD), raw[-SEED:]

    def transformed(self, residues: Array, using: MemoryFile, *, back: bool = False) -> Array:
        """The number-theoretic transform of a polynomial, or its inverse. SEAL transforms ciphertexts, so one is made of it."""
        one = np.zeros(DEGREE, dtype="<u8")
        one[0] = 1
        carrier, evaluator = self.ciphertext([residues, one], b"", back, 1.0, using), self.api.Evaluator(self.native)
        (evaluator.transform_from_ntt_inplace if back else evaluator.transform_to_ntt_inplace)(carrier)
        return self.polynomials(carrier, using)[0]

    def secret_key(self, ternary: Array) -> Any:
        """The parties' secret polynomial as a SEAL key under these parameters: transformed, as SEAL keeps it."""
        with memory_file() as using:
            transformed = context_of("BFV", self.modulus, 2).transformed(ternary.astype(np.int64) % self.modulus, using)
            key = self.api.SecretKey()
            key.load(self.native, using.put(_object(self.hash + _polynomial(transformed))))
        return key


@lru_cache(maxsize=64)
def context_of(scheme: str, modulus: int, plain: int) -> SealContext:
    """The parameters, made once: they hold no secret."""
    return SealContext(scheme, modulus, plain)


def _polynomial(coefficients: Array) -> bytes:
    data = np.ascontiguousarray(coefficients, dtype="<u8").tobytes()
    return struct.pack("<Qd", len(coefficients), 1.0) + _object(struct.pack("<Q", len(coefficients)) + data)


def draw_ternary(entropy: Entropy) -> Array:
    """A secret polynomial, coefficients out of -1, 0 and 1, by SEAL's own key generator.

    SEAL draws from the operating system; a seeded entropy (test vectors only) seeds its generator.
    """
    modulus = MODULI[0].value
    seed = b"" if isinstance(entropy, OperatingSystem) else entropy.bytes(64)
    context = SealContext("BFV", modulus, 2, seed)
    with memory_file() as using:
        key = context.api.KeyGenerator(context.native).secret_key()
        residues = context.transformed(context.coefficients(key, using), using, back=True).astype(np.int64)
    return np.where(residues > modulus // 2, residues - modulus, residues)


# ---- the work ------------------------------------------------------------------------------------------------------------


def encrypt(code: Code, fit: Fit, ternary: Array, rows: Array, entropy: Entropy) -> tuple[Array, Array]:
    """Run by a party: each row of whole numbers as a first polynomial and a seed. Nobody without the key reads them."""
    if not isinstance(entropy, OperatingSystem):
        return encrypt_here(code, fit, ternary, rows, entropy)
    work = Work("encrypt", code.name, fit)
    first, seeds = spread(lambda part: encrypt_here(code, fit, ternary, part, entropy), work, ternary, [rows])
    return first, seeds


def decrypt(code: Code, fit: Fit, ternary: Array, first: Array, second: Array) -> Array:
    """Run by a party: the whole numbers behind a sum of ciphertexts."""
    work = Work("decrypt", code.name, fit)
    (rows,) = spread(lambda *part: [decrypt_here(code, fit, ternary, *part)], work, ternary, [first, second])
    return rows


def encrypt_here(code: Code, fit: Fit, ternary: Array, rows: Array, entropy: Entropy) -> tuple[Array, Array]:
    """In this process.

    SEAL draws from the operating system for each ciphertext. A seeded entropy (test vectors only) needs a context for each
    ciphertext: SEAL restarts a seeded generator at each encryption, and two ciphertexts from one seed show their difference.
    """
    context = context_of(*code.context_key(fit))
    first, seeds = np.empty((len(rows), DEGREE), dtype="<u8"), np.empty((len(rows), SEED), dtype=np.uint8)
    encryptor = context.api.Encryptor(context.native, context.secret_key(ternary))
    with memory_file() as using:
        for i, plaintext in enumerate(code.write(context, rows, fit)):
            if not isinstance(entropy, OperatingSystem):
                repeatable = SealContext(*code.context_key(fit), seed=entropy.bytes(64))
                encryptor = repeatable.api.Encryptor(repeatable.native, repeatable.secret_key(ternary))
            first[i], seed = context.fresh(encryptor.encrypt_symmetric(plaintext), using)
            seeds[i] = np.frombuffer(seed, dtype=np.uint8)
    return first, seeds


def decrypt_here(code: Code, fit: Fit, ternary: Array, first: Array, second: Array) -> Array:
    context = context_of(*code.context_key(fit))
    decryptor = context.api.Decryptor(context.native, context.secret_key(ternary))
    rows = np.empty((len(first), DEGREE), dtype=np.int64)
    with memory_file() as using:
        for i in range(len(first)):
            plaintext = context.api.Plaintext()
            held = context.ciphertext([first[i], second[i]], b"", code.ntt, code.scale(fit), using)
            decryptor.decrypt(held, plaintext)
            rows[i] = code.read(context, plaintext, fit)
    return rows


class RunningSum:
    """Run by the coordinator: ciphertexts added as they come, so its memory does not grow with the parties. It holds no key."""

    def __init__(self, code: Code, fit: Fit) -> None:
        self._code, self._fit = code, fit
        self._context = context_of(*code.context_key(fit))
        self._evaluator = self._context.api.Evaluator(self._context.native)
        self._held: list[Any] = []

    def add(self, first: Array, seeds: Array) -> None:
        """One party's ciphertexts, already checked."""
        scale = self._code.scale(self._fit)
        with memory_file() as using:
            for i in range(len(first)):
                fresh = self._context.ciphertext([first[i]], seeds[i].tobytes(), self._code.ntt, scale, using)
                if i < len(self._held):
                    self._evaluator.add_inplace(self._held[i], fresh)
                else:
                    self._held.append(fresh)

    def polynomials(self) -> tuple[Array, Array]:
        first = np.empty((len(self._held), DEGREE), dtype="<u8")
        second = np.empty_like(first)
        with memory_file() as using:
            for i, held in enumerate(self._held):
                first[i], second[i] = self._context.polynomials(held, using)
        return first, second


def _no_library() -> Mistake:
    return Mistake(
        "encrypted sums need the package tenseal, which is not installed here",
        hint="pip install tenseal, or choose the profile masked, which hides the same and needs no such package",
    )
