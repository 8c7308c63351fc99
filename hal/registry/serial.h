/* registry/serial.h: the whole registry as one text.
 *
 *     # comment lines, and empty ones, between records
 *     [registry]
 *     version = 1
 *     generation = 17
 *     next_physical = 3
 *     next_interface = 9
 *     crc = 0f1e2d3c
 *
 *     [interface]
 *     …
 *     crc = …
 *
 *     [end]
 *     records = 12
 *     crc = …
 *
 * Each record ends with the CRC-32C of its bytes from `[` up to that line, in eight hexadecimal digits. The first says how to read
 * the others, the last how many there are, so that a text that was cut off is known for it.
 */
#ifndef GPUHAL_REGISTRY_SERIAL_H
#define GPUHAL_REGISTRY_SERIAL_H

#include "registry/fields.h"

#define GPUHAL_REGISTRY_VERSION   1u
#define GPUHAL_REGISTRY_BYTES_MAX (1u << 20)   /* of the text */
#define GPUHAL_RECORD_BYTES_MAX   (256u << 10) /* of one record that is taken up */

typedef struct gpuhal_serial_report {
    bool newer;     /* a later version of the library wrote it: nothing was read */
    bool headless;  /* the first record is damaged: nothing was read */
    bool cut;       /* the last record is missing, or counts others than are there */
    size_t damaged; /* records, and lines between them, that were left out */
} gpuhal_serial_report;

/* Reads what can be trusted into *out_content; only running out of memory is an answer other than OK, and leaves it empty. */
gpuhal_read_result gpuhal_serial_read(const char *text, size_t bytes, gpuhal_database *out_content, gpuhal_serial_report *out_report);
/* Whether something was wrong with a text that this version should understand. */
bool gpuhal_serial_is_damaged(const gpuhal_serial_report *report);
/* Writes it. Without memory to->failed is set. */
void gpuhal_serial_write(const gpuhal_database *database, gpuhal_text *to);

#endif
