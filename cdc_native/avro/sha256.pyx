"""HMAC-SHA256 by OpenSSL's SHA-256, which is found in the library that Python's hashlib is linked to.

Python oracle: hmac.digest.
"""
import hashlib
import hmac

from libc.stdint cimport uint8_t
from libc.string cimport memset
from posix.dlfcn cimport RTLD_NOW, dlopen, dlsym

from cdc_native.formats.buffers cimport Bytes

cdef enum:
    BLOCK_SIZE = 64

cdef struct Functions:
    int (*init)(State*) noexcept nogil
    int (*update)(State*, const void*, size_t) noexcept nogil
    int (*final)(uint8_t*, State*) noexcept nogil

cdef Functions _openssl
cdef bint _is_found = False


cdef bint is_available() noexcept:
    """Whether OpenSSL's functions were found, and have passed a test."""
    return _is_found


cdef int set_key(Hmac* h, bytes key) except -1:
    """RFC 2104."""
    cdef uint8_t block[BLOCK_SIZE]
    cdef int i
    if len(key) > BLOCK_SIZE:
        key = hashlib.sha256(key).digest()
    memset(h, 0, sizeof(Hmac))
    for i in range(BLOCK_SIZE):
        block[i] = 0x36 ^ (<int>key[i] if i < len(key) else 0)
    _openssl.init(&h.inner)
    _openssl.update(&h.inner, block, BLOCK_SIZE)
    for i in range(BLOCK_SIZE):
        block[i] ^= 0x36 ^ 0x5C
    _openssl.init(&h.outer)
    _openssl.update(&h.outer, block, BLOCK_SIZE)
    return 0


cdef void authenticate(const Hmac* h, Bytes data, size_t size, uint8_t* digest) noexcept nogil:
    cdef State state = h.inner
    _openssl.update(&state, data, size)
    _openssl.final(digest, &state)
    state = h.outer
    _openssl.update(&state, digest, DIGEST_SIZE)
    _openssl.final(digest, &state)


def hmac_sha256(bytes key not None, bytes data not None):
    """The digest, or None without OpenSSL's functions: for tests."""
    cdef Hmac h
    cdef uint8_t digest[DIGEST_SIZE]
    if not _is_found:
        return None
    set_key(&h, key)
    authenticate(&h, <Bytes><const char*>data, <size_t>len(data), digest)
    return digest[:DIGEST_SIZE]


cdef bint _find() except -1:
    """Find the functions. False if this Python's hashlib has no library of its own, or another OpenSSL."""
    cdef void* handle
    cdef bytes path
    try:
        import _hashlib

        path = _hashlib.__file__.encode()
    except (ImportError, AttributeError):  # without OpenSSL, or built into Python
        return False
    handle = dlopen(path, RTLD_NOW)  # never closed: the functions are called until the end
    if handle == NULL:
        return False
    (<void**>&_openssl.init)[0] = dlsym(handle, b"SHA256_Init")
    (<void**>&_openssl.update)[0] = dlsym(handle, b"SHA256_Update")
    (<void**>&_openssl.final)[0] = dlsym(handle, b"SHA256_Final")
    return _openssl.init != NULL and _openssl.update != NULL and _openssl.final != NULL


def _passes():
    """Whether they make what hashlib does."""
    return all(
        hmac_sha256(key, data) == hmac.new(key, data, hashlib.sha256).digest()
        for key in (b"k", b"k" * 65)
        for data in (b"", b"d" * 200)
    )


_is_found = _find()
_is_found = _is_found and _passes()
