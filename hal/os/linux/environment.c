/* os/linux/environment.c: environment variables, which a process with more rights than its user must not trust. */
#include "os/os.h"

#include <stdlib.h>
#include <sys/auxv.h>

/* AT_SECURE covers set-user-id, set-group-id, file capabilities and what security modules add; comparing ids would
 * not. */
bool gpuhal_os_privileged(void)
{
    return getauxval(AT_SECURE) != 0;
}

const char *gpuhal_os_environment(const char *name)
{
    return gpuhal_os_privileged() ? NULL : getenv(name);
}

const char *gpuhal_os_environment_raw(const char *name)
{
    return getenv(name);
}

const char *gpuhal_os_platform(void)
{
#ifdef __ANDROID__
    return "android";
#else
    return "linux";
#endif
}
