/* registry/serial.h: the text format of the registry file.
 *
 *     # comment lines and empty lines may be between records
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
 * record contains the format version. The last record contains the number of records, so that truncation is detected.
 */
#ifndef GPUHAL_REGISTRY_SERIAL_H
#define GPUHAL_REGISTRY_SERIAL_H

#include "registry/fields.h"

#define GPUHAL_REGISTRY_VERSION   1u
#define GPUHAL_REGISTRY_BYTES_MAX (1u << 20)   /* maximum size of the text */
#define GPUHAL_RECORD_BYTES_MAX   (256u << 10) /* maximum size of a plugin's record that merge.c adds */

typedef struct gpuhal_serial_report {
    bool newer;     /* a newer version of the library wrote the text; nothing was read */
    bool headless;  /* the first record is damaged; nothing was read */
    bool cut;       /* the last record is missing, its count is wrong, or records follow it */
    size_t damaged; /* number of damaged records, and of stray lines between records */
} gpuhal_serial_report;

/* Reads every valid record into *out_content. Fails only if out of memory, and then leaves *out_content empty. */
gpuhal_read_result gpuhal_serial_read(const char *text, size_t bytes, gpuhal_database *out_content,
                                      gpuhal_serial_report *out_report);
/* Returns whether the text is damaged; false for newer versions. */
bool gpuhal_serial_is_damaged(const gpuhal_serial_report *report);
/* Sets to->failed if out of memory. */
void gpuhal_serial_write(const gpuhal_database *database, gpuhal_text *to);

#endif
