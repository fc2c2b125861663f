"""What the reference chapters leave open and v3dprobe does not ask: what software cannot see, and what wants a job that it has not."""
from .question import Unasked

DRAW, HANG, UNSEEN = "wants a draw", "may hang the GPU for all programs", "software cannot see it"
TIMED, NO_JOB = "is in the rows of times (docs/timing.md)", "has no job yet"

UNASKED = [Unasked(*row) for row in (
    ("qpu 1.2", "reserved codes of signals and operations, and tmul", HANG),
    ("qpu 2.2", "what barrierid gives, and operations of the sync unit other than the barrier", HANG),
    ("qpu 2.8", "patches and output segments in the VPM, the payload of tessellation", DRAW),
    ("qpu 5", "precision of varyings, and when the coefficient C may be read (10, rows 1 to 3, 19, 25)", DRAW),
    ("qpu 7.1", "branches in slots of branches and of thread switches (10, rows 11 to 13)", HANG),
    ("qpu 10, rows 15, 16, 34, 35, 45", "programs without an end, ldtmu without a lookup, results that nobody takes", HANG),
    ("qpu 10, rows 18, 20 to 24, 29", "registers and results between two threads of a QPU", "wants another thread at a known place"),
    ("qpu 10, rows 30 to 32", "the sample mask and the tile buffer too early", DRAW),
    ("qpu 10, rows 36, 37, 46, 47", "sequences of the TMU that are open at a switch or beside SETMSF", HANG),
    ("compute-and-timing 1", "CFG7, OVERLAP_WITH_PREV, CFG4 of 0", HANG),
    ("compute-and-timing 3", "which QPU takes which batch, and how many QPUs there are", "is in the output's head and in the row `supergroups`"),
    ("compute-and-timing 5", "a barrier that some threads of a supergroup never reach", HANG),
    ("compute-and-timing 6", "wg_in_mem with more than one supergroup at a time", "differs from run to run"),
    ("compute-and-timing 15", "units of counters: words, x4, watch filters", "wants known draws with a perfmon"),
    ("compute-and-timing 18", "caches, latencies, intervals of launches", TIMED),
    ("texture 2.1", "TMUHS and its kin, coefficient mode, AHDR", HANG),
    ("texture 2.2", "offsets of 8 bits, queries of sizes, write conversion, flips, PQ and HLG", NO_JOB),
    ("texture 3", "border words that are read or not, swizzles of gathers, channels that a format lacks", NO_JOB),
    ("texture 4.2", "the LOD of a cube's edge and of gathers, and from which level of a size that is no power of two", NO_JOB),
    ("texture 4.3", "stores and atomics outside an image", NO_JOB),
    ("texture 4.6", "the footprint of anisotropic filters", NO_JOB),
    ("texture 5", "ASTC blocks with HDR endpoints", NO_JOB),
    ("texture 7.2", "operations of caches", UNSEEN),
    ("texture 10", "the TFU's constant colour, SAND, stride 0, levels of sizes that are no powers of two", NO_JOB),
    ("texture 9", "which caches hold what a job wrote", UNSEEN),
    ("cle-and-tiles 2.4", "the order of tiles, and the tile lists that the binner makes", UNSEEN),
    ("cle-and-tiles 3", "vertices and indices beyond their buffers, transform feedback of line loops", DRAW),
    ("cle-and-tiles 4", "guard band, top-left rule, rounding of coordinates, lines, points", DRAW),
    ("cle-and-tiles 5", "quads in a batch, sample-rate shading, blending, missing components", DRAW),
    ("cle-and-tiles 6", "depths as integers, clear values of depth, one sample that is loaded for four", NO_JOB),
    ("drm-abi 8", "identity registers of other steppings", "are in the output's head"),
    ("newer-mesa", "setnnmode and v8dot in one word, the mode of a thread that begins", NO_JOB),
    ("vc4-qpu, vc4-graphics 7, vc4-timing", "VideoCore IV", "v3dprobe is for the Raspberry Pi 4 and 5"),
)]
