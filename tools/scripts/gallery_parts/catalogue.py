"""The pictures: which program draws each, and how much each may differ from its reference."""
import dataclasses
import os
import re
import subprocess

from .comparison import Limits
from .image import read_ppm
from .windows import Failure

# Benchmarks of glmark2: at least one of every scene that `glmark2-es2 --list-scenes` names.
GLMARK2 = {
    "build": "build:use-vbo=true",
    "build-arrays": "build:use-vbo=false",
    "texture-nearest": "texture:texture-filter=nearest",
    "texture": "texture:texture-filter=linear",
    "texture-mipmap": "texture:texture-filter=mipmap",
    "shading-gouraud": "shading:shading=gouraud",
    "shading-blinn-phong": "shading:shading=blinn-phong-inf",
    "shading": "shading:shading=phong",
    "shading-cel": "shading:shading=cel",
    "bump-high-poly": "bump:bump-render=high-poly",
    "bump": "bump:bump-render=normals",
    "bump-height": "bump:bump-render=height",
    "effect2d": "effect2d:kernel=0,1,0;1,-4,1;0,1,0;",
    "effect2d-blur": "effect2d:kernel=1,1,1,1,1;1,1,1,1,1;1,1,1,1,1;",
    "pulsar": "pulsar:light=false:quads=5:texture=false",
    "pulsar-texture": "pulsar:light=false:quads=5:texture=true",
    "desktop-blur": "desktop:effect=blur:blur-radius=5:passes=1:separable=true:windows=4",
    "desktop-shadow": "desktop:effect=shadow:windows=4",
    "buffer": "buffer:update-fraction=0.5:update-dispersion=0.9:columns=200:update-method=map:interleave=false",
    "buffer-subdata": "buffer:update-fraction=0.5:update-dispersion=0.9:columns=200:update-method=subdata:interleave=false",
    "buffer-interleave": "buffer:update-fraction=0.5:update-dispersion=0.9:columns=200:update-method=map:interleave=true",
    "ideas": "ideas:speed=duration",
    "jellyfish": "jellyfish",
    "terrain": "terrain",
    "shadow": "shadow",
    "refract": "refract",
    "clear": "clear",
    "conditionals": "conditionals:fragment-steps=0:vertex-steps=0",
    "conditionals-fragment": "conditionals:fragment-steps=5:vertex-steps=0",
    "conditionals-vertex": "conditionals:fragment-steps=0:vertex-steps=5",
    "function": "function:fragment-complexity=low:fragment-steps=5",
    "function-medium": "function:fragment-complexity=medium:fragment-steps=5",
    "loop": "loop:fragment-loop=false:fragment-steps=5:vertex-steps=5",
    "loop-steps": "loop:fragment-steps=5:fragment-uniform=false:vertex-steps=5",
    "loop-uniform": "loop:fragment-steps=5:fragment-uniform=true:vertex-steps=5",
}
GLMARK2_FRAME = 12
GLMARK2_STEP = 0.35  # seconds from one frame to the next by the program's clock
VKCUBE_FRAMES = (1, 12, 24, 36)
VKCUBE_SIZE = 500
SAMPLES = ("shadow", "normal_map", "normal_map_trilinear", "instancing", "msaa")

# What the montage shows.
HIGHLIGHTS = ("vulkan-shadow", "vulkan-normal_map", "vulkan-instancing", "vulkan-msaa", "vkcube-36", "glmark2-terrain",
              "glmark2-jellyfish", "glmark2-refract", "glmark2-ideas", "glmark2-desktop-blur", "glmark2-bump", "glmark2-shadow")

ANISOTROPY = Limits(share=6, mean=2, reason="which texels an anisotropic lookup takes is left to the implementation: "
                    "llvmpipe weighs an ellipse, the model averages lookups along its longer side")

# Pictures whose limits are not the common ones.
LIMITS = {
    "vulkan-normal_map": ANISOTROPY,
    "gl-normal_map": ANISOTROPY,
    "glmark2-clear": Limits(colors=1, reason="the scene does nothing but fill the window with one colour"),
    "glmark2-terrain": Limits(share=1, mean=1, reason="heights come from a rendered texture of 8 bits, in which one step of "
                              "rounding moves a vertex by 1/255 of the highest hill"),
}


# The same on VideoCore IV.
CORNERS = "corners of triangles lie on a grid of 1/16 px"
LIMITS_OF_VC4 = {
    "glmark2-texture-nearest": Limits(share=0.6, reason=CORNERS),
    "glmark2-bump-height": Limits(share=0.5, reason="lookups return 8 bits, and heights are subtracted from each other"),
    "glmark2-pulsar-texture": Limits(share=1, reason=CORNERS),
    "glmark2-buffer": Limits(share=5, mean=1, reason=CORNERS + ", and so do the lines within them"),
    "glmark2-buffer-subdata": Limits(share=5, mean=1, reason=CORNERS + ", and so do the lines within them"),
    "glmark2-buffer-interleave": Limits(share=5, mean=1, reason=CORNERS + ", and so do the lines within them"),
    "glmark2-jellyfish": Limits(share=0.8, reason=CORNERS),
    "glmark2-terrain": Limits(share=25, mean=5, reason="heights and the noise of its colours are sampled with 8 bits and "
                              "blended by weights of 1/64"),
    "glmark2-refract": Limits(share=2, mean=0.6, reason="lookups return 8 bits, by which rays are bent"),
}
# Their programs compute from gl_FragCoord, which lacks half a pixel in the driver.
WRONG_ON_VC4 = ("glmark2-conditionals", "glmark2-conditionals-fragment", "glmark2-conditionals-vertex", "glmark2-function",
                "glmark2-function-medium", "glmark2-loop", "glmark2-loop-steps", "glmark2-loop-uniform")


@dataclasses.dataclass(frozen=True)
class Picture:
    """render(driver, path) draws it into a PPM, or raises Failure."""
    name: str
    render: object
    needs: str  # "Vulkan", "OpenGL ES 3" or "OpenGL ES 2"
    limits: Limits


def take(path, draw):
    """What `draw` leaves in `path`, and nothing older."""
    if os.path.exists(path):
        os.remove(path)
    draw()
    if not os.path.exists(path):
        raise Failure("the program left no picture")
    try:
        return read_ppm(path)
    except ValueError as error:
        raise Failure(str(error)) from error
    finally:
        os.remove(path)


def glmark2(size, benchmark):
    """llvmpipe computes mediump with 16 bits, a V3D with 32: the reference is drawn with highp, the emulated picture with
    the precision that the benchmark has."""
    def render(driver, path):
        precision = ":fragment-precision=high,high,high,high:vertex-precision=high,high,high,high" if driver.name == "llvmpipe" else ""
        return take(path, lambda: driver.run(
            ["glmark2-es2-wayland", "--off-screen", "-s", size, "-b", benchmark + precision], window="wayland",
            LD_PRELOAD=driver.library("libv3demu-gl-frames.so"), V3DEMU_GL_FRAMES_STEP=str(GLMARK2_STEP),
            V3DEMU_GL_FRAMES_SAVE=f"{GLMARK2_FRAME}:{path}"))
    return render


def vkcube(frame):
    """The presented image may be padded to the right. Mesa hands images to the server in a thread of its own, which the end of
    the program stops: so many frames follow that this one's image must have been presented again."""
    def render(driver, path):
        prefix = os.path.splitext(path)[0]
        side = str(VKCUBE_SIZE)
        return take(f"{prefix}-{frame}.ppm", lambda: driver.run(
            ["vkcube", "--c", str(frame + 8), "--width", side, "--height", side], window="x11",
            LD_PRELOAD=driver.library("libv3demu-frames.so"), V3DEMU_FRAMES_SAVE=f"{frame}:{prefix}",
        )).cropped(VKCUBE_SIZE, VKCUBE_SIZE)
    return render


def sample(size, program, scene):
    def render(driver, path):
        return take(path, lambda: driver.run([driver.program(program), "--scene", scene, "--output", path, "--size", size]))
    return render


def pictures(size, vc4=False):
    """All of them; size: "WIDTHxHEIGHT" of those that have no size of their own; vc4: those that VideoCore IV draws."""
    def picture(name, render, needs):
        limits = LIMITS.get(name, Limits())
        return Picture(name, render, needs, LIMITS_OF_VC4.get(name, limits) if vc4 else limits)
    found = [picture(f"{api}-{scene}", sample(size, f"{api}_samples", scene), needs)
             for api, needs in (("vulkan", "Vulkan"), ("gl", "OpenGL ES 3")) for scene in SAMPLES]
    found += [picture(f"vkcube-{frame}", vkcube(frame), "Vulkan") for frame in VKCUBE_FRAMES]
    found += [picture(f"glmark2-{name}", glmark2(size, benchmark), "OpenGL ES 2") for name, benchmark in GLMARK2.items()]
    return [p for p in found if not vc4 or (p.needs == "OpenGL ES 2" and p.name not in WRONG_ON_VC4)]


def missing_scenes(build):
    """Scenes that the installed programs and those of the build offer and no picture shows."""
    known = {benchmark.split(":")[0] for benchmark in GLMARK2.values()}
    listed = subprocess.run(["glmark2-es2-wayland", "--list-scenes"], capture_output=True, text=True, check=True).stdout
    missing = ["glmark2-" + scene for scene in re.findall(r"^\[Scene\] (\S+)", listed, re.MULTILINE) if scene not in known]
    for api in ("vulkan", "gl"):
        names = subprocess.run([os.path.join(build.folder, "bin", f"{api}_samples"), "--list"], capture_output=True, text=True, check=True)
        missing += [f"{api}-{scene}" for scene in names.stdout.split() if scene not in SAMPLES]
    return missing
