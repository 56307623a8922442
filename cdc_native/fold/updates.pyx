# cython: language_level=3
"""Raw messages of plain rows, decoded as far as the fold needs them before it merges their rows.

Python oracle: cdc_common.messages.raw.decode, cassandra_storage.formats.rows.partition_update, materializer.fold.update_check.

It takes messages of one regular row that is written under the newest schema.
"""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcmp, memcpy

from cdc_native.formats.constants cimport (
    END_OF_PARTITION,
    HAS_ROW_ESTIMATE,
    KIND_ROW,
    KIND_SNAPSHOT_ROW,
    LOG_VERSION,
    SNAPSHOT_VERSION,
    WIRE_HEADER_SIZE,
)
from cdc_native.formats.buffers cimport (
    Bytes,
    Cursor,
    Writer,
    read_byte,
    read_int,
    read_unsigned_vint,
    take,
    write_byte,
    write_bytes,
)
from cdc_native.formats.keys cimport write_component
from cdc_native.fold.plan cimport ColumnList, Plan
from cdc_native.fold.row_times cimport first_end, largest_timestamp
from cdc_native.formats.rows cimport Row, Shape, free_row, is_empty, read_row, read_stats, set_version
from cdc_native.formats.texts cimport is_utf8

cdef enum:
    _REPAIR_SIZE = 7


cdef class _Scratch:
    """A row and a key while a chunk is decoded."""

    cdef Row row
    cdef Writer key

    def __cinit__(self):
        self.row.cells = NULL
        self.row.used = self.row.capacity = 0
        self.key.data = NULL
        self.key.size = self.key.capacity = 0
        self.key.is_bad = False

    def __dealloc__(self):
        free_row(&self.row)
        free(self.key.data)


@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class PlainUpdate:
    """An update of one row that the core can fold; or a Python update in its place in the write order (`python`).

    It also is a materializer.records.Arrival: its message is read when it is asked for. It has no reference to anything
    that may refer to it.
    """

    @property
    def message(self):
        """cdc_common.messages.raw.RawMessage."""
        return self.read_message(self.record)

    @property
    def order(self) -> tuple:
        """materializer.records.Order."""
        return self.timestamp, (<const char*>self.host)[:16], self.segment, self.position, self.index

    def host_bytes(self) -> bytes:
        return (<const char*>self.host)[:16]

    @property
    def file(self) -> str:
        """The segment's name."""
        return self.raw[self.file_start : self.file_start + self.file_size].decode()

    def __iter__(self):
        return iter((self.record, self.message, self.arrival_ms))

    def __lt__(self, PlainUpdate other not None):
        cdef int order
        if self.timestamp != other.timestamp:
            return self.timestamp < other.timestamp
        order = memcmp(self.host, other.host, 16)
        if order:
            return order < 0
        if self.segment != other.segment:
            return self.segment < other.segment
        if self.position != other.position:
            return self.position < other.position
        return self.index < other.index


cdef bint is_same_mutation(PlainUpdate left, PlainUpdate right) noexcept:
    """Whether two updates are of one mutation and one Cassandra partition, and are folded at one second."""
    if left.second != right.second or left.position != right.position or left.segment != right.segment:
        return False
    return memcmp(left.host, right.host, 16) == 0 and left.partition_key == right.partition_key


cdef inline int64_t _read_avro_long(Cursor* c) noexcept nogil:
    """Of at most 64 bits."""
    cdef uint64_t value = 0
    cdef int shift = 0
    cdef uint8_t byte
    while True:
        byte = read_byte(c)
        if c.is_bad or (shift == 63 and byte > 1):
            c.is_bad = True
            return 0
        value |= <uint64_t>(byte & 0x7F) << shift
        if byte < 0x80:
            return <int64_t>(value >> 1) ^ -<int64_t>(value & 1)
        shift += 7


cdef inline Bytes _take_avro_bytes(Cursor* c, int64_t* size) noexcept nogil:
    size[0] = _read_avro_long(c)
    if size[0] < 0:
        c.is_bad = True
    return take(c, <uint64_t>size[0])


cdef inline Bytes _take_id(Cursor* c) noexcept nogil:
    """An id of 16 bytes."""
    cdef int64_t size = 0
    cdef Bytes at = _take_avro_bytes(c, &size)
    if size != 16:
        c.is_bad = True
    return at


cdef struct _Boundary:
    # What the host's log has up to this place is the Python code's.
    uint8_t host[16]
    int64_t segment
    int64_t position


cdef class _Boundaries:
    """The hosts that have truncated the table; `may_take_others`: messages of all other hosts may be taken."""

    cdef _Boundary* all
    cdef Py_ssize_t count
    cdef bint may_take_others

    def __cinit__(self, list hosts not None, bint may_take_others):
        cdef bytes host
        cdef Py_ssize_t i
        self.may_take_others = may_take_others
        self.all = <_Boundary*>calloc(<size_t>len(hosts) or 1, sizeof(_Boundary))
        if self.all == NULL:
            raise MemoryError
        for i in range(len(hosts)):
            host, self.all[i].segment, self.all[i].position = hosts[i]
            if len(host) != 16:
                raise ValueError("a host id that has not 16 bytes")
            memcpy(self.all[i].host, PyBytes_AS_STRING(host), 16)
        self.count = len(hosts)

    def __dealloc__(self):
        free(self.all)

    cdef bint has_left(self, PlainUpdate update) noexcept:
        """Whether the Python code must look at the update."""
        cdef Py_ssize_t i
        cdef const _Boundary* boundary
        for i in range(self.count):
            boundary = &self.all[i]
            if memcmp(boundary.host, update.host, 16) == 0:
                if update.is_snapshot:
                    return True
                if update.segment != boundary.segment:
                    return update.segment < boundary.segment
                return update.position <= boundary.position
        return not self.may_take_others


def decode(
    Plan plan not None, list records not None, list arrival_times_ms not None, read_message, list truncated not None,
    bint may_take_others,
) -> list:
    """Decode each record to a PlainUpdate, or to None if the Python code must decode it.

    records: materializer.records.RawRecord, with their arrival times (ms). read_message: of a record, when it is asked
    for. truncated, may_take_others: materializer.fold.truncations.Truncations.native_boundaries.
    """
    cdef _Scratch scratch = _Scratch.__new__(_Scratch)
    cdef _Boundaries boundaries = _Boundaries(truncated, may_take_others)
    cdef list found = []
    cdef Py_ssize_t i
    if len(arrival_times_ms) != len(records):
        raise ValueError(f"{len(arrival_times_ms)} arrival times of {len(records)} records")
    for i in range(len(records)):
        found.append(_decode(plan, records[i], arrival_times_ms[i], read_message, scratch, boundaries))
    return found


cdef PlainUpdate _decode(
    Plan plan, record, int64_t arrival_ms, read_message, _Scratch scratch, _Boundaries boundaries
):
    cdef Cursor c, u
    cdef PlainUpdate update
    cdef bytes key = record[0], raw = record[1]
    cdef Bytes start, place
    cdef int64_t size = 0, version
    if key is None or raw is None:
        raise TypeError("a record without a key or a value")
    start = <Bytes>PyBytes_AS_STRING(raw)
    c.at, c.end, c.is_bad = start, start + PyBytes_GET_SIZE(raw), False
    if PyBytes_GET_SIZE(raw) < WIRE_HEADER_SIZE + 2 or start[0] != 0:
        return None
    update = PlainUpdate.__new__(PlainUpdate)
    update.is_snapshot = start[WIRE_HEADER_SIZE] == SNAPSHOT_VERSION << 1 and start[WIRE_HEADER_SIZE + 1] == KIND_SNAPSHOT_ROW << 1
    if not update.is_snapshot and (start[WIRE_HEADER_SIZE] != LOG_VERSION << 1 or start[WIRE_HEADER_SIZE + 1] != KIND_ROW << 1):
        return None
    c.at += WIRE_HEADER_SIZE + 2
    u.at = _take_avro_bytes(&c, &size)
    u.end, u.is_bad = c.at, False
    version = _read_avro_long(&c)
    place = _take_id(&c)
    if c.is_bad or not set_version(&update.header, version):
        return None
    if memcmp(place, PyBytes_AS_STRING(plan.table_id), 16):
        return None
    place = _take_id(&c)
    if c.is_bad or memcmp(place, PyBytes_AS_STRING(plan.digest), 16):
        return None
    _read_avro_long(&c)  # the truncation epoch
    place = _take_id(&c)
    if c.is_bad:
        return None
    memcpy(update.host, place, 16)
    update.segment = _read_avro_long(&c)
    place = _take_avro_bytes(&c, &update.file_size)
    update.file_start = place - start
    update.position = _read_avro_long(&c)
    update.index = _read_avro_long(&c)
    _read_avro_long(&c)
    _read_avro_long(&c)
    _read_avro_long(&c)
    if c.is_bad or c.at != c.end or not is_utf8(place, <uint64_t>update.file_size):
        return None
    if boundaries.has_left(update) or (update.is_snapshot and _is_of_repair(place, update.file_size)):
        return None
    if not _decode_row(plan, update, &u, start, key, scratch):
        return None
    update.record, update.raw, update.partition_key, update.arrival_ms = record, raw, key, arrival_ms
    update.table_id = plan.table_id
    update.read_message = read_message
    return update


cdef inline bint _is_of_repair(Bytes file, int64_t size) noexcept nogil:
    """Whether an image was sent for a repair (cdc_common.messages.repairs.file_name)."""
    return size >= _REPAIR_SIZE and memcmp(file, b"repair-", _REPAIR_SIZE) == 0


cdef bint _decode_row(Plan plan, PlainUpdate update, Cursor* u, Bytes start, bytes key, _Scratch scratch) except -1:
    """A PartitionUpdate of the partition `key` with one row; False if it is the Python code's."""
    cdef Bytes place = take(u, 16)
    cdef uint64_t size
    if u.is_bad or memcmp(place, PyBytes_AS_STRING(plan.table_id), 16):
        return False
    size = read_unsigned_vint(u)
    place = take(u, size)
    if u.is_bad or size != <uint64_t>PyBytes_GET_SIZE(key) or memcmp(place, PyBytes_AS_STRING(key), size):
        return False
    if read_byte(u) != HAS_ROW_ESTIMATE or not read_stats(u, &update.header):
        return False
    update.columns = _read_columns(plan, u)
    if update.columns is None or read_int(u) < 0 or u.is_bad:
        return False
    update.header.columns = &update.columns.columns
    update.row_start = u.at - start
    if not read_row(u, &plan.rows, &update.header, &scratch.row) or is_empty(&scratch.row):
        return False
    update.row_end = u.at - start
    if read_byte(u) != END_OF_PARTITION or u.is_bad or u.at != u.end:
        return False
    update.largest_timestamp = largest_timestamp(&plan.rows, &scratch.row)
    update.timestamp = INT64_MAX if update.is_snapshot else update.largest_timestamp
    update.first_end = first_end(&plan.rows, &scratch.row)
    update.key = _row_key(plan, key, &scratch.row, &scratch.key)
    return update.key is not None


cdef ColumnList _read_columns(Plan plan, Cursor* u):
    """The columns that the header names. The bytes end themselves, so a list that they begin with is the one."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(plan.latest)
    cdef Bytes first = u.at
    cdef uint64_t count, i
    cdef bytes names
    if u.end - u.at >= size and memcmp(u.at, PyBytes_AS_STRING(plan.latest), <size_t>size) == 0:
        u.at += size
        return plan.latest_list
    count = read_unsigned_vint(u)
    if u.is_bad or count > <uint64_t>(u.end - u.at):
        return None
    for i in range(count):
        take(u, read_unsigned_vint(u))
    if u.is_bad:
        return None
    names = PyBytes_FromStringAndSize(<const char*>first, u.at - first)
    found = plan.columns_of(names)
    if found is not None:
        plan.latest, plan.latest_list = names, found
    return found


cdef bytes _row_key(Plan plan, bytes partition_key, const Row* row, Writer* key):
    """materializer.rows.keys: p <partition> 3 <clustering>; None if the Python code must make it."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(partition_key)
    cdef int i
    cdef const Shape* shape = &plan.rows
    if size > 0x7FFFFFFF:
        return None
    key.size = 0
    write_byte(key, 0x70)
    for i in range(4):
        write_byte(key, <uint8_t>(size >> (24 - 8 * i)))
    write_bytes(key, <Bytes>PyBytes_AS_STRING(partition_key), <size_t>size)
    write_byte(key, 3)
    for i in range(shape.clusterings):
        if not write_component(
            key, &plan.clustering_keys[i], row.values[i].at, row.values[i].size, row.values[i].is_null
        ):
            return None
    write_byte(key, 0x38)
    if key.is_bad:
        raise MemoryError
    return PyBytes_FromStringAndSize(<const char*>key.data, <Py_ssize_t>key.size)


def wrap(update, bytes key) -> PlainUpdate:
    """A materializer.records.RowUpdate, which the Python code must fold, for in_write_order. key: of its row, if any."""
    cdef PlainUpdate wrapped = PlainUpdate.__new__(PlainUpdate)
    cdef bytes host
    wrapped.timestamp, host, wrapped.segment, wrapped.position, wrapped.index = update.order
    if len(host) != 16:
        raise ValueError("a host id that has not 16 bytes")
    memcpy(wrapped.host, PyBytes_AS_STRING(host), 16)
    wrapped.python, wrapped.partition_key, wrapped.raw = update, update.partition_key, update.raw
    wrapped.arrival_ms, wrapped.key, wrapped.is_snapshot = update.arrival_ms, key, update.is_snapshot
    if wrapped.partition_key is None or wrapped.raw is None:
        raise TypeError("an update without a partition key or a message")
    wrapped.first_end = INT64_MAX
    return wrapped


def in_write_order(list updates not None, int64_t start_ms, int64_t clock_ms) -> None:
    """Sort PlainUpdates into write order, and give each its second.

    That is the second of its arrival or, if that is earlier, of an update of its Cassandra partition that belongs after
    it, and the clock's for a snapshot's; as materializer.fold.reorder.release_in_write_order without a buffer.
    """
    cdef PlainUpdate update
    cdef dict earliest = {}
    cdef int64_t time_ms
    cdef Py_ssize_t i
    updates.sort()
    for i in range(len(updates) - 1, -1, -1):
        update = <PlainUpdate?>updates[i]
        if update.is_snapshot:
            update.second = clock_ms // 1000
            continue
        time_ms = min(clock_ms, update.arrival_ms)
        found = earliest.get(update.partition_key)
        if found is None or time_ms < <int64_t>found:
            earliest[update.partition_key] = time_ms
        else:
            time_ms = found
        update.second = max(time_ms, start_ms) // 1000


def of_new_hosts(list arrivals not None) -> list:
    """The arrivals but those of PlainUpdates that are a snapshot's or whose host had an earlier one: what
    PublisherWatermarks must see.
    """
    cdef set hosts = set()
    cdef list found = []
    cdef bytes latest = b""
    for arrival in arrivals:
        if type(arrival) is PlainUpdate:
            if (<PlainUpdate>arrival).is_snapshot:
                continue
            if memcmp((<PlainUpdate>arrival).host, PyBytes_AS_STRING(latest), 16 if latest else 0) == 0 and latest:
                continue
            latest = (<const char*>(<PlainUpdate>arrival).host)[:16]
            if latest in hosts:
                continue
            hosts.add(latest)
        found.append(arrival)
    return found


def mutation_end(list updates not None, Py_ssize_t at) -> int:
    """The index after the updates of the mutation at an index, of one Cassandra partition."""
    cdef Py_ssize_t end = at + 1
    if not 0 <= at < len(updates):
        raise IndexError(at)
    while end < len(updates) and is_same_mutation(<PlainUpdate?>updates[at], <PlainUpdate?>updates[end]):
        end += 1
    return end
