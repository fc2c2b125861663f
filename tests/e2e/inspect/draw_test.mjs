// Looks at a draw of the page of v3demu inspect as a user does: textures, vertices and where these lead; prints it as JSON.
//
// usage: node draw_test.mjs CHROMIUM PROFILE_FOLDER ADDRESS SCREENSHOT
import { countElements, hostile, isJson, kHostile, kPatience, withPage } from "./browser.mjs";

const [program, profile, address, screenshot] = process.argv.slice(2);

/// The last job that draws.
const lastDrawing = () => (async () => {
  const { jobs } = await (await fetch("ask/capture")).json();
  for (const { number, kind } of jobs.reverse())
    if (kind === "render" && (await (await fetch(`ask/job?job=${number}`)).json()).draws.length > 0) return number;
  return 0;
})();

async function pick(page) {
  const canvas = page.locator("#picture");
  await canvas.waitFor({ timeout: kPatience });
  const box = await canvas.boundingBox();
  await canvas.click({ position: { x: Math.min(box.width / 2, 400), y: Math.min(box.height / 2, 300) } });
  await page.locator(".event[data-kind=fragment] button.corners").last().waitFor({ timeout: kPatience });
}

/// Elements whose text is wider than they are.
const cutTexts = (elements) => elements.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent);

async function lookAtTextures(page) {
  const textures = page.locator("#textures .texture");
  await textures.first().locator("canvas").waitFor({ timeout: kPatience });
  await textures.nth(1).locator("canvas").waitFor({ timeout: kPatience });
  const texts = await textures.allInnerTexts();
  const colors = await textures.first().locator("canvas").evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });
  const level = textures.first().locator('tr[data-level="1"]');
  await level.locator("button").click();
  await textures.first().locator('tr[data-level="1"].chosen').waitFor({ timeout: kPatience });
  const half = textures.first().locator('canvas[width="256"]');
  await half.waitFor({ timeout: kPatience });
  return { texts, colors, level: await level.innerText(), size: await half.evaluate((canvas) => [canvas.width, canvas.height]) };
}

async function lookAtVertices(page, number) {
  await page.locator("#vertex").fill(String(number));
  await page.keyboard.press("Enter");
  const row = page.locator(`#vertices tr[data-vertex="${number}"].chosen`);
  await row.waitFor({ timeout: kPatience });
  const heads = await page.locator("#vertices thead th").allInnerTexts();
  const cells = await row.locator("td").allInnerTexts();
  await row.scrollIntoViewIfNeeded();
  await page.screenshot({ path: screenshot.replace(".png", "-vertices.png") });
  await row.locator("button").click();
  await page.locator("#detail").waitFor({ timeout: kPatience });
  const place = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
  const cut = await page.locator(".code, .code .step, .code .step span").evaluateAll(cutTexts);
  await page.screenshot({ path: screenshot.replace(".png", "-shader.png") });
  return { heads, cells, stage: place.get("stage"), thread: Number(place.get("thread") ?? 0), lane: Number(place.get("lane") ?? 0), cut };
}

/// What the page decides by, and does not show alone.
const kKeys = new Set(["kind", "stage", "code"]);

/// Hostile texts in the head of pixels.
function hostileHead(body) {
  const length = body.readUInt32LE(0);
  const head = Buffer.from(JSON.stringify(hostile(JSON.parse(body.subarray(4, 4 + length).toString()), kKeys)));
  const size = Buffer.alloc(4);
  size.writeUInt32LE(head.length);
  return Buffer.concat([size, head, body.subarray(4 + length)]);
}

/// All texts of the draw and its textures have elements, scripts and quotes in them.
async function showHostile(page, place) {
  await page.route("**/ask/**", async (route) => {
    const response = await route.fetch();
    const body = isJson(response) ? JSON.stringify(hostile(await response.json(), kKeys)) : hostileHead(await response.body());
    return route.fulfill({ response, body });
  });
  await page.goto(place);
  await page.reload();
  await page.locator("#textures .texture", { hasText: kHostile }).first().waitFor({ timeout: kPatience });
  await page.locator("#vertices").waitFor({ timeout: kPatience });
  return {
    elements: await countElements(page),
    tab: await page.title(),
    texts: await page.locator(".draw-parts .state li", { hasText: kHostile }).count(),
  };
}

async function look(page) {
  await page.locator(".tree .row").first().waitFor({ timeout: kPatience });
  const job = await page.evaluate(lastDrawing);
  await page.locator(`.tree .row[data-job="${job}"]`).click();
  await pick(page);
  // The corners of the primitive that drew the pixel.
  await page.locator(".event[data-kind=fragment] button.corners").last().click();
  await page.locator("#vertices tr.chosen").waitFor({ timeout: kPatience });
  const corner = Number(await page.locator("#vertices tr.chosen").getAttribute("data-vertex"));
  const state = await page.locator(".draw-parts .state").first().innerText();
  const draw = Number(new URLSearchParams((await page.evaluate(() => location.hash)).slice(1)).get("draw"));
  const textures = await lookAtTextures(page);
  await page.locator("#textures").scrollIntoViewIfNeeded();
  await page.screenshot({ path: screenshot });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.screenshot({ path: screenshot.replace(".png", "-dark.png") });
  const place = await page.evaluate(() => location.href);
  const vertices = await lookAtVertices(page, 17);
  const unharmed = await showHostile(page, place);
  return { job, draw, corner, state, textures, vertices, unharmed };
}

await withPage({ program, profile, address, screenshot, viewport: { width: 1280, height: 800 } }, look);
