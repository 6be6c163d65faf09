"""Products of a decode step on a GPU, by cuBLAS and cuBLASLt, with weights as `[out, in]` and as `[in, out]`: which is faster?

python gpu_products.py [--shape qwen3-0.6b llama-380m] [--rows 8 16 32 64 128 256 512]

In bf16 through torch, which asks either library. Each product goes through as many weights as do not fit into the cache of a GPU,
recorded as one graph; printed is the time of one, and of all products of a step, the LM head left out. Sums are f32 to the end, as drift
asks for. Before them: how fast the memory is copied.
"""

import argparse
import time

import torch

from real_size import SHAPES

# Bytes of weights that a recording goes through: more than the cache of any GPU.
BYTES = 400_000_000
REPLAYS = 20


def matrices(shape):
    """Name, columns, terms of the products of a layer."""
    s = SHAPES[shape]
    hidden, inner, dim = s["hidden_size"], s["intermediate_size"], s["head_dim"]
    heads, kv_heads = s["num_attention_heads"], s["num_key_value_heads"]
    return [
        ("qkv", (heads + 2 * kv_heads) * dim, hidden), ("output", hidden, heads * dim),
        ("gate and up", 2 * inner, hidden), ("down", hidden, inner),
    ]


def seconds(run, device):
    """Of one call of `run`."""
    run()
    if device.type != "cuda":
        began = time.perf_counter()
        run()
        return time.perf_counter() - began
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
    graph.replay()
    events[0].record()
    for _ in range(REPLAYS):
        graph.replay()
    events[1].record()
    torch.cuda.synchronize()
    return events[0].elapsed_time(events[1]) / 1e3 / REPLAYS


def measure(rows, columns, terms, by_columns, device):
    """Seconds of one product."""
    count = max(2, BYTES // (2 * columns * terms)) if device.type == "cuda" else 2
    size = (terms, columns) if by_columns else (columns, terms)
    weights = [torch.randn(size, device=device, dtype=torch.bfloat16) for _ in range(count)]
    x = torch.randn(rows, terms, device=device, dtype=torch.bfloat16)
    out = torch.empty(rows, columns, device=device, dtype=torch.bfloat16)

    def run():
        for weight in weights:
            torch.matmul(x, weight if by_columns else weight.t(), out=out)

    return seconds(run, device) / count


def copied(device):
    """GB/s of a copy, reading and writing."""
    source = torch.zeros(BYTES, device=device, dtype=torch.uint8)
    target = torch.empty_like(source)

    def run():
        for _ in range(4):
            target.copy_(source)

    return 8 * BYTES / seconds(run, device) / 1e9


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--rows", type=int, nargs="+", default=[8, 16, 32, 64, 128, 256, 512])
    parser.add_argument("--device", default="cuda:0", help="cpu tries the script itself")
    options = parser.parse_args()
    device = torch.device(options.device)
    libraries = ["cublas", "cublaslt"] if device.type == "cuda" else ["cpu"]
    ways = [(library, layout) for library in libraries for layout in ("[out, in]", "[in, out]")]
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    print(f"a copy: {copied(device):.0f} GB/s\n")
    print("| shape, rows | product | " + " | ".join(f"{library} {layout}, us, GB/s" for library, layout in ways) + " |")
    print("| --- | --- |" + " --- |" * len(ways))
    for shape in options.shape:
        for rows in options.rows:
            whole = [0.0] * len(ways)
            for name, columns, terms in matrices(shape):
                cells = []
                for at, (library, layout) in enumerate(ways):
                    if device.type == "cuda":
                        torch.backends.cuda.preferred_blas_library(library)
                    taken = measure(rows, columns, terms, layout == "[in, out]", device)
                    whole[at] += taken * SHAPES[shape]["num_hidden_layers"]
                    cells.append(f"{taken * 1e6:.2f}, {2 * columns * terms / taken / 1e9:.0f}")
                print(f"| {shape}, {rows} | {name} | " + " | ".join(cells) + " |", flush=True)
            print(f"| {shape}, {rows} | all of a step, ms | " + " | ".join(f"{s * 1e3:.3f}" for s in whole) + " |", flush=True)


if __name__ == "__main__":
    main()
