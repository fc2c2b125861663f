"""The page that shows the pictures, and the montage of them."""
import html
import subprocess

from new_file import new_file, new_name

from .comparison import OFF_BY

HEAD = """<!DOCTYPE html>
<meta charset="utf-8"><title>v3demu: gallery</title>
<style>
body { font: 15px sans-serif; margin: 2em; background: #f4f4f2; color: #222 }
img { width: 100%; display: block } figure { margin: 0; width: 32% } div { display: flex; gap: 2% }
figcaption, p { margin: .3em 0 1em } .bad { color: #b00; font-weight: bold }
</style>
"""


def section(result):
    picture, limits = result.picture, result.picture.limits
    parts = [f"<h2>{html.escape(picture.name)}</h2>"]
    if result.images:
        captions = "the emulated Raspberry Pi 5", "lavapipe / llvmpipe", "difference, eight times as strong"
        parts.append("<div>" + "".join(f'<figure><img src="{image}" loading="lazy"><figcaption>{caption}</figcaption></figure>'
                                       for image, caption in zip(result.images, captions)) + "</div>")
    if result.difference:
        parts.append(f"<p>{result.difference}; at most {limits.share} % and {limits.mean}"
                     + (f", because {html.escape(limits.reason)}" if limits.reason else "") + "</p>")
    if result.problem:
        parts.append(f'<p class="bad">{html.escape(result.problem)}</p>')
    return "\n".join(parts)


def write_page(path, results):
    good = sum(not result.problem for result in results)
    with new_file(path) as file:
        file.write(HEAD + f"<h1>{good} of {len(results)} pictures agree</h1>\n"
                   f"<p>A pixel is off when a channel differs by more than {OFF_BY} of 255.</p>\n"
                   + "\n".join(map(section, results)) + "\n")


def write_montage(path, images):
    """Small pictures, four in a row, with ImageMagick."""
    with new_name(path) as draft:
        subprocess.run(["montage", *images, "-tile", "4x", "-geometry", "200x150+2+2", "-background", "white", "-strip",
                        "-depth", "8", "-quality", "95", "PNG24:" + draft], check=True)
