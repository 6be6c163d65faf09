// The kernels of candle by which a whole model is computed in f32 and bf16: what runs where drift's own kernels do not.
#include "candle.h"

#include <cmath>
#include <cstring>

namespace device {

// (numbers, dims, sizes and strides, left, right, to)
template <class T, class To> static KernelOfCandle of_two(To (*function)(T, T)) {
    return [=](const unsigned(&)[3], unsigned, const void *const *arguments) -> int {
        Places lefts(arguments, 0, 2), rights(arguments, 1, 2);
        Numbers<T> left(arguments, 3), right(arguments, 4);
        Numbers<To> to(arguments, 5);
        if (int code = lefts.check_list()) return code;
        for (size_t i = 0; i < lefts.numbers; i++) {
            if (!left.has(lefts[i]) || !right.has(rights[i]) || !to.has(i)) return ILLEGAL_ADDRESS;
            to[i] = function(left[lefts[i]], right[rights[i]]);
        }
        return SUCCESS;
    };
}

// (numbers, dims, sizes and strides, from, to, …)
template <class T> static KernelOfCandle of_one(float (*function)(float, float, float), bool has_factors) {
    return [=](const unsigned(&)[3], unsigned, const void *const *arguments) -> int {
        Places places(arguments, 0, 1);
        Numbers<T> from(arguments, 3), to(arguments, 4);
        float multiplied = has_factors ? (float)argument<T>(arguments, 5) : 0;
        float added = has_factors ? (float)argument<T>(arguments, 6) : 0;
        if (int code = places.check_list()) return code;
        for (size_t i = 0; i < places.numbers; i++) {
            if (!from.has(places[i]) || !to.has(i)) return ILLEGAL_ADDRESS;
            to[i] = function(from[places[i]], multiplied, added);
        }
        return SUCCESS;
    };
}

// (numbers, dims, sizes and strides, conditions, then, else, to)
template <class T> static int where(const unsigned (&)[3], unsigned, const void *const *arguments) {
    Places conditions(arguments, 0, 3), thens(arguments, 1, 3), elses(arguments, 2, 3);
    Numbers<uint8_t> condition(arguments, 3);
    Numbers<T> then(arguments, 4), otherwise(arguments, 5), to(arguments, 6);
    if (int code = conditions.check_list()) return code;
    for (size_t i = 0; i < conditions.numbers; i++) {
        if (!condition.has(conditions[i]) || !to.has(i)) return ILLEGAL_ADDRESS;
        if (!then.has(thens[i]) || !otherwise.has(elses[i])) return ILLEGAL_ADDRESS;
        to[i] = condition[conditions[i]] ? then[thens[i]] : otherwise[elses[i]];
    }
    return SUCCESS;
}

// index_select(numbers, dims, sizes and strides of the ids, which lie one behind the other, ids, from, to, left, size of the
// dimension, ids, right)
template <class T> static int index_select(const unsigned (&)[3], unsigned, const void *const *arguments) {
    size_t numbers = argument<size_t>(arguments, 0);
    Numbers<uint32_t> ids(arguments, 3);
    Numbers<T> from(arguments, 4), to(arguments, 5);
    size_t size = argument<size_t>(arguments, 7), count = argument<size_t>(arguments, 8), right = argument<size_t>(arguments, 9);
    for (size_t i = 0; i < numbers; i++) {
        size_t at = i / right % count;
        if (!ids.has(at) || ids[at] >= size) return ILLEGAL_ADDRESS;
        size_t place = (i / (count * right) * size + ids[at]) * right + i % right;
        if (!from.has(place) || !to.has(i)) return ILLEGAL_ADDRESS;
        to[i] = from[place];
    }
    return SUCCESS;
}

// scatter(ids, from, to, left, size of the dimension there, and here, right)
template <class T> static int scatter(const unsigned (&)[3], unsigned, const void *const *arguments) {
    Numbers<uint32_t> ids(arguments, 0);
    Numbers<T> from(arguments, 1), to(arguments, 2);
    size_t sizes[4];
    for (size_t i = 0; i < 4; i++) sizes[i] = argument<size_t>(arguments, i + 3);
    auto [left, from_size, to_size, right] = sizes;
    for (size_t i = 0; i < left * right; i++) {
        for (size_t j = 0; j < from_size; j++) {
            size_t at = (i / right * from_size + j) * right + i % right;
            if (!ids.has(at) || ids[at] >= to_size) return ILLEGAL_ADDRESS;
            size_t place = (i / right * to_size + ids[at]) * right + i % right;
            if (!from.has(at) || !to.has(place)) return ILLEGAL_ADDRESS;
            to[place] = from[at];
        }
    }
    return SUCCESS;
}

// rmsnorm(from, to, weights, columns, threads, epsilon), a block for each row
template <class T> static int norm(const unsigned (&grid)[3], unsigned, const void *const *arguments) {
    Numbers<T> from(arguments, 0), to(arguments, 1), weights(arguments, 2);
    size_t columns = argument<int>(arguments, 3);
    float epsilon = argument<float>(arguments, 5);
    if (!from.has(grid[0] * columns - 1) || !to.has(grid[0] * columns - 1)) return ILLEGAL_ADDRESS;
    if (!weights.has(columns - 1)) return ILLEGAL_ADDRESS;
    for (size_t start = 0; start < grid[0] * columns; start += columns) {
        float squares = 0;
        for (size_t i = 0; i < columns; i++) squares += from[start + i] * from[start + i];
        float scale = 1 / std::sqrt(squares / columns + epsilon);
        for (size_t i = 0; i < columns; i++) to[start + i] = scale * from[start + i] * weights[i];
    }
    return SUCCESS;
}

// softmax(from, to, columns), a block for each row
template <class T> static int softmax(const unsigned (&grid)[3], unsigned, const void *const *arguments) {
    Numbers<T> from(arguments, 0), to(arguments, 1);
    size_t columns = argument<int>(arguments, 2);
    if (!from.has(grid[0] * columns - 1) || !to.has(grid[0] * columns - 1)) return ILLEGAL_ADDRESS;
    for (size_t start = 0; start < grid[0] * columns; start += columns) {
        float most = -INFINITY, sum = 0;
        for (size_t i = 0; i < columns; i++) most = std::fmax(most, (float)from[start + i]);
        for (size_t i = 0; i < columns; i++) {
            float value = std::exp(from[start + i] - most);
            sum += value;
            to[start + i] = value;
        }
        for (size_t i = 0; i < columns; i++) to[start + i] = to[start + i] * (1 / sum);
    }
    return SUCCESS;
}

// rope_thd(from, cosines, sines, to, batch, tokens, heads, size of a head, whether each of the batch has angles of its own)
template <class T> static int rotate(const unsigned (&)[3], unsigned, const void *const *arguments) {
    Numbers<T> from(arguments, 0), cosines(arguments, 1), sines(arguments, 2), to(arguments, 3);
    size_t sizes[4];
    for (size_t i = 0; i < 4; i++) sizes[i] = argument<uint32_t>(arguments, i + 4);
    auto [batch, tokens, heads, dim] = sizes;
    if (argument<uint32_t>(arguments, 8) > 0 && batch > 1) return NOT_SUPPORTED;
    size_t half = dim / 2, all = batch * tokens * heads * dim;
    if (!from.has(all - 1) || !to.has(all - 1)) return ILLEGAL_ADDRESS;
    if (!cosines.has(tokens * half - 1) || !sines.has(tokens * half - 1)) return ILLEGAL_ADDRESS;
    for (size_t head = 0; head < batch * tokens * heads; head++) {
        for (size_t i = 0; i < half; i++) {
            size_t first = head * dim + i, second = first + half, angle = head / heads % tokens * half + i;
            float x = from[first], y = from[second];
            to[first] = x * cosines[angle] - y * sines[angle];
            to[second] = x * sines[angle] + y * cosines[angle];
        }
    }
    return SUCCESS;
}

static float affine(float x, float multiplied, float added) { return x * multiplied + added; }

static float silu(float x, float, float) { return x / (1 + std::exp(-x)); }

KernelOfCandle kernel_of_model(const std::string &name) {
    static const std::map<std::string, KernelOfCandle> kernels = {
        {"badd_f32", of_two<float, float>([](float x, float y) { return x + y; })},
        {"badd_bf16", of_two<Bfloat, Bfloat>([](Bfloat x, Bfloat y) { return Bfloat((float)x + (float)y); })},
        {"bmul_f32", of_two<float, float>([](float x, float y) { return x * y; })},
        {"bmul_bf16", of_two<Bfloat, Bfloat>([](Bfloat x, Bfloat y) { return Bfloat((float)x * (float)y); })},
        {"le_u32", of_two<uint32_t, uint8_t>([](uint32_t x, uint32_t y) { return (uint8_t)(x <= y); })},
        {"affine_f32", of_one<float>(affine, true)},
        {"affine_bf16", of_one<Bfloat>(affine, true)},
        {"usilu_f32", of_one<float>(silu, false)},
        {"usilu_bf16", of_one<Bfloat>(silu, false)},
        {"where_u8_f32", where<float>},
        {"where_u8_bf16", where<Bfloat>},
        {"is_u32_f32", index_select<float>},
        {"is_u32_bf16", index_select<Bfloat>},
        {"is_u32_u32", index_select<uint32_t>},
        {"s_u32_f32", scatter<float>},
        {"s_u32_bf16", scatter<Bfloat>},
        {"rmsnorm_f32", norm<float>},
        {"rmsnorm_bf16", norm<Bfloat>},
        {"softmax_f32", softmax<float>},
        {"softmax_bf16", softmax<Bfloat>},
        {"rope_thd_f32", rotate<float>},
        {"rope_thd_bf16", rotate<Bfloat>},
    };
    auto found = kernels.find(name);
    return found == kernels.end() ? nullptr : found->second;
}

}  // namespace device
