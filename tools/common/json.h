/* json.h: JSON that the documents of all programs share. Each function returns a new reference, or NULL if out of
 * memory. */
#ifndef GPUHAL_TOOL_JSON_H
#define GPUHAL_TOOL_JSON_H

#include <jansson.h>

#include <stdint.h>

/* Creates a string. Invalid UTF-8, which file names may contain, becomes U+FFFD. */
json_t *gpuhal_json_any_text(const char *text);
/* Creates a string, or null for NULL and "". */
json_t *gpuhal_json_text(const char *text);
/* Creates "2026-11-21T13:03:00Z" from seconds since 1970, or null for 0 and for times after the year 9999. */
json_t *gpuhal_json_time(uint64_t seconds);
/* Creates "0.2" from the plugin ABI version. */
json_t *gpuhal_json_abi(uint32_t version);
/* Creates the object `host`, which describes the machine (host.h). @cpu is the processor's model; NULL if it is
 * hidden. */
json_t *gpuhal_json_host(const char *cpu);
/* Creates {"schema": @schema, "error": {"code": @code, "message": ...}}, for an error that occurred before there was a
 * document. A leading "@program: " is removed from the message. */
json_t *gpuhal_json_error(const char *schema, const char *program, const char *code, const char *message);

#endif
