/* registry/checksum.c: see checksum.h. Uses the CRC instruction if available, since hal/store checksums gigabytes.
 * Otherwise processes half a byte at a time with a table of 64 bytes.
 *
 * A sum is the remainder of a polynomial division by the polynomial below; bit 31 is the coefficient of x^0. Each
 * following byte multiplies the sum by x^8. The sum of two adjacent blocks is therefore the first block's sum,
 * multiplied by x^8 for each byte of the second block, plus the second block's sum. Blocks may be processed in any
 * order or concurrently.
 */
#include "registry/checksum.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78)
#define ONE        (UINT32_C(1) << 31)

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (uint32_t bit = ONE; bit; bit >>= 1) {
        product ^= a & bit ? b : 0;
        b = b & 1 ? b >> 1 ^ POLYNOMIAL : b >> 1;
    }
    return product;
}

static uint32_t power_of(uint64_t bytes)
{
    uint32_t power = ONE, factor = ONE >> 8;
    for (; bytes; bytes >>= 1) {
        power = bytes & 1 ? multiply(factor, power) : power;
        factor = multiply(factor, factor);
    }
    return power;
}

uint32_t gpuhal_checksum_shift(uint32_t sum, uint64_t bytes)
{
    return bytes ? multiply(power_of(bytes), sum) : sum;
}

#if defined __x86_64__ && defined __GNUC__
#include <cpuid.h>

/* Processes three blocks at a time, because the instruction has a latency of three cycles and a throughput of one per
 * cycle. Three blocks are slightly less than 64 KiB, since most callers pass a multiple of 64 KiB. */
enum { STRETCH = 21840 };
#define STRETCH_POWER UINT32_C(0xb060d9b5) /* power_of(STRETCH) */

__attribute__((target("sse4.2"))) static uint32_t three_stretches(uint32_t sum, const unsigned char *at)
{
    uint64_t first = sum, second = 0, third = 0, words[3];
    for (size_t i = 0; i < STRETCH; i += sizeof *words) {
        memcpy(&words[0], at + i, sizeof *words);
        memcpy(&words[1], at + i + STRETCH, sizeof *words);
        memcpy(&words[2], at + i + 2 * (size_t)STRETCH, sizeof *words);
        first = __builtin_ia32_crc32di(first, words[0]);
        second = __builtin_ia32_crc32di(second, words[1]);
        third = __builtin_ia32_crc32di(third, words[2]);
    }
    const uint32_t both = multiply(STRETCH_POWER, (uint32_t)first) ^ (uint32_t)second;
    return multiply(STRETCH_POWER, both) ^ (uint32_t)third;
}

/* The SSE 4.2 instruction uses exactly this polynomial. */
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t sum, const unsigned char *at, size_t count)
{
    for (; count >= 3 * (size_t)STRETCH; at += 3 * (size_t)STRETCH, count -= 3 * (size_t)STRETCH) {
        sum = three_stretches(sum, at);
    }
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

/* Avoids __builtin_cpu_supports(), which would run code when the library is loaded. The result is cached, because in a
 * virtual machine the CPUID instruction takes as long as checksumming 100 KiB. */
static bool has_instruction(void)
{
    enum { UNKNOWN, ABSENT, PRESENT };
    static _Atomic int known;
    int state = atomic_load_explicit(&known, memory_order_relaxed);
    if (state == UNKNOWN) {
        unsigned a = 0, b = 0, c = 0, d = 0;
        state = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) ? PRESENT : ABSENT;
        atomic_store_explicit(&known, state, memory_order_relaxed);
    }
    return state == PRESENT;
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
    /* Remainders of the values 0 to 15. */
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
    return ~(has_instruction() ? by_instruction(~before, bytes, count) : by_table(~before, bytes, count));
}
