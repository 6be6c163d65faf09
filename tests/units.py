#!/usr/bin/env python3
"""What the wheel builds again although `cargo test --release` has built it, as Cargo plans it; nothing is built.

    tests/units.py

Cargo builds a crate once for every set of its features, and again where a crate that it depends on is built again. So a line that
names features says which crate is missing in python/Cargo.toml, or among the crates of Cargo.toml that are not called. Cargo's plan
(`--unit-graph`) is unstable, so RUSTC_BOOTSTRAP is set.
"""

import json
import os
import subprocess
import sys

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NIGHTLY = {**os.environ, "RUSTC_BOOTSTRAP": "1"}


def units(*command):
    """The units of a command of Cargo: by what makes one the same as another, its name and features."""
    plan = ["cargo", *command, "--locked", "--release", "-Z", "unstable-options", "--unit-graph"]
    graph = json.loads(subprocess.run(plan, cwd=REPOSITORY, env=NIGHTLY, check=True, stdout=subprocess.PIPE).stdout)
    found, keys = {}, {}

    def key(at):
        if at not in keys:
            unit = graph["units"][at]
            target = unit["target"]
            name = (unit["pkg_id"].rpartition("/")[2], target["name"], *target["kind"], unit["mode"], str(unit["platform"]))
            # Dependencies first: a unit is another one if any of these is.
            below = tuple(sorted(key(dependency["index"]) for dependency in unit["dependencies"]))
            features = " ".join(sorted(unit["features"]))
            keys[at] = repr(hash((name, features, unit["profile"]["opt_level"], below)))
            found[keys[at]] = (name, features)
        return keys[at]

    for at in range(len(graph["units"])):
        key(at)
    return found


def main():
    sys.setrecursionlimit(10_000)
    test, wheel = units("test", "--no-run"), units("build", "-p", "moldrift", "--lib")
    features = {}
    for name, those in test.values():
        features.setdefault(name, set()).add(those)
    again = sorted(unit for key, unit in wheel.items() if key not in test)
    for name, those in again:
        print(name[0], name[1], name[-2], sep="\t", end="")
        others = features.get(name, {those})
        print("" if those in others else f"\t{those or 'no features'}, built with {' or '.join(sorted(others))}")
    print(f"{len(again)} of {len(wheel)} units of the wheel are not among the {len(test)} of `cargo test --release`")


main()
