/* json.h: what the documents of all programs have in common. Everything returns a new reference, or NULL without
 * memory. */
#ifndef GPUHAL_TOOL_JSON_H
#define GPUHAL_TOOL_JSON_H

#include <jansson.h>

#include <stdint.h>

/* A text in which bytes that are no UTF-8 (file names may hold any) became U+FFFD. */
json_t *gpuhal_json_any_text(const char *text);
/* null for NULL and "". */
json_t *gpuhal_json_text(const char *text);
/* "2026-11-21T13:03:00Z" for seconds since 1970; null for 0 and for nonsense. */
json_t *gpuhal_json_time(uint64_t seconds);
/* "0.2", the version of the plugin ABI. */
json_t *gpuhal_json_abi(uint32_t version);
/* `host`: the machine (host.h). @cpu: the model of its processor; NULL: it is hidden. */
json_t *gpuhal_json_host(const char *cpu);
/* {"schema": @schema, "error": {"code": @code, "message": ...}}: what went wrong before there was a document. The
 * message goes without "@program: " at its beginning. */
json_t *gpuhal_json_error(const char *schema, const char *program, const char *code, const char *message);

#endif
