"""What a run on a GPU did: python gpu_record.py RECORD.json [--trace TRACE.json] [--context 320] [--any-engine]

RECORD.json and TRACE.json are written by one `drift eval … -o FOLDER --trace TRACE.json`. For each logit processor: texts that pass,
blocks with junk, lost and invented digits, tokens per second of decoding (prompts, templates and the start of the device left out),
and, with a trace, the steps of a full batch, all of them and those whose rows hold at least so many tokens on average: milliseconds,
bytes that they had to move, and how many times the least time they took, by the bandwidth that drift measured. A step lasts from the end
of the steps before it to its own end, what the host does in between included; full is a batch nine tenths of whose rows run.

Ends with 1 where steps were not done by drift's kernels, but with --any-engine, or where the automaton left junk.
"""

import argparse
import json
import sys


def steady(events, run, context):
    """Seconds, steps, bytes, tokens and mean context of the steps of a full batch that holds so many tokens."""
    ends = [
        (event["ts"] + event["dur"], event["args"])
        for event in events
        if event.get("ph") == "X" and event["pid"] == run and event["name"] == "forward" and event["args"].get("steps")
    ]
    most = max((told["rows"] for _, told in ends), default=0)
    whole = dict(seconds=0.0, steps=0, bytes=0.0, positions=0, keys_read=0, row_passes=0)
    for (before, told_before), (end, told) in zip(ends, ends[1:]):
        is_full = told["rows"] == told_before["rows"] == most and told["row_passes"] >= 0.9 * most * told["steps"]
        if is_full and told["keys_read"] >= context * told["row_passes"]:
            whole["seconds"] += (end - before) / 1e6
            for key in ("steps", "bytes", "positions", "keys_read", "row_passes"):
                whole[key] += told[key]
    return most, whole


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("record")
    parser.add_argument("--trace")
    parser.add_argument("--context", type=int, default=320)
    parser.add_argument("--any-engine", action="store_true")
    options = parser.parse_args()
    with open(options.record) as file:
        runs = json.load(file)["runs"]
    events = []
    if options.trace:
        with open(options.trace) as file:
            events = json.load(file)["traceEvents"]
    wrong = []
    print("| model, LP, batch | pass | junk | truncated | invented | tokens/s of decoding | start, s | share of the floor |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for run in runs:
        name = f"{run['model']}, {run['lp']}, {run['batch']}"
        seconds, floor = run["seconds"], run["floor"] or {}
        decoding = seconds["total"] - seconds["prefill"] - seconds["start"] - seconds["templates"]
        junk = max(run["junk_blocks_strict"], run["junk_blocks_letters"])
        share = floor.get("floor_share")
        print(f"| {name} | {run['passed']} of {run['samples']} | {junk} | {run['truncated_blocks']} | {run['invented_blocks']} "
              f"| {run['generated_tokens'] / decoding:.0f} | {seconds['start']:.2f} | {'-' if share is None else f'{share:.3f}'} |")
        if run["kernel_steps"] != run["decode_steps"] and not options.any_engine:
            wrong.append(f"{name}: drift's kernels did {run['kernel_steps']} of {run['decode_steps']} steps")
        if run["lp"] == "automaton" and junk:
            wrong.append(f"{name}: {junk} blocks with junk")
    if events:
        print("\n| full batch | mean context | steps | ms a step | tokens/s | GB a step "
              "| GB/s reached | least ms, at GB/s measured | times the least |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    wanted = [(place, run, context) for place, run in enumerate(runs if events else []) for context in (0, options.context)]
    for place, run, context in wanted:
        rows, whole = steady(events, place, context)
        name = f"{run['model']}, {run['lp']}, {rows} rows" + (f", context of {context} and more" if context else "")
        if not whole["steps"]:
            print(f"| {name} | no such steps | | | | | | | |")
            continue
        step, moved = whole["seconds"] / whole["steps"], whole["bytes"] / whole["steps"]
        rate = (run["floor"] or {}).get("bytes_per_second")
        least = moved / rate if rate else None
        told = "- | -" if least is None else f"{least * 1e3:.3f}, {rate / 1e9:.0f} | {step / least:.2f}"
        print(f"| {name} | {whole['keys_read'] / whole['row_passes']:.0f} | {whole['steps']} | {step * 1e3:.3f} "
              f"| {whole['positions'] / whole['seconds']:.0f} | {moved / 1e9:.3f} | {moved / step / 1e9:.0f} | {told} |")
    sys.exit("\n".join(wrong) or None)


main()
