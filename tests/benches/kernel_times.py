"""Time by kernel, from what Nsight Compute measured: python kernel_times.py FILE.csv [STEPS]

FILE.csv is written by `ncu --csv --print-units base --metrics gpu__time_duration.sum,dram__bytes.sum --log-file FILE.csv COMMAND`.
Prints launches, microseconds a launch, share of all time and GB/s of each kernel; kernels of libraries together; and the share of what
lays tokens out, follows the logit processor and draws.
"""

import csv
import sys

OWN = {
    "embed", "append_all", "attend", "add_norm", "gated", "last_norm", "gather", "head", "choose", "choose_any",
    "enter", "pack", "product_16", "product_32",
}


# What a logit processor and a draw take.
OF_PROCESSOR = ("choose", "choose_any", "pack", "enter")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as file:
        lines = [line for line in file if line.startswith('"')]
    launches, times, moved = {}, {}, {}
    for row in csv.DictReader(lines):
        name = row["Kernel Name"].split("(")[0].split("<")[0].strip()
        name = name if name in OWN else "products and others"
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except ValueError:
            # What could not be measured.
            continue
        if row["Metric Name"] == "gpu__time_duration.sum":
            launches[name] = launches.get(name, 0) + 1
            times[name] = times.get(name, 0.0) + value / 1e9
        elif row["Metric Name"] == "dram__bytes.sum":
            moved[name] = moved.get(name, 0.0) + value
    if not times:
        sys.exit(f"{sys.argv[1]}: no kernel was measured")
    whole = sum(times.values())
    print("| kernel | launches | us a launch | share | GB/s |\n| --- | --- | --- | --- | --- |")
    for name, taken in sorted(times.items(), key=lambda item: -item[1]):
        rate = moved.get(name, 0.0) / taken / 1e9
        print(f"| {name} | {launches[name]} | {taken / launches[name] * 1e6:.2f} | {100 * taken / whole:.1f} % | {rate:.0f} |")
    drawing = sum(times.get(name, 0.0) for name in OF_PROCESSOR)
    print(f"\n{whole * 1e3:.2f} ms in all; logit processor and draw {100 * drawing / whole:.2f} %")


main()
