/* registry/checksum.c: see checksum.h. Half a byte at a time: a table of 64 bytes, and fast enough for files of a
 * megabyte at most. */
#include "registry/checksum.h"

uint32_t gpuhal_checksum(uint32_t before, const void *bytes, size_t count)
{
    /* Remainders of 0 to 15 by the reflected polynomial 0x82f63b78. */
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    const unsigned char *at = bytes;
    uint32_t sum = ~before;
    for (size_t i = 0; i < count; i++) {
        sum ^= at[i];
        sum = sum >> 4 ^ table[sum & 15];
        sum = sum >> 4 ^ table[sum & 15];
    }
    return ~sum;
}
