"""Schemas and arrays of the Arrow C data interface, which whoever takes them gives back. No Arrow library is linked.

Python oracle: pyarrow.RecordBatch.
"""
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_New
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy


cdef ArrowSchema* new_schema(bytes format, bytes name, bint is_nullable, Py_ssize_t children) except NULL:
    """A schema with room for its children; free_schema frees it and them."""
    cdef ArrowSchema* made = <ArrowSchema*>calloc(1, sizeof(ArrowSchema))
    if made == NULL:
        raise MemoryError
    made.release = _release_schema
    made.format, made.name = _copy(format), _copy(name)
    made.flags = NULLABLE if is_nullable else 0
    made.children = <ArrowSchema**>calloc(<size_t>(children or 1), sizeof(ArrowSchema*))
    if made.format == NULL or made.name == NULL or made.children == NULL:
        free_schema(made)
        raise MemoryError
    made.n_children = children
    return made


cdef char* _copy(bytes text) noexcept:
    cdef size_t size = <size_t>PyBytes_GET_SIZE(text) + 1
    cdef char* made = <char*>malloc(size)
    if made != NULL:
        memcpy(made, PyBytes_AS_STRING(text), size)
    return made


cdef void _release_schema(ArrowSchema* schema) noexcept nogil:
    """Frees what a schema holds, which may have been moved elsewhere."""
    cdef int64_t i
    for i in range(schema.n_children):
        if schema.children[i] != NULL:
            free_schema(schema.children[i])
    free(schema.children)
    free(<void*>schema.format)
    free(<void*>schema.name)
    schema.release = NULL


cdef void free_schema(ArrowSchema* schema) noexcept nogil:
    if schema.release != NULL:
        schema.release(schema)
    free(schema)


cdef ArrowArray* new_array(int64_t buffers, int64_t children) noexcept nogil:
    """An array with room for its buffers, which malloc made, and children; NULL without memory."""
    cdef ArrowArray* made = <ArrowArray*>calloc(1, sizeof(ArrowArray))
    if made == NULL:
        return NULL
    made.release = _release_array
    made.buffers = <const void**>calloc(<size_t>(buffers if buffers else 1), sizeof(void*))
    made.children = <ArrowArray**>calloc(<size_t>(children if children else 1), sizeof(ArrowArray*))
    if made.buffers == NULL or made.children == NULL:
        free_array(made)
        return NULL
    made.n_buffers, made.n_children = buffers, children
    return made


cdef void _release_array(ArrowArray* array) noexcept nogil:
    cdef int64_t i
    for i in range(array.n_children):
        if array.children[i] != NULL:
            free_array(array.children[i])
    for i in range(array.n_buffers):
        free(<void*>array.buffers[i])
    free(array.children)
    free(array.buffers)
    array.release = NULL


cdef void free_array(ArrowArray* array) noexcept nogil:
    if array.release != NULL:
        array.release(array)
    free(array)


cdef object schema_capsule(ArrowSchema* schema):
    """A capsule that owns it."""
    try:
        return PyCapsule_New(schema, b"arrow_schema", _destroy_schema)
    except BaseException:
        free_schema(schema)
        raise


cdef object array_capsule(ArrowArray* array):
    try:
        return PyCapsule_New(array, b"arrow_array", _destroy_array)
    except BaseException:
        free_array(array)
        raise


cdef void _destroy_schema(object capsule) noexcept:
    free_schema(<ArrowSchema*>PyCapsule_GetPointer(capsule, b"arrow_schema"))


cdef void _destroy_array(object capsule) noexcept:
    free_array(<ArrowArray*>PyCapsule_GetPointer(capsule, b"arrow_array"))
