"""The programs of the tour: docs/applications.md has more."""
import dataclasses
import os
import shutil

# What a page of WebGL is asked for, and answers with.
PAGE = """<!DOCTYPE html><meta charset="utf-8"><title>WebGL</title><style>body { margin: 0; background: #fff }</style>
<canvas id="c" width="640" height="480"></canvas><script>
const gl = document.getElementById('c').getContext('KIND');
const tell = text => fetch('/renderer?' + encodeURIComponent(text));
if (!gl) { tell('no KIND'); } else {
  const more = gl.getExtension('WEBGL_debug_renderer_info');
  tell(gl.getParameter(more ? more.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  const shader = (kind, text) => { const s = gl.createShader(kind); gl.shaderSource(s, text); gl.compileShader(s); return s; };
  const p = gl.createProgram();
  gl.attachShader(p, shader(gl.VERTEX_SHADER, `attribute vec2 at; uniform float turn; varying vec3 color;
    void main() { color = vec3(at + 0.5, 1.0 - at.x);
    gl_Position = vec4(mat2(cos(turn), sin(turn), -sin(turn), cos(turn)) * at, 0.0, 1.0); }`));
  gl.attachShader(p, shader(gl.FRAGMENT_SHADER, `precision mediump float; varying vec3 color;
    void main() { gl_FragColor = vec4(color, 1.0); }`));
  gl.linkProgram(p); gl.useProgram(p);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([-0.8, -0.6, 0.8, -0.6, 0, 0.8]), gl.STATIC_DRAW);
  const at = gl.getAttribLocation(p, 'at');
  gl.enableVertexAttribArray(at); gl.vertexAttribPointer(at, 2, gl.FLOAT, false, 0, 0);
  const draw = now => { gl.uniform1f(gl.getUniformLocation(p, 'turn'), now / 2000); gl.clearColor(0.1, 0.2, 0.4, 1);
    gl.clear(gl.COLOR_BUFFER_BIT); gl.drawArrays(gl.TRIANGLES, 0, 3); requestAnimationFrame(draw); };
  draw(0);
}</script>"""

QML = """import QtQuick
import QtQuick.Controls
ApplicationWindow {
  visible: true; width: 640; height: 480; color: "#203040"
  Column { anchors.centerIn: parent; spacing: 20
    Rectangle { width: 160; height: 160; gradient: Gradient { GradientStop { position: 0; color: "red" }
      GradientStop { position: 1; color: "yellow" } }
      RotationAnimation on rotation { from: 0; to: 360; duration: 3000; loops: Animation.Infinite } }
    Button { text: "A button" } Slider { value: 0.4 } } }
"""

FIREFOX = """user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("datareporting.policy.firstRunURL", "");
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("webgl.disable-fail-if-major-performance-caveat", true);
"""

RETROARCH = """video_driver = "gl"
menu_driver = "rgui"
audio_driver = "null"
input_driver = "null"
joypad_driver = "null"
video_fullscreen = "false"
"""


@dataclasses.dataclass(frozen=True)
class Program:
    """One stop of the tour."""
    name: str
    command: tuple
    wants: str = "both"  # "x11", "wayland": the other one is not offered
    variables: dict = dataclasses.field(default_factory=dict)
    says: str = ""       # a pattern in what it prints, or a page reports: who draws. Empty: it does not say.
    jobs: int = 20       # that it must give to the GPU
    patience: int = 90   # seconds until it has
    settle: int = 4      # seconds from then to the picture
    files: dict = dataclasses.field(default_factory=dict)  # that it needs, in its folder

    def executable(self):
        return shutil.which(self.command[0], path=os.environ.get("PATH", "") + ":/usr/games:/usr/lib/qt6/bin")


def browsers(port):
    root = ("--no-sandbox",) if os.geteuid() == 0 else ()  # Chromium's rule
    for kind in "webgl", "webgl2":
        page = f"http://127.0.0.1:{port}/{kind}"
        yield Program(f"firefox-{kind}", ("firefox-esr", "--no-remote", "--profile", ".", page), "wayland",
                      {"MOZ_ENABLE_WAYLAND": "1"}, r"V3D", patience=150, files={"user.js": FIREFOX})
        yield Program(f"chromium-{kind}", ("chromium", *root, "--no-first-run", "--user-data-dir=profile",
                                           "--ozone-platform=wayland", "--ignore-gpu-blocklist", page),
                      "wayland", {}, r"^WebGL: .*V3D", patience=150)


def programs(port):
    """All, in their order. port: of the server of the pages."""
    test_video = "av://lavfi:testsrc2=size=640x480:rate=25"
    return [
        Program("glxgears", ("glxgears", "-info"), "x11", says=r"GL_RENDERER *= V3D"),
        Program("es2gears-wayland", ("es2gears_wayland",), "wayland"),
        Program("vkcube-x11", ("vkcube",), "x11", says=r"V3D"),
        Program("vkcube-wayland", ("vkcube-wayland",), "wayland", says=r"V3D"),
        *browsers(port),
        Program("mpv-opengl", ("mpv", "--no-config", "--vo=gpu", "--gpu-api=opengl", "-v", test_video),
                says=r"GL_RENDERER='V3D"),
        Program("mpv-vulkan", ("mpv", "--no-config", "--vo=gpu", "--gpu-api=vulkan", "-v", test_video), says=r"V3D"),
        Program("gtk4-widget-factory", ("gtk4-widget-factory",), "wayland", jobs=4),
        Program("qt6-opengl", ("qmlscene", "scene.qml"), "wayland",
                {"QSG_INFO": "1", "QT_QPA_PLATFORM": "wayland", "QT_LOGGING_RULES": "qt.scenegraph.general=true"},
                r"V3D", files={"scene.qml": QML}),
        Program("qt6-vulkan", ("qmlscene", "scene.qml"), "x11",
                {"QSG_INFO": "1", "QSG_RHI_BACKEND": "vulkan", "QT_QPA_PLATFORM": "xcb"}, r"V3D", files={"scene.qml": QML}),
        Program("gstreamer", ("gst-launch-1.0", "videotestsrc", "!", "glupload", "!", "gleffects_twirl", "!", "glimagesink"),
                "wayland"),
        Program("openarena", ("openarena", "+set", "r_fullscreen", "0", "+set", "s_initsound", "0", "+devmap", "oa_dm1"), "x11",
                says=r"GL_RENDERER: V3D", patience=150, settle=20),
        Program("neverball", ("neverball",), "x11", settle=8),
        Program("supertuxkart-vulkan", ("supertuxkart", "--render-driver=vulkan", "--windowed", "--screensize=800x600",
                                        "--track=lighthouse", "--no-start-screen", "--numkarts=2"),
                "x11", {}, r"V3D", patience=240, settle=40),
        Program("retroarch", ("retroarch", "--config", "tour.cfg", "--menu", "-v"), "x11", says=r"V3D",
                files={"tour.cfg": RETROARCH}),
    ]
