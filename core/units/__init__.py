"""Units of a network: images optimised for a unit, and images that activate it most.

`maximise` draws an image that drives a unit up (`PARAMETERISATIONS` names the ways of drawing); `units` finds what in
a set of images drives it most, and projects it down to the pixels.
"""

from core.registry import Registry

PARAMETERISATIONS = Registry(
    "parameterisation",
    {
        "fourier": "core.units.parameterisations:Fourier",
        "maco": "core.units.maco:Maco",
        "pixels": "core.units.parameterisations:Pixels",
    },
)
