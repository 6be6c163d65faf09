// cuBLAS: products with sums in f32, each of them in the order of its terms whatever the number of rows is.
#include "device.h"

#include <cstring>
#include <set>
#include <tuple>

using namespace device;

namespace {

// As cublas_api.h and library_types.h number them.
enum Status {
    OK = 0,
    NO_HANDLE = 1,
    ALLOCATION_FAILED = 3,
    BAD_VALUE = 7,
    EXECUTION_FAILED = 13,
    INTERNAL = 14,
    UNSUPPORTED = 15,
};
enum Type { F32 = 0, BF16 = 14 };
enum { SUMS_IN_F32 = 68, NOT_TURNED = 0, TURNED = 1 };

struct Handle {
    void *stream = nullptr;
    bool has_workspace = false;
    // Products that were made outside captures; what they need is loaded.
    std::set<std::vector<long long>> known;
};

Table<Handle> &handles = *new Table<Handle>;

// By columns, `stride` numbers from one column to the next, `step` from one matrix of a batch to the next.
struct Matrix {
    const void *numbers;
    int type;
    long long stride, step;

    size_t size() const { return type == BF16 ? 2 : 4; }
    float get(long long at) const {
        if (type == F32) return ((const float *)numbers)[at];
        uint32_t bits = (uint32_t)((const uint16_t *)numbers)[at] << 16;
        float number;
        memcpy(&number, &bits, 4);
        return number;
    }
    void set(long long at, float number) const {
        if (type == F32) {
            ((float *)numbers)[at] = number;
            return;
        }
        uint32_t bits;
        memcpy(&bits, &number, 4);
        ((uint16_t *)numbers)[at] = number == number ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : bits >> 16 | 0x40;
    }
    int check_range(long long rows, long long columns, long long batch) const {
        if (rows == 0 || columns == 0 || batch == 0) return SUCCESS;
        long long numbers_used = step * (batch - 1) + stride * (columns - 1) + rows;
        return check("a product", (Address)numbers, numbers_used * size());
    }
};

struct Product {
    bool turns_a, turns_b;
    long long m, n, k, batch;
    Matrix a, b, c;
    float alpha, beta;

    int run() const {
        int code = turns_a ? a.check_range(k, m, batch) : a.check_range(m, k, batch);
        if (!code) code = turns_b ? b.check_range(n, k, batch) : b.check_range(k, n, batch);
        if (!code) code = c.check_range(m, n, batch);
        for (long long i = 0; !code && i < batch; i++) one(i * a.step, i * b.step, i * c.step);
        return code;
    }
    void one(long long a_start, long long b_start, long long c_start) const {
        std::vector<float> left(m * k), sums(m);
        for (long long l = 0; l < k; l++) {
            for (long long i = 0; i < m; i++) left[l * m + i] = a.get(a_start + (turns_a ? i * a.stride + l : l * a.stride + i));
        }
        for (long long j = 0; j < n; j++) {
            std::fill(sums.begin(), sums.end(), 0.0f);
            for (long long l = 0; l < k; l++) {
                float right = b.get(b_start + (turns_b ? l * b.stride + j : j * b.stride + l));
                for (long long i = 0; i < m; i++) sums[i] += left[l * m + i] * right;
            }
            for (long long i = 0; i < m; i++) {
                long long at = c_start + j * c.stride + i;
                c.set(at, alpha * sums[i] + (beta != 0 ? beta * c.get(at) : 0));
            }
        }
    }
};

int multiply(void *handle, const Product &product, int compute) {
    std::shared_ptr<Handle> blas = handles.find(handle);
    if (!blas) return NO_HANDLE;
    auto &[turns_a, turns_b, m, n, k, batch, a, b, c, alpha, beta] = product;
    bool is_known_type = a.type == b.type && (c.type == a.type || c.type == F32) && (a.type == F32 || a.type == BF16);
    if (m < 0 || n < 0 || k < 0 || batch < 0) return BAD_VALUE;
    if (a.stride < std::max(1ll, turns_a ? k : m) || b.stride < std::max(1ll, turns_b ? n : k)) return BAD_VALUE;
    if (c.stride < std::max(1ll, m)) return BAD_VALUE;
    if (!is_known_type || compute != SUMS_IN_F32) return UNSUPPORTED;
    std::shared_ptr<Stream> stream = stream_of(blas->stream);
    if (!stream) return EXECUTION_FAILED;
    std::vector<long long> kind = {turns_a, turns_b, m, n, k, batch, a.type, c.type};
    if (!stream->capture) blas->known.insert(kind);
    if (stream->capture && !blas->has_workspace) {
        return refuse(*stream, "a product without a workspace of the program's own", ALLOCATION_FAILED);
    }
    if (stream->capture && !blas->known.count(kind)) return refuse(*stream, "a first product of its kind", INTERNAL);
    count("products");
    return give(blas->stream, {"product", [=] { return product.run(); }}) ? EXECUTION_FAILED : OK;
}

float factor(const void *from) {
    float factor;
    memcpy(&factor, from, 4);
    return factor;
}

}  // namespace

// cuBLAS has codes of its own for what the driver refuses.
static int code_of(int code) { return gpu.failure ? EXECUTION_FAILED : code <= UNSUPPORTED ? code : INTERNAL; }

#define BLAS_CALL(need) \
    device::Call call(__func__, device::need); \
    if (call.code) return code_of(call.code)

extern "C" {

int cublasCreate_v2(void **handle) {
    BLAS_CALL(NO_CAPTURE);
    *handle = handles.add(std::make_shared<Handle>());
    gpu.held["handles of cuBLAS"]++;
    return OK;
}

int cublasDestroy_v2(void *handle) {
    BLAS_CALL(NO_CAPTURE);
    if (!handles.remove(handle)) return NO_HANDLE;
    gpu.held["handles of cuBLAS"]--;
    return OK;
}

// Takes the workspace back, as the manual says.
int cublasSetStream_v2(void *handle, void *stream) {
    BLAS_CALL(CONTEXT);
    std::shared_ptr<Handle> blas = handles.find(handle);
    if (!blas || !stream_of(stream)) return blas ? BAD_VALUE : NO_HANDLE;
    blas->stream = stream;
    blas->has_workspace = false;
    return OK;
}

int cublasSetWorkspace_v2(void *handle, void *workspace, size_t bytes) {
    BLAS_CALL(CONTEXT);
    std::shared_ptr<Handle> blas = handles.find(handle);
    if (!blas) return NO_HANDLE;
    if ((Address)workspace % 256 != 0 || !is_given((Address)workspace, bytes)) return BAD_VALUE;
    blas->has_workspace = true;
    return OK;
}

int cublasSetMathMode(void *handle, int mode) {
    BLAS_CALL(CONTEXT);
    enum { DEFAULT = 0, PEDANTIC = 2, NO_REDUCED_PRECISION = 16 };
    if (!handles.find(handle)) return NO_HANDLE;
    return mode == DEFAULT || mode == PEDANTIC || mode == NO_REDUCED_PRECISION ? OK : UNSUPPORTED;
}

int cublasGemmEx(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha, const void *a, int a_type,
                 int a_stride, const void *b, int b_type, int b_stride, const void *beta, void *c, int c_type,
                 int c_stride, int compute, int) {
    BLAS_CALL(CONTEXT);
    Product product = {turn_a != NOT_TURNED, turn_b != NOT_TURNED, m, n, k, 1, {a, a_type, a_stride, 0},
                       {b, b_type, b_stride, 0}, {c, c_type, c_stride, 0}, factor(alpha), factor(beta)};
    return multiply(handle, product, compute);
}

int cublasGemmStridedBatchedEx(void *handle, int turn_a, int turn_b, int m, int n, int k, const void *alpha,
                               const void *a, int a_type, int a_stride, long long a_step, const void *b, int b_type,
                               int b_stride, long long b_step, const void *beta, void *c, int c_type, int c_stride,
                               long long c_step, int batch, int compute, int) {
    BLAS_CALL(CONTEXT);
    Product product = {turn_a != NOT_TURNED, turn_b != NOT_TURNED, m, n, k, batch, {a, a_type, a_stride, a_step},
                       {b, b_type, b_stride, b_step}, {c, c_type, c_stride, c_step}, factor(alpha), factor(beta)};
    return multiply(handle, product, compute);
}

}  // extern "C"
