/* The ROCm plugin over the fake runtime: every call fails once (sweep.h). */
#include "rocm_fake.h"

/* Letting go needs the device to be current. */
static bool gives_back(const char *function)
{
    static const char *const words[] = {"Destroy", "Free",       "Release",   "Unload",
                                        "Unmap",   "Unregister", "SetDevice", "hipGetDevice"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(function, words[i])) {
            return true;
        }
    }
    return false;
}

/* HIP's contexts never end; the current device has to be the program's, and no error of ours waits for the program to ask. */
static bool leaves_trace(const fake_report *report)
{
    (void)report;
    int device = 0;
    const runtime api = load_runtime();
    const hipError_t last = api.hipPeekAtLastError();
    return last != hipSuccess || (api.hipGetDevice(&device) == hipSuccess && device != 0);
}

#define SWEEP_BACKEND "rocm"
#include "sweep.h"

TEST(whichever_call_fails_without_words_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; fail * %d %d", hipErrorUnknown);
}

TEST(whichever_call_runs_out_of_memory_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; fail * %d %d", hipErrorOutOfMemory);
}

TEST(whenever_the_device_is_lost_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; lose 0 * %d %d", hipErrorLaunchFailure);
}

TEST(whenever_the_device_falls_off_the_bus_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; lose 0 * %d %d", hipErrorUnknown);
}

#include "test_main.h"
