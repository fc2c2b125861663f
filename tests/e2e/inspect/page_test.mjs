// Walks through the page of v3demu inspect as a user does, and prints what it shows as JSON.
//
// usage: node page_test.mjs CHROMIUM PROFILE_FOLDER ADDRESS picture|compute|barrier|against|hostile|export SCREENSHOT
import { get } from "node:http";
import { countElements, hostile, isJson, kHostile, kPatience, withPage } from "./browser.mjs";

const [program, profile, address, scenario, screenshot] = process.argv.slice(2);
const kSteps = 12;

/// What the server answers, before there is a page.
function ask(question) {
  return new Promise((resolve, reject) => {
    get(`${address}ask/${question}`, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("end", () => (response.statusCode === 200 ? resolve(Buffer.concat(parts)) : reject(new Error(`${question}: ${Buffer.concat(parts)}`))));
    }).on("error", reject);
  });
}
const askJson = async (question) => JSON.parse(await ask(question));

/// Waits until the page shows another step. (Its policy lets nobody evaluate text, as Playwright's own waiting does.)
async function moved(page, before) {
  await page.locator("#at").filter({ hasNotText: before }).waitFor({ timeout: kPatience });
}

/// What the page shows of the step: its number, its text, what it did, and the registers after it.
async function shownStep(page) {
  await page.locator("#detail").waitFor({ timeout: kPatience });
  const [number, count] = (await page.locator("#at").innerText()).split(" of ").map(Number);
  const registers = await page.locator("tr[data-register]").evaluateAll((rows) =>
    rows.map((row) => [row.dataset.register, row.classList.contains("changed"), [...row.cells].slice(1).map((cell) => cell.innerText)]));
  return {
    number, count, registers,
    text: await page.locator('.code .step[aria-selected="true"] span').nth(1).innerText(),
    detail: await page.locator("#detail").innerText(),
  };
}

async function press(page, key) {
  const at = await page.locator("#at").innerText();
  await page.keyboard.press(key);
  await moved(page, at);
}

/// Steps forward from the instruction that is chosen, and two back.
async function follow(page) {
  const steps = [await shownStep(page)];
  while (steps.length < kSteps && steps.at(-1).number < steps.at(-1).count) {
    await press(page, "n");
    steps.push(await shownStep(page));
  }
  const back = [];
  while (back.length < 2 && back.length + 1 < steps.length) {
    await press(page, "p");
    back.push(await shownStep(page));
  }
  return { steps, back };
}

/// The same from the first instruction whose text is like this, or from the last ones.
async function followFrom(page, pattern) {
  const lines = page.locator(".code .step");
  const texts = await lines.evaluateAll((all) => all.map((one) => one.innerText));
  const found = texts.findIndex((text) => pattern.test(text));
  const first = found < 0 ? Math.max(texts.length - kSteps, 0) : Math.max(found - 2, 0);
  await lines.nth(first).click();
  await page.locator("#at").filter({ hasText: new RegExp(`^${first + 1} of`) }).waitFor({ timeout: kPatience });
  await page.evaluate(() => document.activeElement?.blur());
  return { found: found >= 0, ...(await follow(page)) };
}

/// What stands above the picture once it says something else.
async function under(page, before) {
  const line = page.locator("#under");
  if (before !== undefined) await line.filter({ hasNotText: before }).waitFor({ timeout: kPatience });
  return line.innerText();
}

/// Heat maps, wireframe, numbers, and before and after the draw.
async function lookAtPicture(page, draw) {
  const buffer = page.locator("#buffer");
  const plain = await under(page);
  await buffer.selectOption("fragments");
  const overdraw = await under(page, plain);
  await page.locator("#closer").click();
  await page.locator("#numbers .loupe .changed").waitFor({ timeout: kPatience });
  const centre = await page.locator("#numbers .loupe .changed").innerText();
  const histogram = await page.locator("#numbers .histogram").innerText();
  await page.screenshot({ path: screenshot.replace(".png", "-heat.png") });
  await buffer.selectOption("0");
  await under(page, overdraw);
  await page.locator("#wireframe").click();
  await page.locator(`.tree .row.draw[data-draw="${draw}"]`).click();
  const after = await under(page);
  await page.keyboard.press("b");
  const before = await under(page, after);
  await page.keyboard.press("b");
  await under(page, before);
  await page.locator('#picture[data-borders="true"]').waitFor({ timeout: kPatience });
  await page.screenshot({ path: screenshot.replace(".png", "-wireframe.png") });
  await page.keyboard.press("6");
  await page.locator('.chip [data-block="QPUs"]').waitFor({ timeout: kPatience });
  const chip = await page.locator(".chip").innerText();
  await page.screenshot({ path: screenshot.replace(".png", "-chip.png") });
  await page.keyboard.press("1");
  await page.locator("#picture").waitFor({ timeout: kPatience });
  return { overdraw, centre, histogram, before, after, chip };
}

/// Runs to where a condition holds; what the page says if it never does.
async function runUntil(page, condition) {
  await page.locator("#until").fill(condition);
  await page.locator("#run").click();
  await page.locator("#found").filter({ hasNotText: "it runs" }).or(page.locator(".bar:not(:has(#found))")).first().waitFor({ timeout: kPatience });
  const said = page.locator("#found");
  return (await said.count()) > 0 ? said.innerText() : page.locator("#at").innerText();
}

/// Breakpoints, then the program as its words tell it, and one of its instructions replaced.
async function breakAndEdit(page) {
  await page.locator("button", { hasText: "start" }).click();
  await page.locator("#at").filter({ hasText: /^1 of/ }).waitFor({ timeout: kPatience });
  const stop = await runUntil(page, "3");
  const never = await runUntil(page, "rf0 = 0xdeadbeef");
  const wrong = await runUntil(page, "rf77 > 1");
  await page.locator("button", { hasText: /^program$/ }).click();
  await page.locator("#summary li").first().waitFor({ timeout: kPatience });
  const summary = await page.locator("#summary").innerText();
  await page.screenshot({ path: screenshot.replace(".png", "-program.png") });
  await page.locator('.program tr[data-index="1"] button.plain').click();
  await page.locator(".edit input").fill("mov rf33, 0.5");
  await page.locator(".edit button").first().click();
  await page.locator('.program tr[data-index="1"]', { hasText: "mov rf33, 0x3f000000" }).waitFor({ timeout: kPatience });
  await page.keyboard.press("Escape");
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("2");
  await page.locator("#at").waitFor({ timeout: kPatience });
  await page.locator("button", { hasText: "start" }).click();
  await page.keyboard.press("n");
  await page.locator("#at").filter({ hasText: /^2 of/ }).waitFor({ timeout: kPatience });
  const edited = await page.locator("#detail").innerText();
  await page.locator("button", { hasText: "undo all" }).click();
  await page.locator(".edits").waitFor({ state: "detached", timeout: kPatience });
  return { stop, never, wrong, summary, edited };
}

/// A render job with many primitives; in it, as near to the centre as may be, a pixel whose colour a fragment changes, and the
/// number of the last such one in its history.
async function choosePixel() {
  const jobs = [];
  for (const { number, kind, summary } of (await askJson("capture")).jobs) {
    if (kind !== "render" || summary === "stores no colours") continue;
    const primitives = (await askJson(`job?job=${number}`)).draws.reduce((sum, draw) => sum + draw.primitives, 0);
    if (primitives > 0) jobs.push({ number, primitives });
  }
  jobs.sort((a, b) => b.primitives - a.primitives || b.number - a.number);
  for (const { number } of jobs.slice(0, 4)) {
    const found = await pixelOf(number);
    if (found) return found;
  }
  throw new Error("no pixel changes");
}

async function pixelOf(job) {
  const answer = await ask(`heat?job=${job}&what=shaded`);
  const length = answer.readUInt32LE(0);
  const { width, height } = JSON.parse(answer.subarray(4, 4 + length));
  const pixels = [];
  for (let n = 0; n < width * height; ++n)
    if (n % width > 0 && answer.readUInt32LE(4 + length + 4 * n) > 0) pixels.push([n % width, Math.floor(n / width)]);
  const far = ([x, y]) => (x - width / 2) ** 2 + (y - height / 2) ** 2;
  pixels.sort((a, b) => far(a) - far(b));
  const changes = ({ kind, before, after, runs }) => kind === "fragment" && runs.length > 0 && String(before.colors[0]?.words) !== String(after.colors[0]?.words);
  // Neighbours are alike.
  for (let n = 0; n < Math.min(pixels.length, 1000); n += 97) {
    const [x, y] = pixels[n];
    const { events } = await askJson(`history?job=${job}&x=${x}&y=${y}`);
    const event = events.findLast(changes);
    if (event) return { job, x, y, fragment: events.filter(({ kind }) => kind === "fragment").indexOf(event), draw: event.draw };
  }
  return undefined;
}

async function debugPixel(page, chosen) {
  await page.locator(`.tree .row[data-job="${chosen.job}"]`).click();
  const canvas = page.locator("#picture");
  await canvas.waitFor({ timeout: kPatience });
  const box = await canvas.boundingBox();
  const [width, height] = await canvas.evaluate((element) => [element.width, element.height]);
  // The pixel at the left of it, by the mouse; from there one to the right by the keyboard.
  await canvas.click({ position: { x: ((chosen.x - 0.5) * box.width) / width, y: ((chosen.y + 0.5) * box.height) / height } });
  await page.keyboard.press("ArrowRight");
  await page.locator("aside h2", { hasText: `pixel ${chosen.x},${chosen.y}` }).waitFor({ timeout: kPatience });
  const fragment = page.locator(".event[data-kind=fragment]").nth(chosen.fragment);
  await fragment.waitFor({ timeout: kPatience });
  const place = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
  const runs = await page.locator("button.debug").evaluateAll((all) => all.map((one) => Number(one.dataset.thread)));
  const events = await page.locator(".event").evaluateAll((all) => all.map((one) => one.dataset.kind));
  const fragments = await page.locator(".event[data-kind=fragment]").evaluateAll((all) => all.map((one) => ({
    verdict: one.querySelector(".good, .bad").innerText,
    changes: [...one.querySelectorAll("tr")].some((row) => row.cells[0].innerText.startsWith("colour") && row.querySelector(".changed") !== null),
  })));
  await page.screenshot({ path: screenshot });
  const looks = await lookAtPicture(page, chosen.draw);
  const debug = fragment.locator("button.debug").last();
  await debug.waitFor({ timeout: kPatience });
  const thread = Number(await debug.getAttribute("data-thread"));
  await debug.click();
  await page.locator("#detail").waitFor({ timeout: kPatience });
  await page.getByLabel("Form of values").selectOption("hex");
  const lane = Number(await page.locator("#lane").inputValue());
  await page.evaluate(() => document.activeElement?.blur());
  const walks = [await follow(page)];
  walks.push(await followFrom(page, kEndOfFragment));
  await page.screenshot({ path: screenshot.replace(".png", "-shader.png") });
  // A place that is shared leads to the same.
  const shared = await page.evaluate(() => location.href);
  const other = await page.context().newPage();
  await other.goto(shared);
  await other.locator("#detail").waitFor({ timeout: kPatience });
  const again = await other.locator("#detail").innerText();
  return { job: Number(place.get("job")), pixel: place.get("pixel").split(",").map(Number), chosen, thread, lane, runs, events, fragments, looks, walks, again };
}

/// Of fragment programs: what they write to the tile buffer.
const kEndOfFragment = /tlb/;
const kBarrier = /barrier/;

const dispatches = (page) => page.locator(".tree .row[data-job]").filter({ hasText: "compute" });

/// Chooses a dispatch, and steps through its first instructions.
async function walkInto(page, dispatch) {
  const job = Number(await dispatch.getAttribute("data-job"));
  await dispatch.click();
  await page.locator("#detail").waitFor({ timeout: kPatience });
  await page.getByLabel("Form of values").selectOption("hex");
  await page.evaluate(() => document.activeElement?.blur());
  return { job, walks: [await follow(page)] };
}

/// The last dispatch, also around a barrier, if it has one.
async function debugBarrier(page) {
  const { job, walks } = await walkInto(page, dispatches(page).last());
  walks.push(await followFrom(page, kBarrier));
  await page.screenshot({ path: screenshot });
  return { job, lane: Number(await page.locator("#lane").inputValue()), walks };
}

async function debugCompute(page) {
  const { job, walks } = await walkInto(page, dispatches(page).first());
  await page.screenshot({ path: screenshot });
  const program = await breakAndEdit(page);
  await page.keyboard.press("3");
  await page.locator("#listing").waitFor({ timeout: kPatience });
  const listing = await page.locator("#listing").innerText();
  const address = /0x[0-9a-f]{8}/.exec(listing)[0];
  await page.keyboard.press("5");
  await page.locator("#address").fill(address);
  await page.keyboard.press("Enter");
  await page.locator("#writer").waitFor({ timeout: kPatience });
  const writer = await page.locator("#writer").innerText();
  await page.screenshot({ path: screenshot.replace(".png", "-memory.png") });
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("7");
  const whole = await lookAtProfile(page);
  return { whole, job, listing: listing.split("\n").length, program, address, writer, lane: 0, walks };
}

/// The profile: within the page, or one that was exported.
async function lookAtProfile(page) {
  const rows = page.locator('[data-table="jobs"] tbody tr');
  await rows.first().waitFor({ timeout: kPatience });
  await page.screenshot({ path: screenshot.replace(".png", "-profile.png") });
  await rows.last().focus();
  await page.keyboard.press("Enter");
  const number = await rows.last().locator("td").first().innerText();
  await page.locator("#profile-job h2", { hasText: `Job ${number} ` }).waitFor({ timeout: kPatience });
  const instructions = await page.locator("#annotated tbody tr").count();
  return { jobs: await rows.count(), instructions, cards: await page.locator(".cards").innerText(), hash: await page.evaluate(() => location.hash), number };
}

/// Two captures: from one to the other at the same place, and what differs.
async function compare(page) {
  const job = dispatches(page).first();
  await job.click();
  await page.keyboard.press("4");
  await page.locator("#summary li").first().waitFor({ timeout: kPatience });
  await page.locator(".program tr.added, .program tr.removed").first().waitFor({ timeout: kPatience });
  const lines = async (kind) => (await page.locator(`.program tr.${kind} td.text`).allInnerTexts()).map((text) => text.split("\n")[0].replace(/\s+/g, " ").trim());
  const here = { added: await lines("added"), removed: await lines("removed"), title: await page.locator("header h1").innerText() };
  const times = await job.locator(".faint, .good, .bad").allInnerTexts();
  await page.screenshot({ path: screenshot });
  await page.keyboard.press("o");
  await page.locator("header h1").filter({ hasNotText: here.title }).waitFor({ timeout: kPatience });
  await page.locator(".program tr.added, .program tr.removed").first().waitFor({ timeout: kPatience });
  return { here, times, there: { added: await lines("added"), removed: await lines("removed"), title: await page.locator("header h1").innerText() }, hash: await page.evaluate(() => location.hash) };
}

/// What the page decides by, and does not show alone.
const kKeys = new Set(["kind", "stage", "code", "program", "address", "by", "registers", "flags"]);

/// All texts that come from a capture have elements, scripts and quotes in them, in all views.
async function showHostile(page) {
  await page.route("**/ask/**", async (route) => {
    const response = await route.fetch();
    return route.fulfill(isJson(response) ? { response, body: JSON.stringify(hostile(await response.json(), kKeys)) } : { response });
  });
  await page.reload();
  await page.locator(".tree .row").first().waitFor({ timeout: kPatience });
  await dispatches(page).first().click();
  const shown = [];
  for (const view of ["shader", "listing", "program", "memory", "chip", "profile"]) {
    await page.locator(`header [data-view="${view}"]`).click();
    await page.locator("main").filter({ hasText: kHostile }).or(page.locator(view === "memory" ? "#address" : "#none")).first().waitFor({ timeout: kPatience });
    shown.push({ view, elements: await countElements(page), isText: (await page.locator("body").innerText()).includes(kHostile) });
  }
  // What an address says is of others, too.
  const base = await page.evaluate(() => location.href.split("#")[0]);
  await page.goto(`${base}#job=${encodeURIComponent(kHostile)}&patch=${encodeURIComponent(kHostile)}&stage=${encodeURIComponent(kHostile)}&view=${encodeURIComponent(kHostile)}`);
  await page.locator(".edits", { hasText: "Edited" }).waitFor({ timeout: kPatience });
  const elements = await countElements(page);
  await page.screenshot({ path: screenshot });
  return { shown, elements, tab: await page.title() };
}

async function showExport(page) {
  const tables = await lookAtProfile(page);
  return { ...tables, elements: await countElements(page), tab: await page.title() };
}

const kScenarios = { picture: debugPixel, compute: debugCompute, barrier: debugBarrier, against: compare, hostile: showHostile, export: showExport };

const chosen = scenario === "picture" ? await choosePixel() : undefined;
await withPage({ program, profile, address, screenshot, viewport: { width: 1400, height: 860 } }, async (page) => {
  if (scenario !== "export") await page.locator(".tree .row").first().waitFor({ timeout: kPatience });
  const title = await page.locator("header h1").innerText();
  return { title, ...(await kScenarios[scenario](page, chosen)) };
});
