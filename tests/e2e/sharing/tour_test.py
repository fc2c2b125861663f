#!/usr/bin/env python3
"""tools/tour with a program that works, one that ends, and one that the GPU does not draw, which it must refuse.

  tour_test.py BUILD MESA FOLDER
"""
import dataclasses
import importlib.machinery
import importlib.util
import os
import shutil
import sys

sys.dont_write_bytecode = True
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))))
BUILD, MESA, FOLDER = sys.argv[1:]


def load_tour():
    loader = importlib.machinery.SourceFileLoader("tour", os.path.join(ROOT, "tools", "tour"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tour", loader))
    loader.exec_module(module)
    return module


def expect(condition, what):
    if not condition:
        print(what)
        sys.exit(1)


def main():
    for program in "weston", "Xwayland", "glxgears", "xlogo", "xprop", "convert":
        if not shutil.which(program):
            print(f"skipped: {program} is not installed")
            sys.exit(77)
    tour = load_tour()
    gears = next(program for program in tour.programs.programs(0) if program.name == "glxgears")
    stops = [gears, tour.programs.Program("logo", ("xlogo",), "x11", patience=3),
             tour.programs.Program("gone", ("false",), says="V3D"),
             dataclasses.replace(gears, name="other", says="llvmpipe", patience=6)]
    options = tour.argparse.Namespace(mesa=MESA, build=BUILD, output=FOLDER)
    results = {result.name: result for result in tour.tour(stops, options, tour.Pages())}
    good = results["glxgears"]
    expect(not good.problem and good.jobs >= gears.jobs and "V3D" in good.renderer, good)
    expect("0 jobs" in results["logo"].problem, results["logo"])
    expect("ended with status 1" in results["gone"].problem, results["gone"])
    expect("nothing said of llvmpipe" in results["other"].problem, results["other"])
    picture, empty = (os.path.join(FOLDER, name) for name in ("glxgears.png", "empty.png"))
    expect(not tour.blankness(picture, tour.pixels(empty)), "gears are taken for blank")
    expect(tour.blankness(empty, tour.pixels(empty)), "an empty desktop is not taken for blank")
    tour.write_page(os.path.join(FOLDER, "index.html"), list(results.values()), ["absent"])
    with open(os.path.join(FOLDER, "index.html"), encoding="utf-8") as page:
        text = page.read()
    expect("1 of 4 programs work" in text and "absent" in text and text.count('class="bad"') == 3, text)


if __name__ == "__main__":
    main()
