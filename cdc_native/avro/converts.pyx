"""Conversions of the encoding of a value.

Python oracle: transformer.steps.converts.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free

from cdc_native.avro.sha256 cimport DIGEST_SIZE, Hmac, authenticate, is_available, set_key
from cdc_native.formats.buffers cimport (
    Bytes,
    Cursor,
    Writer,
    read_avro_long,
    reserve,
    write_avro_long,
    write_byte,
    write_bytes,
)

cdef enum Kind:
    CONSTANT
    TEXT
    HASH
    NAME
    BIT

cdef enum Lift:
    WHOLE     # the value is converted, and makes a value
    NULLABLE  # the value is converted, and makes a value or null
    BRANCHES  # a union: null stays null

cdef enum Unknown:
    REFUSE
    MAKE_NULL
    KEEP

cdef enum Made:
    VALUE_MADE
    NULL_MADE
    REFUSED

cdef dict _KINDS = {"constant": CONSTANT, "text": TEXT, "hash": HASH, "name": NAME, "bit": BIT}
cdef dict _LIFTS = {"whole": WHOLE, "nullable": NULLABLE, "branches": BRANCHES}
cdef dict _UNKNOWN = {"stop": REFUSE, "null": MAKE_NULL, "keep": KEEP}


cdef class Converts:
    """All conversions of a rewrite, in the forms that transformer.steps.converts makes. ValueError for one that the
    core cannot do here: `hash` without OpenSSL.
    """

    def __cinit__(self, list forms not None):
        cdef Py_ssize_t i, hashes = 0, names = 0
        for form in forms:
            hashes += form[0] == "hash"
            names += len(form[4]) if form[0] == "name" else 0
        if hashes and not is_available():
            raise ValueError("OpenSSL's SHA-256 is not found")
        self._kept = []
        self.items = <Convert*>calloc(<size_t>(len(forms) or 1), sizeof(Convert))
        self._hmacs = <Hmac*>calloc(<size_t>(hashes or 1), sizeof(Hmac))
        self.names = <Name*>calloc(<size_t>(names or 1), sizeof(Name))
        if self.items == NULL or self._hmacs == NULL or self.names == NULL:
            raise MemoryError
        hashes = 0
        for i, form in enumerate(forms):
            self._fill(<int>i, form, <int>hashes)
            hashes += form[0] == "hash"
        self.count = <int>len(forms)

    def __dealloc__(self):
        free(self.items)
        free(self._hmacs)
        free(self.names)

    cdef int _fill(self, int at, object form, int hmac_at) except -1:
        """form: (kind, lift, null's branch or -1, whether one branch is left, argument, argument)."""
        cdef Convert* made = &self.items[at]
        cdef Name* name
        cdef bytes text
        kind, lift, null_at, is_single, argument, more = form
        made.kind, made.lift, made.null_at, made.is_single = _KINDS[kind], _LIFTS[lift], null_at, is_single
        if kind == "constant" or kind == "text":
            text = argument
            self._kept.append(text)
            made.text, made.size = <Bytes>PyBytes_AS_STRING(text), <size_t>PyBytes_GET_SIZE(text)
        elif kind == "hash":
            made.hmac = &self._hmacs[hmac_at]
            set_key(made.hmac, argument)
        elif kind == "name":
            made.first, made.count, made.unknown = self._name_count, <int>len(argument), _UNKNOWN[more]
            for number, text in sorted(argument.items()):
                self._kept.append(text)
                name = &self.names[self._name_count]
                name.number = number
                name.text, name.size = <Bytes>PyBytes_AS_STRING(text), <size_t>PyBytes_GET_SIZE(text)
                self._name_count += 1
        else:
            made.mask, made.every, made.refused = argument, more[0], more[1]
        return 0

    cdef bint run(self, int first, int count, Bytes value, size_t size, Writer* out, Writer* spare) noexcept nogil:
        """Write what `count` conversions in a row make of a value; False if one refuses it.

        spare: two writers between them, whose memory is kept.
        """
        cdef int i
        cdef Writer* target
        for i in range(count):
            target = out
            if i < count - 1:
                target = &spare[i & 1]
                target.size = 0
            if not _convert(self.names, &self.items[first + i], value, size, target):
                return False
            if target.is_bad:
                return True  # which its owner sees
            value, size = target.data, target.size
        return True


cdef bint _convert(const Name* names, const Convert* convert, Bytes value, size_t size, Writer* out) noexcept nogil:
    cdef Cursor c
    cdef int64_t branch
    cdef size_t start = out.size
    cdef Made made
    if convert.kind == CONSTANT:
        write_bytes(out, convert.text, convert.size)
        return not out.is_bad
    if convert.lift == BRANCHES:
        c.at, c.end, c.is_bad = value, value + size, False
        branch = read_avro_long(&c)
        if c.is_bad:
            return False
        if branch == convert.null_at:
            write_byte(out, 0)
            return True
        if convert.is_single:
            value, size = c.at, <size_t>(c.end - c.at)
    if convert.lift != WHOLE:
        write_byte(out, 2)
    made = _convert_value(names, convert, value, size, out)
    if made == NULL_MADE:
        if convert.lift == WHOLE:
            return False
        out.size = start
        write_byte(out, 0)
    return made != REFUSED


cdef Made _convert_value(const Name* names, const Convert* convert, Bytes value, size_t size, Writer* out) noexcept nogil:
    cdef Cursor c
    cdef int64_t number
    if convert.kind == TEXT:
        write_bytes(out, convert.text, convert.size)
        return VALUE_MADE
    if convert.kind == HASH:
        _write_hash(convert.hmac, value, size, out)
        return VALUE_MADE
    c.at, c.end, c.is_bad = value, value + size, False
    number = read_avro_long(&c)
    if c.is_bad or c.at != c.end:
        return REFUSED
    if convert.kind == NAME:
        return _write_name(&names[convert.first], convert, number, out)
    if <uint64_t>number & convert.every & convert.refused:
        return REFUSED
    write_byte(out, (<uint64_t>number & convert.every & convert.mask) != 0)
    return VALUE_MADE


cdef void _write_hash(const Hmac* hmac, Bytes value, size_t size, Writer* out) noexcept nogil:
    """An Avro string of the digest in hexadecimal."""
    cdef uint8_t digest[DIGEST_SIZE]
    cdef const char* digits = b"0123456789abcdef"
    cdef int i
    authenticate(hmac, value, size, digest)
    write_avro_long(out, 2 * DIGEST_SIZE)
    if reserve(out, 2 * DIGEST_SIZE):
        for i in range(DIGEST_SIZE):
            out.data[out.size + 2 * i] = <uint8_t>digits[digest[i] >> 4]
            out.data[out.size + 2 * i + 1] = <uint8_t>digits[digest[i] & 15]
        out.size += 2 * DIGEST_SIZE


cdef Made _write_name(const Name* names, const Convert* convert, int64_t number, Writer* out) noexcept nogil:
    """The name of a number, by bisection."""
    cdef int low = 0, high = convert.count, middle
    while low < high:
        middle = (low + high) >> 1
        if names[middle].number < number:
            low = middle + 1
        else:
            high = middle
    if low < convert.count and names[low].number == number:
        write_bytes(out, names[low].text, names[low].size)
        return VALUE_MADE
    if convert.unknown == MAKE_NULL:
        return NULL_MADE
    if convert.unknown == REFUSE:
        return REFUSED
    _write_decimal(number, out)
    return VALUE_MADE


cdef void _write_decimal(int64_t number, Writer* out) noexcept nogil:
    """An Avro string of the number's decimal digits."""
    cdef uint8_t digits[20]
    cdef uint64_t rest = 0 - <uint64_t>number if number < 0 else <uint64_t>number
    cdef int at = 20
    while True:
        at -= 1
        digits[at] = <uint8_t>(48 + rest % 10)
        rest //= 10
        if rest == 0:
            break
    if number < 0:
        at -= 1
        digits[at] = 45
    write_avro_long(out, 20 - at)
    write_bytes(out, &digits[at], <size_t>(20 - at))
