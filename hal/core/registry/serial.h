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
 * Each record ends with the CRC-32C of its bytes from `[` up to that line, in eight hexadecimal digits. The first
 * record gives the version of the format; the last counts the records, so that a truncated text is detected.
 */
#ifndef GPUHAL_REGISTRY_SERIAL_H
#define GPUHAL_REGISTRY_SERIAL_H

#include "registry/fields.h"

#define GPUHAL_REGISTRY_VERSION   1u
#define GPUHAL_REGISTRY_BYTES_MAX (1u << 20)   /* of the text */
#define GPUHAL_RECORD_BYTES_MAX   (256u << 10) /* of one record that is read */

typedef struct gpuhal_serial_report {
    bool newer;     /* written by a later version of the library: nothing was read */
    bool headless;  /* the first record is damaged: nothing was read */
    bool cut;       /* the last record is missing, or its count is wrong */
    size_t damaged; /* ignored records, and lines between them */
} gpuhal_serial_report;

/* Reads every valid record into *out_database. Fails only without memory, and then leaves it empty. */
gpuhal_read_result gpuhal_serial_read(const char *text, size_t bytes, gpuhal_database *out_content,
                                      gpuhal_serial_report *out_report);
/* Returns whether a text that this version understands is damaged. */
bool gpuhal_serial_is_damaged(const gpuhal_serial_report *report);
/* Writes the text. Sets to->failed without memory. */
void gpuhal_serial_write(const gpuhal_database *database, gpuhal_text *to);

#endif
