"""Crystals made by substitution into prototypes, as `crystal-text`: the data of `crystals.py`.

A crystal is a prototype (rock salt, CsCl, zinc blende, wurtzite, fluorite, antifluorite, CdI2, rutile, perovskite, spinel,
elpasolite) with ions whose charges add up to zero. Its lengths follow from ionic radii (Shannon, 1976, rounded), with 1 % of
noise. In three of ten crystals the fractions have noise of 0.01, and the angles of 0.7 degrees. One crystal in ten is written
as some programs write it: fractions less than half of the last decimal below zero are not moved into the cell, so they are
`-0.00`.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

#: Radii in Å of ions by charge.
CATIONS = {
    1: {"Li": 0.76, "Na": 1.02, "K": 1.38, "Rb": 1.52, "Cs": 1.67, "Ag": 1.15, "Cu": 0.77, "Tl": 1.5},
    2: {
        **{"Mg": 0.72, "Ca": 1.0, "Sr": 1.18, "Ba": 1.35, "Zn": 0.74, "Cd": 0.95, "Mn": 0.83, "Fe": 0.78},
        **{"Co": 0.75, "Ni": 0.69, "Pb": 1.19, "Eu": 1.17, "Yb": 1.02, "Hg": 1.02, "Be": 0.45},
    },
    3: {
        **{"Al": 0.54, "Ga": 0.62, "In": 0.8, "Sc": 0.75, "Y": 0.9, "La": 1.03, "Cr": 0.62, "Fe": 0.65},
        **{"V": 0.64, "Bi": 1.03, "Gd": 0.94, "Nd": 0.98, "Sm": 0.96, "Lu": 0.86, "Rh": 0.67},
    },
    4: {
        **{"Ti": 0.61, "Zr": 0.72, "Hf": 0.71, "Sn": 0.69, "Ge": 0.53, "Ce": 0.87, "Pb": 0.78, "Mn": 0.53},
        **{"Ru": 0.62, "U": 0.89, "Th": 0.94, "Mo": 0.65, "Ir": 0.63},
    },
    5: {"Nb": 0.64, "Ta": 0.64, "V": 0.54, "Sb": 0.6},
}
ANIONS = {
    1: {"F": 1.33, "Cl": 1.81, "Br": 1.96, "I": 2.2},
    2: {"O": 1.4, "S": 1.84, "Se": 1.98, "Te": 2.21},
    3: {"N": 1.46, "P": 2.12, "As": 2.22},
}

Site = tuple[float, float, float]
#: Lengths in Å, angles in degrees, and for each ion of the formula its fractions.
Cell = tuple[Site, Site, list[list[Site]]]

CUBIC, PRIMITIVE, HEXAGONAL = (90.0, 90.0, 90.0), (60.0, 60.0, 60.0), (90.0, 90.0, 120.0)
ORIGIN, CENTRE = (0.0, 0.0, 0.0), (0.5, 0.5, 0.5)
FACES = [(0.0, 0.0, 0.0), (0.0, 0.5, 0.5), (0.5, 0.0, 0.5), (0.5, 0.5, 0.0)]


def face_centred(a: float, sites: list[list[Site]]) -> Cell:
    """The primitive cell of a face-centred lattice of cubes of length `a`."""
    return (a / math.sqrt(2),) * 3, PRIMITIVE, sites


def cubes(a: float, sites: list[list[Site]]) -> Cell:
    """The cube of the same lattice: four atoms for each one. Its sites lie on the diagonal, where fractions are equal."""
    moved = [
        [tuple((x + y) % 1 for x, y in zip(site, face, strict=True)) for site in own for face in FACES]
        for own in sites
    ]
    return (a,) * 3, CUBIC, moved  # type: ignore[return-value]


def rock_salt(a: float, x: float) -> Cell:
    return face_centred(2 * (a + x), [[ORIGIN], [CENTRE]])


def rock_salt_cube(a: float, x: float) -> Cell:
    return cubes(2 * (a + x), [[ORIGIN], [CENTRE]])


def caesium_chloride(a: float, x: float) -> Cell:
    return (2 * (a + x) / math.sqrt(3),) * 3, CUBIC, [[ORIGIN], [CENTRE]]


def zinc_blende(a: float, x: float) -> Cell:
    return face_centred(3.8 * (a + x) / math.sqrt(3), [[ORIGIN], [(0.25, 0.25, 0.25)]])


def zinc_blende_cube(a: float, x: float) -> Cell:
    return cubes(3.8 * (a + x) / math.sqrt(3), [[ORIGIN], [(0.25, 0.25, 0.25)]])


def wurtzite(a: float, x: float) -> Cell:
    length = 0.95 * (a + x) * math.sqrt(8 / 3)
    first, second = (1 / 3, 2 / 3), (2 / 3, 1 / 3)
    sites = [[(*first, z), (*second, z + 0.5)] for z in (0.0, 0.375)]
    return (length, length, 1.633 * length), HEXAGONAL, sites


def fluorite(a: float, x: float) -> Cell:
    return face_centred(4 * (a + x) / math.sqrt(3), [[ORIGIN], [(0.25, 0.25, 0.25), (0.75, 0.75, 0.75)]])


def antifluorite(a: float, x: float) -> Cell:
    return face_centred(3.9 * (a + x) / math.sqrt(3), [[(0.25, 0.25, 0.25), (0.75, 0.75, 0.75)], [ORIGIN]])


def cadmium_iodide(a: float, x: float) -> Cell:
    length, z = math.sqrt(2) * (a + x), 0.25
    sites = [[ORIGIN], [(1 / 3, 2 / 3, z), (2 / 3, 1 / 3, 1 - z)]]
    return (length, length, 1.62 * length), HEXAGONAL, sites


def rutile(a: float, x: float) -> Cell:
    u = 0.305
    length = (a + x) / (math.sqrt(2) * u)
    anions = [(u, u, 0.0), (1 - u, 1 - u, 0.0), (0.5 + u, 0.5 - u, 0.5), (0.5 - u, 0.5 + u, 0.5)]
    return (length, length, 0.65 * length), CUBIC, [[ORIGIN, CENTRE], anions]


def perovskite(a: float, b: float, x: float) -> Cell:
    length = (math.sqrt(2) * (a + x) + 2 * (b + x)) / 2
    anions = [(0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.5)]
    return (length,) * 3, CUBIC, [[ORIGIN], [CENTRE], anions]


def spinel(a: float, b: float, x: float) -> Cell:
    u = 0.2625
    v = 0.5 - 3 * u
    anions = [(u, u, u), (u, u, v), (u, v, u), (v, u, u)]
    anions += [tuple(-f % 1 for f in site) for site in anions]  # type: ignore[misc]
    octahedra = [CENTRE, (0.5, 0.5, 0.0), (0.5, 0.0, 0.5), (0.0, 0.5, 0.5)]
    tetrahedra = [(0.125, 0.125, 0.125), (0.875, 0.875, 0.875)]
    return face_centred(
        (a + b + 2 * x) / 2 / 0.238, [tetrahedra, octahedra, [(f, g, h % 1) for f, g, h in anions]]
    )


def elpasolite(a: float, b: float, c: float, x: float) -> Cell:
    length = 2 * (b + c + 2 * x)
    f = (c + x) / length
    anions = [
        (1 - f, f, f),
        (f, 1 - f, f),
        (f, f, 1 - f),
        (f, 1 - f, 1 - f),
        (1 - f, f, 1 - f),
        (1 - f, 1 - f, f),
    ]
    return face_centred(length, [[(0.25, 0.25, 0.25), (0.75, 0.75, 0.75)], [CENTRE], [ORIGIN], anions])


#: Prototypes: how many of each ion a formula has, and the charges that each ion may have.
PROTOTYPES: list[tuple[Callable[..., Cell], tuple[int, ...], list[tuple[int, ...]]]] = [
    (rock_salt, (1, 1), [(1, 1), (2, 2), (3, 3)]),
    (rock_salt_cube, (1, 1), [(1, 1), (2, 2), (3, 3)]),
    (caesium_chloride, (1, 1), [(1, 1)]),
    (zinc_blende, (1, 1), [(2, 2), (3, 3)]),
    (zinc_blende_cube, (1, 1), [(2, 2), (3, 3)]),
    (wurtzite, (1, 1), [(2, 2), (3, 3)]),
    (fluorite, (1, 2), [(2, 1), (4, 2)]),
    (antifluorite, (2, 1), [(1, 2)]),
    (cadmium_iodide, (1, 2), [(2, 1), (4, 2)]),
    (rutile, (1, 2), [(2, 1), (4, 2)]),
    (perovskite, (1, 1, 3), [(2, 4, 2), (3, 3, 2), (1, 5, 2), (1, 2, 1)]),
    (spinel, (1, 2, 4), [(2, 3, 2)]),
    (elpasolite, (2, 1, 1, 6), [(1, 1, 3, 1)]),
]


@dataclass(frozen=True)
class Crystal:
    """A substituted prototype before noise: its cell, and the elements of its sites."""

    #: Elements in the order of the formula, with the number of each in a formula unit.
    formula: tuple[tuple[str, int], ...]
    cell: Cell
    #: The name of the prototype.
    prototype: str

    @property
    def atoms(self) -> list[tuple[str, Site]]:
        """Elements and fractions."""
        return [
            (name, site) for (name, _), own in zip(self.formula, self.cell[2], strict=True) for site in own
        ]

    def text(self, draw: random.Random) -> str:
        """The text of the crystal with noise."""
        lengths, angles, _ = self.cell
        scale = {length: draw.gauss(1, 0.01) for length in lengths}
        is_distorted, is_in_cell = draw.random() < 0.3, draw.random() < 0.9
        lines = [" ".join(f"{length * scale[length]:.1f}" for length in lengths)]
        moved = [angle + draw.gauss(0, 0.7) if is_distorted else angle for angle in angles]
        lines.append(" ".join(f"{angle:.0f}" for angle in moved))
        for name, site in self.atoms:
            # Noise that an optimiser leaves, where a site has none of its own.
            own = [x + draw.gauss(0, 0.01 if is_distorted else 0.0005) for x in site]
            # Behind the cell's border, but not by more than rounding removes.
            own = [x if -0.005 < x < 0 and not is_in_cell else round(x % 1, 2) % 1 for x in own]
            lines += [name, " ".join(f"{x:.2f}" for x in own)]
        return "\n".join(lines)


def crystals() -> list[Crystal]:
    """All substituted prototypes: each with each combination of different ions."""
    found = []
    for prototype, counts, all_charges in PROTOTYPES:
        for charges in all_charges:
            ions = [CATIONS[charge].items() for charge in charges[:-1]] + [ANIONS[charges[-1]].items()]
            for chosen in itertools.product(*ions):
                names = [name for name, _ in chosen]
                if len(set(names)) == len(names):
                    cell = prototype(*[radius for _, radius in chosen])
                    found.append(Crystal(tuple(zip(names, counts, strict=True)), cell, prototype.__name__))
    return found
