"""Compiles the kernels by NVRTC for several architectures, without a GPU, and says what registers they take.

    python tests/cuda/nvrtc.py [--arch sm_90a]... [--keep FOLDER]

NVRTC is the wheel of tests/cuda/requirements.txt, or what DRIFT_NVRTC names (a libnvrtc.so). Fails where a kernel does not compile,
where one spills more than MOST_SPILLED bytes, or takes more shared memory than a block has without asking.
"""

import argparse
import ctypes
import os
import pathlib
import re
import sys
import sysconfig
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src/engine/model/cuda"
ARCHITECTURES = ["sm_80", "sm_90a", "sm_100"]
# Types, sizes of heads, query heads of a key and value head: Qwen3 and Llama shapes, and the most that is taken.
SHAPES = [("f32", 64, 2), ("bf16", 64, 4), ("bf16", 128, 2), ("bf16", 128, 8), ("bf16", 48, 2)]
# Bytes of spills, stores and loads together: a few registers at the edges of a loop are borne, an array is not.
MOST_SPILLED = 64
MOST_SHARED = 48 * 1024


def library():
    """The path of libnvrtc."""
    if path := os.environ.get("DRIFT_NVRTC"):
        return path
    folder = pathlib.Path(sysconfig.get_path("purelib")) / "nvidia"
    found = sorted(folder.glob("*/lib/libnvrtc.so.*"))
    if not found:
        sys.exit("NVRTC is not installed: pip install -r tests/cuda/requirements.txt")
    return str(found[-1])


def load():
    """NVRTC, with its builtins, which it opens by name alone."""
    path = pathlib.Path(library())
    for builtins in sorted(path.parent.glob("libnvrtc-builtins.so.*")):
        ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(path))


def sources():
    """The files of a program, in the order that the crate compiles them in."""
    names = re.findall(r'include_str!\("(\w+\.cu)"\)', (FOLDER / "mod.rs").read_text())
    on_disk = {path.name for path in FOLDER.glob("*.cu")}
    if set(names) != on_disk:
        sys.exit(f"mod.rs names {sorted(names)}, the folder holds {sorted(on_disk)}")
    # What the compiler says names the file.
    return "\n".join(f'#line 1 "{name}"\n{(FOLDER / name).read_text()}' for name in names)


def check(nvrtc, status):
    if status != 0:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        sys.exit(f"NVRTC: {nvrtc.nvrtcGetErrorString(status).decode()}")


def compile_program(nvrtc, source, options):
    """Whether it compiled, what the compiler said, and the binary."""
    program = ctypes.c_void_p()
    check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"drift.cu", 0, None, None))
    words = [option.encode() for option in options]
    status = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    size = ctypes.c_size_t()
    check(nvrtc, nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    log = ctypes.create_string_buffer(size.value)
    check(nvrtc, nvrtc.nvrtcGetProgramLog(program, log))
    binary = b""
    if status == 0:
        check(nvrtc, nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        room = ctypes.create_string_buffer(size.value)
        check(nvrtc, nvrtc.nvrtcGetCUBIN(program, room))
        binary = room.raw
    check(nvrtc, nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    return status == 0, log.value.decode(), binary


def kernels(log):
    """Name, registers, spilled bytes and shared bytes of each kernel, from what ptxas says."""
    found = {}
    for block in log.split("Compiling entry function '")[1:]:
        numbers = lambda pattern: sum(int(n) for n in re.findall(pattern, block))
        name = block.split("'")[0]
        registers = numbers(r"Used (\d+) registers")
        spilled = numbers(r"(\d+) bytes spill (?:stores|loads)")
        found[name] = (registers, spilled, numbers(r"(\d+) bytes smem"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", action="append", help=f"instead of {', '.join(ARCHITECTURES)}")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="so many shapes alone")
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the binaries, for nvdisasm")
    arguments = parser.parse_args()
    nvrtc = load()
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(nvrtc, nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    print(f"NVRTC {major.value}.{minor.value}")
    source, failed = sources(), []
    for arch in arguments.arch or ARCHITECTURES:
        for kind, head_dim, group in SHAPES[: arguments.shapes]:
            what = f"{arch} {kind} heads of {head_dim}, groups of {group}"
            macros = [f"-DDRIFT_BF16={int(kind == 'bf16')}", f"-DDRIFT_HEAD_DIM={head_dim}", f"-DDRIFT_GROUP={group}"]
            options = [f"--gpu-architecture={arch}", "--std=c++17", "--ptxas-options=-v", *macros]
            began = time.monotonic()
            compiled, log, binary = compile_program(nvrtc, source, options)
            seconds = time.monotonic() - began
            if not compiled:
                sys.exit(f"{what}:\n{log}")
            if arguments.keep:
                arguments.keep.mkdir(parents=True, exist_ok=True)
                (arguments.keep / f"{arch}-{kind}-{head_dim}-{group}.cubin").write_bytes(binary)
            found = kernels(log)
            if not found:
                failed.append(f"{what}: the compiler does not say what registers the kernels take")
            spills = lambda row: f" ({row[1]} bytes spilled)" if row[1] else ""
            text = ", ".join(f"{name} {row[0]}{spills(row)}" for name, row in sorted(found.items()))
            print(f"{what}: {seconds:.1f} s, {len(binary)} bytes; registers: {text}")
            for name, (_, spilled, shared) in found.items():
                if spilled > MOST_SPILLED or shared > MOST_SHARED:
                    failed.append(f"{what}: {name} spills {spilled} bytes and takes {shared} of shared memory")
    if failed:
        sys.exit("\n".join(failed))


if __name__ == "__main__":
    main()
