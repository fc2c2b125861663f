"""Compiles a SPIR-V module with the driver by Vulkan and draws, or dispatches, once: run under v3demu profile by tools/shader.

usage: vulkan.py FILE COMPANION

Uniform blocks, push constants and attributes are 1, other buffers and images 0; images have 64 x 64 texels. A fragment shader covers 128 x 128
pixels, a vertex shader has 4096 vertices and a compute shader 64 groups. Robust accesses are off, and all else that the device
can do is on.
"""
import collections
import ctypes as c
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
# pylint: disable=wrong-import-position
from shader_parts import spirv
from shader_parts.companion import Failure
from shader_parts.sizes import GROUPS, SIDE, TEXELS, VERTICES
# pylint: enable=wrong-import-position

BUFFER = 1 << 16  # bytes
PUSHED = 128  # bytes of push constants that all devices have
FORMATS = {"float": (100, 103, 106, 109), "int": (99, 102, 105, 108), "uint": (98, 101, 104, 107)}  # R32 to R32G32B32A32
COLORS = {"float": 37, "int": 42, "uint": 41}  # R8G8B8A8
DEPTH16, COLOR_ASPECT, DEPTH_ASPECT = 124, 1, 2
# What images of shaders are stored in: Vulkan's by SPIR-V's.
STORED = {1: 109, 2: 97, 3: 100, 4: 37, 5: 38, 6: 103, 7: 83, 8: 122, 9: 76, 10: 91, 11: 64, 12: 70, 13: 16, 14: 77, 15: 9, 21: 108,
          22: 96, 23: 42, 24: 99, 25: 102, 26: 82, 27: 21, 28: 75, 29: 14, 30: 107, 31: 95, 32: 41, 33: 98, 34: 68, 35: 101,
          36: 81, 37: 20, 38: 74, 39: 13}
GENERAL = 1
VERTEX, FRAGMENT, COMPUTE = 1, 16, 32
POINTS, TRIANGLES = 0, 3

KEPT = []  # what Vulkan was told the address of
LETTERS = {"I": c.c_uint32, "i": c.c_int32, "f": c.c_float, "z": c.c_size_t, "Q": c.c_uint64, "p": c.c_void_p}


def structure(fields, kind=None):
    """A type of Vulkan: NAME:LETTER each. With a kind it begins with sType and pNext."""
    head = [] if kind is None else [("sType", c.c_uint32), ("next", c.c_void_p)]
    named = [(name, LETTERS[letter]) for name, _, letter in (field.partition(":") for field in fields.split())]
    made = type("Structure", (c.Structure,), {"_fields_": head + named})
    return lambda **values: made(**({} if kind is None else {"sType": kind}) | values)


ApplicationInfo = structure("name:p version:I engine:p engine_version:I api:I", 0)
InstanceInfo = structure("flags:I application:p layer_count:I layers:p extension_count:I extensions:p", 1)
QueueInfo = structure("flags:I family:I count:I priorities:p", 2)
DeviceInfo = structure("flags:I queue_count:I queues:p layer_count:I layers:p extension_count:I extensions:p features:p", 3)
SubmitInfo = structure("wait_count:I waits:p stages:p command_count:I commands:p signal_count:I signals:p", 4)
MemoryInfo = structure("size:Q type:I", 5)
BufferInfo = structure("flags:I size:Q usage:I sharing:I family_count:I families:p", 12)
BufferViewInfo = structure("flags:I buffer:Q format:I offset:Q range:Q", 13)
ImageInfo = structure("flags:I type:I format:I width:I height:I depth:I levels:I layers:I samples:I tiling:I usage:I sharing:I "
                      "family_count:I families:p layout:I", 14)
ViewInfo = structure("flags:I image:Q type:I format:I r:I g:I b:I a:I aspect:I level:I levels:I layer:I layers:I", 15)
ModuleInfo = structure("flags:I size:z code:p", 16)
StageInfo = structure("flags:I stage:I module:Q name:p specialization:p", 18)
VertexInputInfo = structure("flags:I binding_count:I bindings:p attribute_count:I attributes:p", 19)
AssemblyInfo = structure("flags:I topology:I restart:I", 20)
ViewportInfo = structure("flags:I viewport_count:I viewports:p scissor_count:I scissors:p", 22)
RasterInfo = structure("flags:I clamp:I discard:I polygon:I cull:I front:I bias:I constant:f bias_clamp:f slope:f width:f", 23)
SampleInfo = structure("flags:I samples:I shading:I least:f mask:p alpha_to_coverage:I alpha_to_one:I", 24)
BlendInfo = structure("flags:I logic:I op:I count:I attachments:p r:f g:f b:f a:f", 26)
GraphicsInfo = structure("flags:I stage_count:I stages:p vertices:p assembly:p tessellation:p viewport:p raster:p samples:p depth:p "
                         "blend:p dynamic:p layout:Q render_pass:Q subpass:I base:Q base_index:i", 28)
LayoutInfo = structure("flags:I set_count:I sets:p range_count:I ranges:p", 30)
SamplerInfo = structure("flags:I magnify:I minify:I mipmap:I u:I v:I w:I bias:f anisotropic:I most:f compare:I op:I min_lod:f "
                        "max_lod:f border:I raw:I", 31)
SetLayoutInfo = structure("flags:I count:I bindings:p", 32)
PoolInfo = structure("flags:I sets:I count:I sizes:p", 33)
SetsInfo = structure("pool:Q count:I layouts:p", 34)
WriteInfo = structure("set:Q binding:I element:I count:I type:I images:p buffers:p views:p", 35)
FramebufferInfo = structure("flags:I render_pass:Q count:I attachments:p width:I height:I layers:I", 37)
RenderPassInfo = structure("flags:I count:I attachments:p subpass_count:I subpasses:p dependency_count:I dependencies:p", 38)
CommandPoolInfo = structure("flags:I family:I", 39)
CommandsInfo = structure("pool:Q level:I count:I", 40)
BeginInfo = structure("flags:I inheritance:p", 42)
PassBegin = structure("render_pass:Q framebuffer:Q x:i y:i width:I height:I count:I values:p", 43)
ImageBarrier = structure("from_access:I to_access:I from_layout:I to_layout:I from_family:I to_family:I image:Q aspect:I level:I "
                         "levels:I layer:I layers:I", 45)
Binding = structure("binding:I type:I count:I stages:I samplers:p")
Range = structure("stages:I offset:I size:I")
Attribute = structure("location:I binding:I format:I offset:I")
VertexBinding = structure("binding:I stride:I rate:I")
Attachment = structure("flags:I format:I samples:I load:I store:I stencil_load:I stencil_store:I before:I after:I")
Reference = structure("attachment:I layout:I")
Subpass = structure("flags:I bind:I input_count:I inputs:p count:I colors:p resolves:p depth:p kept_count:I kept:p")
Blend = structure("enable:I a:I b:I c:I d:I e:I f:I mask:I")
Rectangle = structure("x:i y:i width:I height:I")
Viewport = structure("x:f y:f width:f height:f near:f far:f")
PoolSize = structure("type:I count:I")
ImageUse = structure("sampler:Q view:Q layout:I")
BufferUse = structure("buffer:Q offset:Q range:Q")
Needs = structure("size:Q alignment:Q types:I")


def at(made):
    """The address of a structure, of all structures of a list, or of bytes, which live until the end."""
    if isinstance(made, list):
        if not made:
            return None
        made = (type(made[0]) * len(made))(*made)
    elif isinstance(made, bytes):
        made = c.create_string_buffer(made)
    KEPT.append(made)
    return c.addressof(made)


class Device:
    """The first device, a queue of it, and what calls on them need."""

    def __init__(self):
        self.library = c.CDLL("libvulkan.so.1")
        instance, physical, device, count = c.c_void_p(), c.c_void_p(), c.c_void_p(), c.c_uint32(1)
        application = ApplicationInfo(api=1 << 22 | 2 << 12)
        self.check("vkCreateInstance", c.byref(InstanceInfo(application=at(application))), None, c.byref(instance))
        self.library.vkEnumeratePhysicalDevices(instance, c.byref(count), c.byref(physical))
        if not physical:
            sys.exit("no Vulkan device")
        queue = QueueInfo(count=1, priorities=at((c.c_float * 1)(1.0)))
        features = self._features(physical)
        info = DeviceInfo(next=features, queue_count=1, queues=at(queue))
        self.check("vkCreateDevice", physical, c.byref(info), None, c.byref(device))
        self.device, self.queue = device, c.c_void_p()
        self.library.vkGetDeviceQueue(device, 0, 0, c.byref(self.queue))

    def _features(self, physical):
        """All that it has, but for what makes accesses robust: that is code which programs seldom ask for."""
        chain, parts = 0, []
        for kind, least in ((53, 15), (51, 47), (49, 12), (1000059000, 55)):  # of Vulkan 1.3, 1.2, 1.1 and 1.0
            fields = " ".join(f"f{number}:I" for number in range(least))
            parts.append(structure(fields, kind)(next=chain or None))
            chain = at(parts[-1])
        self.library.vkGetPhysicalDeviceFeatures2(physical, c.c_void_p(chain))
        for part in parts:
            if part.sType in (53, 1000059000):
                part.f0 = 0  # robustImageAccess and robustBufferAccess
        return chain

    def check(self, name, *arguments):
        if result := getattr(self.library, name)(*arguments):
            sys.exit(f"{name}: VkResult {c.c_int32(result).value}")

    def make(self, what, info):
        handle = c.c_uint64()
        self.check("vkCreate" + what, self.device, c.byref(info), None, c.byref(handle))
        return handle.value

    def back(self, what, handle):
        """Gives a buffer or an image memory, which is 0; where that lies."""
        needs, memory = Needs(), c.c_uint64()
        getattr(self.library, f"vkGet{what}MemoryRequirements")(self.device, c.c_uint64(handle), c.byref(needs))
        kind = (needs.types & -needs.types).bit_length() - 1
        self.check("vkAllocateMemory", self.device, c.byref(MemoryInfo(size=needs.size, type=kind)), None, c.byref(memory))
        self.check(f"vkBind{what}Memory", self.device, c.c_uint64(handle), memory, c.c_uint64(0))
        return memory

    def buffer(self, usage, contents=b""):
        handle = self.make("Buffer", BufferInfo(size=max(BUFFER, len(contents)), usage=usage))
        memory, place = self.back("Buffer", handle), c.c_void_p()
        if contents:
            self.check("vkMapMemory", self.device, memory, c.c_uint64(0), c.c_uint64(len(contents)), 0, c.byref(place))
            c.memmove(place, contents, len(contents))
        return handle

    def image(self, image, form, usage):
        """(image, view, aspect) of 64 x 64 texels."""
        kind = {0: 0, 2: 2}.get(image.dimension, 1)
        cube = image.dimension == 3
        layers = (6 if cube else 1) * (2 if image.layered and cube else 4 if image.layered else 1)
        view = {(0, 0): 0, (1, 0): 1, (2, 0): 2, (3, 0): 3, (0, 1): 4, (1, 1): 5, (3, 1): 6}.get((image.dimension, int(image.layered)), 1)
        samples, aspect = 4 if image.multisampled else 1, DEPTH_ASPECT if form == DEPTH16 else COLOR_ASPECT
        handle = self.make("Image", ImageInfo(
            flags=16 if cube else 0, type=kind, format=form, width=TEXELS, height=1 if kind == 0 else TEXELS,
            depth=4 if kind == 2 else 1, levels=1, layers=layers, samples=samples, usage=usage))
        self.back("Image", handle)
        return handle, self.make("ImageView", ViewInfo(image=handle, type=view, format=form, aspect=aspect, levels=1, layers=layers)), aspect


class Resources:
    """What descriptors of modules refer to."""

    def __init__(self, device, descriptors, stages):
        self.device, self.barriers = device, []
        by_set = collections.defaultdict(list)
        for one in descriptors:
            by_set[one.set].append(one)
        self.layouts = [device.make("DescriptorSetLayout", SetLayoutInfo(count=len(by_set[number]), bindings=at([
            Binding(binding=one.binding, type=one.type, count=one.count, stages=stages) for one in by_set[number]])))
            for number in range(max(by_set, default=-1) + 1)]
        self.sets = self._fill(by_set) if self.layouts else []

    def _fill(self, by_set):
        counts = collections.Counter()
        for one in (one for of_set in by_set.values() for one in of_set):
            counts[one.type] += one.count
        sizes = [PoolSize(type=kind, count=count) for kind, count in counts.items()] or [PoolSize(type=spirv.SAMPLER, count=1)]
        pool = self.device.make("DescriptorPool", PoolInfo(sets=len(self.layouts), count=len(sizes), sizes=at(sizes)))
        sets = (c.c_uint64 * len(self.layouts))()
        info = SetsInfo(pool=pool, count=len(self.layouts), layouts=at((c.c_uint64 * len(self.layouts))(*self.layouts)))
        self.device.check("vkAllocateDescriptorSets", self.device.device, c.byref(info), sets)
        for number, of_set in by_set.items():
            for one in of_set:
                self._write(sets[number], one)
        return sets

    def _write(self, place, one):
        write = WriteInfo(set=place, binding=one.binding, count=one.count, type=one.type)
        if one.type in (spirv.UNIFORM_BLOCK, spirv.STORAGE_BLOCK):
            usage = 16 if one.type == spirv.UNIFORM_BLOCK else 32
            write.buffers = at([BufferUse(buffer=self.device.buffer(usage, one.contents), range=BUFFER) for _ in range(one.count)])
        elif one.type in (spirv.UNIFORM_TEXELS, spirv.STORAGE_TEXELS):
            usage, form = (4, FORMATS[one.image.base][3]) if one.type == spirv.UNIFORM_TEXELS else (8, self._stored(one.image))
            views = [self.device.make("BufferView", BufferViewInfo(buffer=self.device.buffer(usage), format=form, range=BUFFER))
                     for _ in range(one.count)]
            write.views = at((c.c_uint64 * one.count)(*views))
        else:
            write.images = at([self._image(one) for _ in range(one.count)])
        self.device.library.vkUpdateDescriptorSets(self.device.device, 1, c.byref(write), 0, None)

    @staticmethod
    def _stored(image):
        return STORED.get(image.format, COLORS[image.base])

    def _image(self, one):
        use = ImageUse(layout=GENERAL)
        compares = bool(one.image and one.image.depth)
        if one.type in (spirv.SAMPLER, spirv.COMBINED):
            smooth = int(not compares and (not one.image or one.image.base == "float"))
            use.sampler = self.device.make("Sampler", SamplerInfo(magnify=smooth, minify=smooth, compare=int(compares), op=3))
        if one.type != spirv.SAMPLER:
            stored = one.type == spirv.STORAGE_IMAGE
            form = DEPTH16 if compares else self._stored(one.image) if stored else COLORS[one.image.base]
            image, use.view, aspect = self.device.image(one.image, form, 8 if stored else 4)
            self.barriers.append(ImageBarrier(to_access=0x60, to_layout=GENERAL, from_family=0xFFFFFFFF, to_family=0xFFFFFFFF, image=image,
                                              aspect=aspect, levels=1, layers=0xFFFFFFFF))
        return use


def stage_of(device, data, flag, name=b"main"):
    handle = device.make("ShaderModule", ModuleInfo(size=len(data), code=at(data)))
    return StageInfo(stage=flag, module=handle, name=at(name))


class Target:
    """A picture for each output of a fragment shader, and the pass that draws into them."""

    def __init__(self, device, outputs):
        bases = {port.location: port.base for port in outputs}
        self.formats = [COLORS[bases.get(number, "float")] for number in range(max(bases, default=0) + 1)]
        views = []
        for form in self.formats:
            image = device.make("Image", ImageInfo(type=1, format=form, width=SIDE, height=SIDE, depth=1, levels=1, layers=1, samples=1, usage=16))
            device.back("Image", image)
            views.append(device.make("ImageView", ViewInfo(image=image, type=1, format=form, aspect=COLOR_ASPECT, levels=1, layers=1)))
        attachments = [Attachment(format=form, samples=1, load=1, after=GENERAL, stencil_load=2, stencil_store=1) for form in self.formats]
        colors = [Reference(attachment=number, layout=GENERAL) for number in range(len(views))]
        subpass = Subpass(count=len(views), colors=at(colors))
        self.render_pass = device.make("RenderPass", RenderPassInfo(count=len(views), attachments=at(attachments), subpass_count=1,
                                                                    subpasses=at(subpass)))
        self.framebuffer = device.make("Framebuffer", FramebufferInfo(render_pass=self.render_pass, count=len(views), width=SIDE, height=SIDE,
                                                                      layers=1, attachments=at((c.c_uint64 * len(views))(*views))))

    def begin(self):
        return PassBegin(render_pass=self.render_pass, framebuffer=self.framebuffer, width=SIDE, height=SIDE, count=len(self.formats),
                         values=at(bytes(16 * len(self.formats))))


def graphics_pipeline(device, stages, attributes, layout, target, topology):
    bindings = [VertexBinding(binding=port.location, stride=16) for port in attributes]
    places = [Attribute(location=port.location, binding=port.location, format=FORMATS[port.base][port.size - 1]) for port in attributes]
    blends = [Blend(mask=15) for _ in target.formats]
    info = GraphicsInfo(
        stage_count=2, stages=at(stages), layout=layout, render_pass=target.render_pass, base_index=-1,
        vertices=at(VertexInputInfo(binding_count=len(bindings), bindings=at(bindings), attribute_count=len(places), attributes=at(places))),
        assembly=at(AssemblyInfo(topology=topology)),
        viewport=at(ViewportInfo(viewport_count=1, viewports=at(Viewport(width=SIDE, height=SIDE, far=1.0)), scissor_count=1,
                                 scissors=at(Rectangle(width=SIDE, height=SIDE)))),
        raster=at(RasterInfo(width=1.0)), samples=at(SampleInfo(samples=1)), blend=at(BlendInfo(count=len(blends), attachments=at(blends))))
    pipeline = c.c_uint64()
    device.check("vkCreateGraphicsPipelines", device.device, c.c_uint64(0), 1, c.byref(info), None, c.byref(pipeline))
    return pipeline


def compute_pipeline(device, stage, layout):
    # The stage lies within it, so that its alignment counts.
    made = type("ComputeInfo", (c.Structure,), {"_fields_": [("sType", c.c_uint32), ("next", c.c_void_p), ("flags", c.c_uint32), ("stage", type(stage)),
                                                             ("layout", c.c_uint64), ("base", c.c_uint64), ("base_index", c.c_int32)]})
    info, pipeline = made(sType=29, stage=stage, layout=layout, base_index=-1), c.c_uint64()
    device.check("vkCreateComputePipelines", device.device, c.c_uint64(0), 1, c.byref(info), None, c.byref(pipeline))
    return pipeline


def attribute_buffers(device, attributes):
    for port in attributes:
        one = c.c_float(1.0) if port.base == "float" else c.c_uint32(1)
        yield port.location, device.buffer(128, bytes(one) * (4 * VERTICES))


def run(device, module, beside):
    kind = module.kind
    stages = {"vertex": VERTEX, "fragment": FRAGMENT, "compute": COMPUTE}[kind]
    resources = Resources(device, module.descriptors(), stages)
    pushed = module.push_constants()
    ranges = [] if pushed is None else [Range(stages=stages, size=PUSHED)]
    sets = resources.layouts
    layout = device.make("PipelineLayout", LayoutInfo(set_count=len(sets), sets=at((c.c_uint64 * len(sets))(*sets)), range_count=len(ranges), ranges=at(ranges)))
    own = stage_of(device, module.data, stages, module.entry)
    attributes = module.ports(spirv.INPUT) if kind == "vertex" else []
    if kind == "compute":
        target, pipeline = None, compute_pipeline(device, own, layout)
    else:
        target = Target(device, module.ports(spirv.OUTPUT) if kind == "fragment" else [])
        other = stage_of(device, beside, FRAGMENT if kind == "vertex" else VERTEX)
        pipeline = graphics_pipeline(device, [own, other], attributes, layout, target,
                                     POINTS if kind == "vertex" else TRIANGLES)
    record(device, resources, layout, (stages, pushed), pipeline, target, attributes, VERTICES if kind == "vertex" else 3)


def record(device, resources, layout, pushes, pipeline, target, attributes, vertices):
    """All of it in one command buffer, and its end waited for."""
    library, commands = device.library, c.c_void_p()
    pool = device.make("CommandPool", CommandPoolInfo())
    device.check("vkAllocateCommandBuffers", device.device, c.byref(CommandsInfo(pool=pool, count=1)), c.byref(commands))
    device.check("vkBeginCommandBuffer", commands, c.byref(BeginInfo()))
    point = 0 if target else 1
    if resources.barriers:
        library.vkCmdPipelineBarrier(commands, 1, 0x10000, 0, 0, None, 0, None, len(resources.barriers), c.c_void_p(at(resources.barriers)))
    library.vkCmdBindPipeline(commands, point, pipeline)
    if resources.sets:
        library.vkCmdBindDescriptorSets(commands, point, c.c_uint64(layout), 0, len(resources.sets), resources.sets, 0, None)
    stages, pushed = pushes
    if pushed is not None:
        library.vkCmdPushConstants(commands, c.c_uint64(layout), stages, 0, PUSHED, pushed[:PUSHED])
    if target:
        for location, buffer in attribute_buffers(device, attributes):
            library.vkCmdBindVertexBuffers(commands, location, 1, c.byref(c.c_uint64(buffer)), c.byref(c.c_uint64(0)))
        library.vkCmdBeginRenderPass(commands, c.byref(target.begin()), 0)
        library.vkCmdDraw(commands, vertices, 1, 0, 0)
        library.vkCmdEndRenderPass(commands)
    else:
        library.vkCmdDispatch(commands, GROUPS, 1, 1)
    device.check("vkEndCommandBuffer", commands)
    submit = SubmitInfo(command_count=1, commands=at((c.c_void_p * 1)(commands)))
    device.check("vkQueueSubmit", device.queue, 1, c.byref(submit), c.c_uint64(0))
    device.check("vkDeviceWaitIdle", device.device)


def main():
    path, other = sys.argv[1:]
    with open(path, "rb") as own, open(other, "rb") as beside:
        try:
            run(Device(), spirv.Module(own.read()), beside.read())
        except Failure as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
