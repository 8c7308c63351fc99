/* tests/fakes/cuda/vendor.c: the properties of the machine that are specific to CUDA. */
#include "script.h"

const fake_vendor_facts fake_vendor = {
    .name = "CUDA",
    .variable = "FAKE_CUDA",
    .report_variable = "FAKE_CUDA_REPORT",
    .device_name = "Fake H100",
    .driver_text = "580.65.06",
    .driver_version = 13000,
    .uuid_bytes = 16,
    .alignment = 512,
};
