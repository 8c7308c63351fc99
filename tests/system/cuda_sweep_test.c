/* The CUDA plugin over the fake driver: every call fails once (sweep.h). */
#include "cuda_fake.h"

static bool gives_back(const char *function)
{
    static const char *const words[] = {"Destroy",    "Free",       "Release",     "Unload",    "Unmap",
                                        "Unregister", "PopCurrent", "PushCurrent", "GetCurrent"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(function, words[i])) {
            return true;
        }
    }
    return false;
}

static bool leaves_trace(const fake_report *report)
{
    return report->contexts_alive || report->primary_retains;
}

#define SWEEP_BACKEND "cuda"
#include "sweep.h"

TEST(whichever_call_fails_without_words_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; fail * %d %d", CUDA_ERROR_UNKNOWN);
}

TEST(whichever_call_runs_out_of_memory_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; fail * %d %d", CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(whenever_the_device_is_lost_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; lose 0 * %d %d", CUDA_ERROR_LAUNCH_FAILED);
}

TEST(whenever_the_device_falls_off_the_bus_the_process_lives_and_nothing_is_left)
{
    sweep("devices 2; lose 0 * %d %d", CUDA_ERROR_UNKNOWN);
}

#include "test_main.h"
