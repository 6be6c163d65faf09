// How candle's kernels are called: what the two files that have some of them share.
#pragma once

#include "device.h"

#include <cstring>

namespace device {

typedef std::function<int(const unsigned (&)[3], unsigned, const void *const *)> KernelOfCandle;

template <class T> T argument(const void *const *arguments, size_t at) {
    T value;
    memcpy(&value, arguments[at], sizeof value);
    return value;
}

// Numbers of bf16: computed with as floats, and rounded to the nearest where they are kept, of two as near to the even one.
struct Bfloat {
    uint16_t bits;

    Bfloat() = default;
    Bfloat(float value) {
        uint32_t whole;
        memcpy(&whole, &value, sizeof whole);
        bits = value == value ? (whole + 0x7fff + (whole >> 16 & 1)) >> 16 : whole >> 16 | 0x40;
    }
    operator float() const {
        uint32_t whole = (uint32_t)bits << 16;
        float value;
        memcpy(&value, &whole, sizeof value);
        return value;
    }
};

// Numbers of the device; `has` says whether one is there, with a line if it is not.
template <class T> class Numbers {
  public:
    Numbers(const void *const *arguments, size_t at) : start(argument<T *>(arguments, at)) {}
    bool has(size_t at) const { return check("a kernel of candle", (Address)(start + at), sizeof(T)) == SUCCESS; }
    T &operator[](size_t at) const { return start[at]; }

  private:
    T *start;
};

// Places of numbers by a list of sizes and then strides of each operand; without one they lie one behind the other. The first
// arguments of a kernel are their number, that of dimensions, and the list.
class Places {
  public:
    size_t numbers;

    Places(const void *const *arguments, size_t operand, size_t operands)
        : numbers(argument<size_t>(arguments, 0)), dims(argument<size_t>(arguments, 1)),
          sizes(argument<const size_t *>(arguments, 2)), strides(sizes + (1 + operand) * dims), operands(operands) {}
    int check_list() const {
        return sizes ? check("sizes and strides", (Address)sizes, 8 * (1 + operands) * dims) : (int)SUCCESS;
    }
    size_t operator[](size_t at) const {
        if (!sizes) return at;
        size_t place = 0;
        for (size_t dim = dims; dim-- > 0; at /= sizes[dim]) place += at % sizes[dim] * strides[dim];
        return place;
    }

  private:
    size_t dims;
    const size_t *sizes, *strides;
    size_t operands;
};

// The code of a kernel, if there is some: of those that load weights and copy, of those that compute a model.
KernelOfCandle kernel_of_weights(const std::string &name);
KernelOfCandle kernel_of_model(const std::string &name);

}  // namespace device
