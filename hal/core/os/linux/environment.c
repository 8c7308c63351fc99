/* os/linux/environment.c: access to environment variables. A process that is more privileged than its user must not
 * trust them. */
#include "os/os.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

/* AT_SECURE is set for set-user-id and set-group-id programs, file capabilities and security modules. Comparing user
 * ids would not detect all of these. */
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

void gpuhal_os_environment_visit(void (*each)(void *user, const char *entry), void *user)
{
    for (char **entry = gpuhal_os_privileged() ? NULL : environ; entry && *entry; entry++) {
        each(user, *entry);
    }
}

const char *gpuhal_os_platform(void)
{
#ifdef __ANDROID__
    return "android";
#else
    return "linux";
#endif
}
