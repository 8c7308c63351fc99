/* registry/checksum.c: see checksum.h. By the processor's instruction where there is one, since gigabytes go through
 * here (hal/store); else half a byte at a time, by a table of 64 bytes. */
#include "registry/checksum.h"

#include <stdbool.h>
#include <string.h>

/* Below it, finding out about the instruction would cost more than it saves. */
enum { MANY = 4096 };

#if defined __x86_64__ && defined __GNUC__
#include <cpuid.h>

/* SSE 4.2 has an instruction for this very polynomial. */
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t sum, const unsigned char *at, size_t count)
{
    uint64_t wide = sum, word = 0;
    for (; count >= sizeof word; at += sizeof word, count -= sizeof word) {
        memcpy(&word, at, sizeof word);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    sum = (uint32_t)wide;
    for (; count > 0; at++, count--) {
        sum = __builtin_ia32_crc32qi(sum, *at);
    }
    return sum;
}

/* Not by __builtin_cpu_supports(), which would have code run when the library is loaded. */
static bool has_instruction(void)
{
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2);
}
#else
static uint32_t by_instruction(uint32_t sum, const unsigned char *at, size_t count)
{
    (void)at, (void)count;
    return sum;
}

static bool has_instruction(void)
{
    return false;
}
#endif

static uint32_t by_table(uint32_t sum, const unsigned char *at, size_t count)
{
    /* Remainders of 0 to 15 by the reflected polynomial 0x82f63b78. */
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    for (size_t i = 0; i < count; i++) {
        sum ^= at[i];
        sum = sum >> 4 ^ table[sum & 15];
        sum = sum >> 4 ^ table[sum & 15];
    }
    return sum;
}

uint32_t gpuhal_checksum(uint32_t before, const void *bytes, size_t count)
{
    return ~(count >= MANY && has_instruction() ? by_instruction(~before, bytes, count)
                                                : by_table(~before, bytes, count));
}
