/* stream/environment.c: reads the vendor library's environment variables in the same way as the library. Only variables
 * that are set are named as reasons. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool GPUHAL_OWN(list_variables)(const char *const *names, char *out_text, size_t size)
{
    size_t used = 0;
    out_text[0] = '\0';
    for (; *names; names++) {
        if (getenv(*names) && used < size) {
            snprintf(out_text + used, size - used, "%s%s", used ? ", " : "", *names);
            used += strlen(out_text + used);
        }
    }
    return used > 0;
}

void GPUHAL_OWN(say_what_hides)(const char *const *names, char *out_text, size_t size)
{
    char set[120];
    const bool any = GPUHAL_OWN(list_variables)(names, set, sizeof set);
    snprintf(out_text, size, "%s%smissing access to device nodes%s hides", set, any ? ", or " : "", any ? "," : "");
}
