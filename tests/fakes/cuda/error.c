/* tests/fakes/cuda/error.c: descriptions of some of the codes that the fake returns. All other codes are unknown, as
 * new codes are to an old driver. */
#include "fake.h"

static const struct {
    CUresult code;
    const char *text;
} errors[] = {
    {CUDA_SUCCESS, "no error"},
    {CUDA_ERROR_INVALID_VALUE, "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "initialization error"},
    {CUDA_ERROR_STUB_LIBRARY, "CUDA driver is a stub library"},
    {CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"},
    {CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "invalid device context"},
    {CUDA_ERROR_ECC_UNCORRECTABLE, "uncorrectable ECC error encountered"},
    {CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"},
    {CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "system has unsupported display driver / cuda driver combination"},
    {CUDA_ERROR_UNKNOWN, "unknown error"},
};

CUresult cuGetErrorString(CUresult wanted, const char **out_text)
{
    CUresult code = fake_enter(__func__);
    if (code) {
        return code;
    }
    *out_text = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        if (errors[i].code == wanted) {
            *out_text = errors[i].text;
        }
    }
    return fake_end(*out_text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
