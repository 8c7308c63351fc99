/* tests/fakes/cuda/nvml_state.c: the fake NVML's PCI Express, video engines and performance state. */
#include "nvml.h"

#define CONSTANT(function, name, number)                                                                               \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *out_value)                                                \
    {                                                                                                                  \
        return fake_nvml_constant(__func__, device, name, number, out_value);                                          \
    }
/* A link that is idle: it runs slower than it could. */
CONSTANT(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_generation", 1)
CONSTANT(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", 8)
CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_generation_max", 5)
CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", 16)
CONSTANT(nvmlDeviceGetPcieReplayCounter, "pcie_replays", 7)
CONSTANT(nvmlDeviceGetPerformanceState, "performance_state", 2)

#define ENGINE(function, name, number)                                                                                 \
    nvmlReturn_t function(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us)                         \
    {                                                                                                                  \
        *period_us = 167000;                                                                                           \
        return fake_nvml_constant(__func__, device, name, number, percent);                                            \
    }
ENGINE(nvmlDeviceGetEncoderUtilization, "utilization_encoder", 21)
ENGINE(nvmlDeviceGetDecoderUtilization, "utilization_decoder", 9)
