"""Counts Chrome traces once more, by a dict and a sort, and sets `drift compare` beside it: python recount_traces.py DRIFT TRACE...

Compared are kernel launches and their time, kernels, all events of devices, memsets, and how long the devices were busy. For traces that
nobody of drift's wrote, such as those in tests/data of HolisticTraceAnalysis (facebookresearch, MIT), of NVIDIA's and AMD's GPUs.
What drift refuses, or where a figure differs, is listed; the exit code is 1 where one differs, or nothing was compared.
"""

import argparse
import gzip
import json
import pathlib
import subprocess
import sys
from decimal import Decimal

LAUNCHES = ("cudaLaunch", "cuLaunch", "hipLaunch", "hipExtLaunch", "hipExtModuleLaunch", "hipModuleLaunch")
CALLS = ("cuda_runtime", "cuda_driver", "runtime")
DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")


def complete_events(path):
    """The events with a duration; times as they are written, since a double has no room for nanoseconds since 1970."""
    data = pathlib.Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    trace = json.loads(data, parse_float=Decimal, parse_int=Decimal)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    return [event for event in events if isinstance(event, dict) and event.get("ph") == "X"]


def category(event):
    return str(event.get("cat", "")).lower()


def busy(events):
    """Microseconds in which a device does something, added over devices."""
    spans = {}
    for event in events:
        device = (event.get("args") or {}).get("device", event.get("pid"))
        spans.setdefault(device, []).append((event["ts"], event["ts"] + event.get("dur", 0)))
    total = Decimal(0)
    for of_device in spans.values():
        end = None
        for start, stop in sorted(of_device):
            start = start if end is None else max(start, end)
            total += max(stop - start, 0)
            end = stop if end is None else max(end, stop)
    return total


def recounted(path):
    """The figures, in numbers of events and seconds."""
    events = complete_events(path)
    launches = [event for event in events if category(event) in CALLS and str(event.get("name", "")).startswith(LAUNCHES)]
    devices = [event for event in events if category(event) in DEVICE]
    kernels = [event for event in devices if category(event) == "kernel"]
    seconds = [sum((event.get("dur", 0) for event in some), Decimal(0)) / 1_000_000 for some in (launches, kernels)]
    return {
        "launches": len(launches),
        "launch seconds": seconds[0],
        "kernels": len(kernels),
        "kernel seconds": seconds[1],
        "events of devices": len(devices),
        "memsets": sum(category(event) == "gpu_memset" for event in devices),
        "busy seconds": busy(devices) / 1_000_000,
    }


def compared(drift, path):
    """The same by drift; none and what it says where it refuses the file."""
    ran = subprocess.run([drift, "compare", path, path, "--json"], capture_output=True, text=True)
    if ran.returncode != 0:
        return None, ran.stderr.strip()
    values = {}
    for table in json.loads(ran.stdout)["tables"]:
        for row in table["rows"]:
            for figure in row["figures"]:
                values.setdefault((row["name"], figure["name"]), figure["values"][0] or 0)
    wanted = [
        ("launches", "kernel launches", "calls"), ("launch seconds", "kernel launches", "seconds"),
        ("kernels", "kernels on devices", "calls"), ("kernel seconds", "kernels on devices", "seconds"),
        ("events of devices", "all", "events"), ("memsets", "memset", "events"), ("busy seconds", "busy", "seconds"),
    ]
    return {name: values[row, figure] for name, row, figure in wanted}, None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("drift")
    parser.add_argument("traces", nargs="+")
    options = parser.parse_args()
    differ = refused = 0
    for path in options.traces:
        found, why = compared(options.drift, path)
        if why:
            refused += 1
            print(f"refused: {why}")
            continue
        expected = recounted(path)
        # drift's times are of whole nanoseconds.
        wrong = {name: (found[name], float(value)) for name, value in expected.items() if abs(found[name] - float(value)) > 1e-9}
        if wrong:
            differ += 1
            print(f"{path}: {wrong}")
    print(f"{len(options.traces) - refused} traces, {differ} of them with figures that differ; {refused} refused")
    sys.exit(differ > 0 or refused == len(options.traces))


main()
