# cython: language_level=3
"""The Arrow C data interface: its structs, and the memory that they hold."""
from libc.stdint cimport int64_t

cdef enum:
    NULLABLE = 2  # ARROW_FLAG_NULLABLE


cdef extern from *:
    """
    #ifndef ARROW_C_DATA_INTERFACE
    #define ARROW_C_DATA_INTERFACE
    #include <stdint.h>
    struct ArrowSchema {
      const char* format;
      const char* name;
      const char* metadata;
      int64_t flags;
      int64_t n_children;
      struct ArrowSchema** children;
      struct ArrowSchema* dictionary;
      void (*release)(struct ArrowSchema*);
      void* private_data;
    };
    struct ArrowArray {
      int64_t length;
      int64_t null_count;
      int64_t offset;
      int64_t n_buffers;
      int64_t n_children;
      const void** buffers;
      struct ArrowArray** children;
      struct ArrowArray* dictionary;
      void (*release)(struct ArrowArray*);
      void* private_data;
    };
    #endif
    """
    ctypedef struct ArrowSchema "struct ArrowSchema":
        const char* format
        const char* name
        const char* metadata
        int64_t flags
        int64_t n_children
        ArrowSchema** children
        ArrowSchema* dictionary
        void (*release)(ArrowSchema*) noexcept nogil
        void* private_data

    ctypedef struct ArrowArray "struct ArrowArray":
        int64_t length
        int64_t null_count
        int64_t offset
        int64_t n_buffers
        int64_t n_children
        const void** buffers
        ArrowArray** children
        ArrowArray* dictionary
        void (*release)(ArrowArray*) noexcept nogil
        void* private_data


cdef ArrowSchema* new_schema(bytes format, bytes name, bint is_nullable, Py_ssize_t children) except NULL
cdef ArrowArray* new_array(int64_t buffers, int64_t children) noexcept nogil
cdef void free_schema(ArrowSchema* schema) noexcept nogil
cdef void free_array(ArrowArray* array) noexcept nogil
cdef object schema_capsule(ArrowSchema* schema)
cdef object array_capsule(ArrowArray* array)
