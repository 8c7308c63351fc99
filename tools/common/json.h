/* json.h: the common parts of all programs' documents. Each function returns a new reference, or NULL without
 * memory. */
#ifndef GPUHAL_TOOL_JSON_H
#define GPUHAL_TOOL_JSON_H

#include <jansson.h>

#include <stdint.h>

/* Makes a text, with U+FFFD for bytes that are no UTF-8 (file names may hold any). */
json_t *gpuhal_json_any_text(const char *text);
/* Makes a text; null for NULL and "". */
json_t *gpuhal_json_text(const char *text);
/* Makes "2026-11-21T13:03:00Z" of seconds since 1970; null for 0 and after the year 9999. */
json_t *gpuhal_json_time(uint64_t seconds);
/* Makes "0.2" of the version of the plugin ABI. */
json_t *gpuhal_json_abi(uint32_t version);
/* Makes `host`: the machine (host.h). @cpu: the model of its processor; NULL: it is hidden. */
json_t *gpuhal_json_host(const char *cpu);
/* Makes {"schema": @schema, "error": {"code": @code, "message": ...}}: an error from before there was a document. The
 * message goes without "@program: " at its beginning. */
json_t *gpuhal_json_error(const char *schema, const char *program, const char *code, const char *message);

#endif
