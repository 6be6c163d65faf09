// The kernels of candle that load weights, make caches and copy parts of them, by their names in candle-kernels.
#include "candle.h"

namespace device {

static size_t size_of(const std::string &type) {
    if (type == "u8") return 1;
    if (type == "bf16" || type == "f16") return 2;
    if (type == "u32" || type == "f32") return 4;
    return type == "i64" || type == "f64" ? 8 : 0;
}

static float to_float(const char *from, const std::string &type) {
    if (type == "u32") return *(const uint32_t *)from;
    return type == "bf16" ? (float)*(const Bfloat *)from : *(const float *)from;
}

static void of_float(char *to, const std::string &type, float number) {
    if (type == "f32") {
        *(float *)to = number;
    } else {
        *(Bfloat *)to = number;
    }
}

// copy2d(from, to, rows, columns, from one row to the next there, and here)
static KernelOfCandle copy2d(size_t size) {
    return [=](const unsigned(&)[3], unsigned, const void *const *arguments) -> int {
        Address from = argument<Address>(arguments, 0), to = argument<Address>(arguments, 1);
        size_t sizes[4];
        for (size_t i = 0; i < 4; i++) sizes[i] = argument<uint32_t>(arguments, i + 2);
        auto [rows, columns, from_stride, to_stride] = sizes;
        if (int code = check("copy2d", from, ((rows - 1) * from_stride + columns) * size)) return code;
        if (int code = check("copy2d", to, ((rows - 1) * to_stride + columns) * size)) return code;
        for (size_t row = 0; row < rows; row++) {
            memcpy((char *)to + row * to_stride * size, (const char *)from + row * from_stride * size, columns * size);
        }
        return SUCCESS;
    };
}

// (numbers, dims, sizes and strides, from, to): a copy, or from one type to another.
static KernelOfCandle converted(const std::string &from_type, const std::string &to_type) {
    return [=](const unsigned(&)[3], unsigned, const void *const *arguments) -> int {
        Places places(arguments, 0, 1);
        const char *from = argument<const char *>(arguments, 3);
        char *to = argument<char *>(arguments, 4);
        size_t from_size = size_of(from_type), to_size = size_of(to_type);
        if (int code = places.check_list()) return code;
        if (int code = check("a kernel of candle", (Address)to, places.numbers * to_size)) return code;
        for (size_t i = 0; i < places.numbers; i++) {
            const char *number = from + places[i] * from_size;
            if (int code = check("a kernel of candle", (Address)number, from_size)) return code;
            if (from_type == to_type) {
                memcpy(to + i * to_size, number, to_size);
            } else {
                of_float(to + i * to_size, to_type, to_float(number, from_type));
            }
        }
        return SUCCESS;
    };
}

// const_set(numbers, dims, sizes and strides, value, to)
static KernelOfCandle const_set(size_t size) {
    return [=](const unsigned(&)[3], unsigned, const void *const *arguments) -> int {
        Places places(arguments, 0, 1);
        char *to = argument<char *>(arguments, 4);
        if (int code = places.check_list()) return code;
        for (size_t i = 0; i < places.numbers; i++) {
            char *number = to + places[i] * size;
            if (int code = check("const_set", (Address)number, size)) return code;
            memcpy(number, arguments[3], size);
        }
        return SUCCESS;
    };
}

KernelOfCandle kernel_of_weights(const std::string &name) {
    auto rest = [&](const std::string &head) { return name.compare(0, head.size(), head) ? "" : name.substr(head.size()); };
    if (size_t size = size_of(rest("copy2d_"))) return copy2d(size);
    if (size_of(rest("ucopy_"))) return converted(rest("ucopy_"), rest("ucopy_"));
    if (size_t size = size_of(rest("const_set_"))) return const_set(size);
    for (auto &[from, to] : {std::pair{"f32", "bf16"}, {"bf16", "f32"}, {"u32", "f32"}, {"u32", "bf16"}}) {
        if (name == std::string("cast_") + from + "_" + to) return converted(from, to);
    }
    return nullptr;
}

}  // namespace device
