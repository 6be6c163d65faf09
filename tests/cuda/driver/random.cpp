// cuRAND: candle makes a generator with each device, and drift never asks it for a number.
#include "device.h"

using namespace device;

// The one code of its own for what the driver refuses.
#define RANDOM_CALL(need) \
    device::Call call(__func__, device::need); \
    if (call.code) return 999

extern "C" {

int curandCreateGenerator(void **generator, int) {
    RANDOM_CALL(NO_CAPTURE);
    *generator = new_handle();
    gpu.held["generators"]++;
    return SUCCESS;
}

int curandDestroyGenerator(void *) {
    RANDOM_CALL(NO_CAPTURE);
    gpu.held["generators"]--;
    return SUCCESS;
}

int curandSetStream(void *, void *) {
    RANDOM_CALL(CONTEXT);
    return SUCCESS;
}

int curandSetPseudoRandomGeneratorSeed(void *, unsigned long long) {
    RANDOM_CALL(CONTEXT);
    return SUCCESS;
}

}  // extern "C"
