/* Prints the formats of two programs (name, size, and the first four bytes), and the result of a kernel function that
 * is linked into this program. */
#include "linked.h"
#include "saxpy.h"

#include <stdio.h>
#include <string.h>

static void print(const char *name, const gpuhal_code *codes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const unsigned char *bytes = codes[i].code;
        printf("%s %s %llu %02x%02x%02x%02x\n", name, codes[i].format, (unsigned long long)codes[i].bytes, bytes[0],
               bytes[1], bytes[2], bytes[3]);
    }
}

int main(void)
{
    print("saxpy", saxpy_codes, saxpy_code_count);
    print("linked", linked_codes, linked_code_count - 1);
    const gpuhal_code *code = &linked_codes[linked_code_count - 1];
    const gpuhal_host_function *functions = code->code;
    float y[3] = {1, 2, 3}, x[3] = {10, 20, 30}, a = 2;
    uint32_t n = 3;
    void *arguments[] = {y, x, &a, &n};
    const gpuhal_host_group group = {.size = sizeof group, .groups = {1, 1, 1}, .group_size = {64, 1, 1}};
    functions[0].run(arguments, &group);
    printf("linked %s %s: %g %g %g, %s\n", code->format, functions[0].name, y[0], y[1], y[2],
           functions[1].name ? "and more" : "no more");
}
