# cython: language_level=3
"""CRC-32 as java.util.zip.CRC32 and zlib.crc32, eight bytes at a time. A module calls prepare_crc32 once, first."""
from libc.stdint cimport uint8_t, uint32_t

cdef extern from *:
    """
    static uint32_t crc32_tables[8][256];

    static void prepare_crc32(void) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t c = i;
            for (int bit = 0; bit < 8; bit++) c = c >> 1 ^ (c & 1 ? 0xEDB88320u : 0);
            crc32_tables[0][i] = c;
        }
        for (int k = 1; k < 8; k++)
            for (uint32_t i = 0; i < 256; i++) {
                uint32_t c = crc32_tables[k - 1][i];
                crc32_tables[k][i] = crc32_tables[0][c & 0xff] ^ c >> 8;
            }
    }

    static inline uint32_t crc32(uint32_t crc, const uint8_t* p, size_t n) {
        uint32_t c = ~crc;
        for (; n >= 8; p += 8, n -= 8) {
            uint32_t low = c ^ (p[0] | p[1] << 8 | p[2] << 16 | (uint32_t)p[3] << 24);
            c = crc32_tables[7][low & 0xff] ^ crc32_tables[6][low >> 8 & 0xff]
              ^ crc32_tables[5][low >> 16 & 0xff] ^ crc32_tables[4][low >> 24]
              ^ crc32_tables[3][p[4]] ^ crc32_tables[2][p[5]] ^ crc32_tables[1][p[6]] ^ crc32_tables[0][p[7]];
        }
        for (; n; p++, n--) c = crc32_tables[0][(c ^ *p) & 0xff] ^ c >> 8;
        return ~c;
    }
    """
    void prepare_crc32()
    uint32_t crc32(uint32_t crc, const uint8_t* data, size_t size) nogil
