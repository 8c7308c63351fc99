/* tests/fakes/rocm/names.c: prints the names that a fake must export. Called as `names` with `hip`, `hip_required`,
 * `rocm_smi` or `amd_smi`. */
#include "fake.h"

#include "amd_smi_api.h"
#include "rocm_smi_api.h"

#include <stdio.h>
#include <string.h>

#define NAME(name, parameters)                #name,
#define FAKE_FUNCTION(type, name, parameters) #name,
#define NOTHING(type, name, parameters)

static const char *const hip[] = {FAKE_FUNCTIONS NULL};
static const char *const required[] = {GPUHAL_HIP_FUNCTIONS(FAKE_FUNCTION, NOTHING) FAKE_TEST_FUNCTIONS(FAKE_FUNCTION)
                                           NULL};
static const char *const rocm_smi[] = {GPUHAL_ROCM_SMI_FUNCTIONS(NAME, NAME) "rsmi_shut_down", NULL};
static const char *const amd_smi[] = {GPUHAL_AMD_SMI_FUNCTIONS(NAME, NAME) "amdsmi_shut_down", NULL};

int main(int argc, char **argv)
{
    static const struct {
        const char *word;
        const char *const *names;
    } lists[] = {{"hip", hip}, {"hip_required", required}, {"rocm_smi", rocm_smi}, {"amd_smi", amd_smi}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (const char *const *name = lists[i].names; argc > 1 && strcmp(argv[1], lists[i].word) == 0 && *name;
             name++) {
            puts(*name);
        }
    }
    return 0;
}
