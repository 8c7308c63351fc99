/* tests/fakes/rocm/vendor.c: the properties of the machine that are specific to AMD. Built for each major version of
 * HIP. */
#include "script.h"

#ifndef FAKE_HIP_VERSION
#define FAKE_HIP_VERSION 60443482
#endif

const fake_vendor_facts fake_vendor = {
    .name = "HIP",
    .variable = "FAKE_HIP",
    .report_variable = "FAKE_HIP_REPORT",
    .device_name = "Fake MI300X",
    .driver_text = "6.8.5",
    .driver_version = FAKE_HIP_VERSION,
    .uuid_bytes = 8,
    .alignment = 256,
};
