/// The presentation says how Vulkan windows can be shown. An emulated GPU's buffers are ordinary memory: only
/// a compositor or X server that itself runs under the shim can take them as dma-bufs. To all others Mesa
/// must copy the pixels through the window system's protocol (MESA_VK_WSI_DEBUG=sw; drm-abi.md 7.2).
#pragma once

namespace v3d::shim {

/// The window systems that the environment names need the software path: DISPLAY or WAYLAND_DISPLAY is set,
/// and not every server so named runs under the shim and takes dma-bufs (X: DRI3; Wayland: linux-dmabuf).
/// `load` may load libxcb to ask for DRI3; else that is asked only if the process has libxcb already.
bool needs_software_presentation(bool load);

/// $DISPLAY is of a server that answers, but cannot take the buffers of OpenGL programs: it does not run
/// under the shim, or has no DRI3. Loads libxcb.
bool x_display_lacks_dri3();

}  // namespace v3d::shim
