#!/usr/bin/env bash
# Runs a drift that was built with --features cuda where there is no GPU: bash tests/cuda/driver/run.sh DRIFT [CHECK]...
#
# Stands in for the driver, cuBLAS, cuRAND and NVRTC by libraries of the same names on memory of the host, so that all code of
# drift's and candle's for the host of a GPU runs as it is, and drift's kernels as g++ compiles them with the shim of the tests.
# `self.cpp` tries what the stand-in has to refuse; then `checks.py` compares texts with those of the CPU, and lets each call
# fail. Needs g++ (or $CXX), nm and Python.
#
# What the stand-in is told by variables:
#   STAND_IN_MEMORY       bytes of the device, 4 GiB
#   STAND_IN_CAPABILITY   90
#   STAND_IN_ORDER        order of the threads of a block, as in shim.h
#   STAND_IN_FAIL         NAME:USE:CODE: so the use of a name fails: a call of the driver, of cuBLAS or NVRTC by its name,
#                         `kernel NAME` when it runs, `function NAME` when it is looked for, `the module of drift`
#   STAND_IN_LATE_COPIES  copies to memory of the host that is not page-locked are done when something waits
#   STAND_IN_REPORT       a file for what was counted, and what was left at the end
#   STAND_IN_SOURCES      this folder
# `run.sh DRIFT --libraries FOLDER` only writes the libraries, for LD_LIBRARY_PATH.
set -euo pipefail
drift=$(realpath "${1:?usage: run.sh DRIFT [CHECK]... | DRIFT --libraries FOLDER}")
shift
cd "$(dirname "${BASH_SOURCE[0]}")"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
libraries=$place
if [ "${1:-}" = --libraries ]; then
    libraries=$(realpath -m "${2:?a folder}")
fi
mkdir -p "$libraries"
compiler=${CXX:-g++}

# What DRIFT wants of a library whose names begin so, without versions: PREFIX
wanted() {
    nm -D --undefined-only "$drift" | awk '{ sub(/@.*/, "", $2); print $2 }' | { grep -E "^$1[A-Z]" || true; } | sort -u
}

# What the files of the stand-in have of it: PREFIX FILE...
there() {
    local prefix=$1
    shift
    cat /dev/null "$@" | { grep -oE "^int $prefix[A-Za-z0-9_]+\(" || true; } | sed 's/^int //; s/($//' | sort -u
}

# Writes a library: NAME NUMBER PREFIX CODE FILE.... What is wanted and not there says so when it is called, and returns the code.
library() {
    local name=lib$1.so.$2 prefix=$3 code=$4 rest=$place/$1-rest.cpp version=$place/$1.version
    shift 4
    printf '#include <cstdio>\nextern "C" {\n' >"$rest"
    comm -23 <(wanted "$prefix") <(there "$prefix" "$@") | while read -r function; do
        case $function in
        # What registers the kernels that candle-kernels has linked: none of them is launched.
        __cuda*) printf 'void *%s() { return nullptr; }\n' "$function" ;;
        *) printf 'int %s() { fputs("stand-in: %s is not supported\\n", stderr); return %s; }\n' \
            "$function" "$function" "$code" ;;
        esac
    done >>"$rest"
    echo '}' >>"$rest"
    printf '%s { *; };\n' "$name" >"$version"
    "$compiler" -std=c++17 -O3 -g -fPIC -shared -Wall -Wextra -Werror -Wl,-soname,"$name" -Wl,--version-script,"$version" \
        -o "$libraries/$name" "$rest" "$@" "${others[@]}" -ldl
}

others=()
library cuda 1 cu 801 context.cpp memory.cpp streams.cpp modules.cpp candle.cpp candle_model.cpp
library cudart 13 '(__)?cuda' 801
others=("$libraries/libcuda.so.1")
library cublas 13 cublas 15 blas.cpp
library cublasLt 13 cublasLt 15
library curand 10 curand 999 random.cpp
library nvrtc 13 nvrtc 11 nvrtc.cpp
[ "$libraries" = "$place" ] || exit 0
"$compiler" -std=c++17 -g -Wall -Wextra -Werror -o "$place/self" self.cpp "$place"/lib{nvrtc.so.13,cublas.so.13,cuda.so.1} -pthread
STAND_IN_SOURCES=$PWD LD_LIBRARY_PATH=$place "$place/self" 2>"$place/self.err" || {
    cat "$place/self.err"
    exit 1
}
python3 -B checks.py "$drift" "$libraries" "$@"
