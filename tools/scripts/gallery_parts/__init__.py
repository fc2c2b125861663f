"""Renders programs on the emulated GPU and on Mesa's software renderers, and compares what they draw.

image        pictures in memory and in files
comparison   how much two pictures differ, and how much they may
windows      a headless Weston and an X server for programs that want a window
drivers      the emulated GPU and the software renderers, and how a program runs on each
catalogue    the pictures: which program draws each, and how
page         the page that shows them
"""
