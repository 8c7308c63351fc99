/* stream/image.h: reads code images, to check that they are not shorter than their headers imply. */
#ifndef GPUHAL_STREAM_IMAGE_H
#define GPUHAL_STREAM_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t number_at(const unsigned char *image, uint64_t offset, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)image[offset + i] << (8 * i);
    }
    return value;
}

static inline bool has_table(uint64_t bytes, uint64_t offset, uint64_t entry, uint64_t count)
{
    return offset <= bytes && entry * count <= bytes - offset;
}

/* Recognises a complete 64-bit ELF file: the header, the segment and section tables, and all sections except those
 * whose type occupies no bytes in the file. */
static inline bool is_elf(const unsigned char *image, uint64_t bytes, bool (*is_in_file)(uint64_t type))
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    if (bytes < 64 || memcmp(image, magic, sizeof magic) != 0) {
        return false;
    }
    const uint64_t table = number_at(image, 40, 8), entry = number_at(image, 58, 2), count = number_at(image, 60, 2);
    if (entry < 64 || !has_table(bytes, table, entry, count) ||
        !has_table(bytes, number_at(image, 32, 8), number_at(image, 54, 2), number_at(image, 56, 2))) {
        return false;
    }
    bool inside = true;
    for (uint64_t i = 0; i < count && inside; i++) {
        const unsigned char *header = image + table + i * entry;
        inside = !is_in_file(number_at(header, 4, 4)) ||
                 has_table(bytes, number_at(header, 24, 8), 1, number_at(header, 32, 8));
    }
    return inside;
}

#endif
