/* tests/system/vendor_bench.h: the bench of the vendor whom the test is compiled for; each vendor's says the same of its own. */
#ifdef GPUHAL_CUDA_PLUGIN
#include "cuda_bench.h"
#else
#include "rocm_bench.h"
#endif
