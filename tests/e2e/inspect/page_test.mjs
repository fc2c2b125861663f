// Walks through the page of v3demu inspect as a user does, and prints what it shows as JSON.
//
// usage: node page_test.mjs CHROMIUM PROFILE_FOLDER ADDRESS picture|compute SCREENSHOT
import { chromium } from "playwright-core";

const [program, profile, address, scenario, screenshot] = process.argv.slice(2);
const kSteps = 12;
const kPatience = 20_000;

/// Waits until the page shows another step. (Its policy lets nobody evaluate text, as Playwright's own waiting does.)
async function moved(page, before) {
  await page.locator("#at").filter({ hasNotText: before }).waitFor({ timeout: kPatience });
}

async function follow(page) {
  const steps = [];
  for (let n = 0; n < kSteps; ++n) {
    await page.locator("#detail").waitFor({ timeout: kPatience });
    const at = await page.locator("#at").innerText();
    const line = page.locator('.code .step[aria-selected="true"]');
    steps.push({ at, text: await line.locator("span").nth(1).innerText(), detail: await page.locator("#detail").innerText() });
    const [number, count] = at.split(" of ").map(Number);
    if (number >= count || n + 1 === kSteps) break;
    await page.keyboard.press("n");
    await moved(page, at);
  }
  await page.keyboard.press("p");
  await moved(page, steps.at(-1).at);
  const back = { at: await page.locator("#at").innerText(), detail: await page.locator("#detail").innerText() };
  return { steps, back };
}

async function debugPixel(page) {
  // The last one that draws: others clear and copy.
  const job = await page.evaluate(async () => {
    const { jobs } = await (await fetch("ask/capture")).json();
    for (const { number, kind } of jobs.reverse())
      if (kind === "render" && (await (await fetch(`ask/job?job=${number}`)).json()).draws.length > 0) return number;
    return 0;
  });
  await page.locator(`.tree .row[data-job="${job}"]`).click();
  const canvas = page.locator("#picture");
  await canvas.waitFor({ timeout: kPatience });
  const box = await canvas.boundingBox();
  const [width, height] = await canvas.evaluate((element) => [element.width, element.height]);
  // The centre, by the mouse; from there one to the right by the keyboard.
  await canvas.click({ position: { x: box.width / 2 + 0.5, y: box.height / 2 + 0.5 } });
  await page.keyboard.press("ArrowRight");
  const debug = page.locator(".event[data-kind=fragment] button.debug").last();
  await debug.waitFor({ timeout: kPatience });
  const place = new URLSearchParams((await page.evaluate(() => location.hash)).slice(1));
  const runs = await page.locator("button.debug").count();
  const events = await page.locator(".event").evaluateAll((all) => all.map((one) => one.dataset.kind));
  const last = page.locator(".event").last();
  const stored = await last.innerText();
  await page.screenshot({ path: screenshot });
  await debug.click();
  const walk = await follow(page);
  await page.screenshot({ path: screenshot.replace(".png", "-shader.png") });
  // A place that is shared leads to the same.
  const shared = await page.evaluate(() => location.href);
  const other = await page.context().newPage();
  await other.goto(shared);
  await other.locator("#detail").waitFor({ timeout: kPatience });
  const again = await other.locator("#detail").innerText();
  return { width, height, job: Number(place.get("job")), pixel: place.get("pixel").split(",").map(Number), runs, events, stored, ...walk, again };
}

async function debugCompute(page) {
  const job = page.locator(".tree .row[data-job]").filter({ hasText: "compute" }).first();
  const number = Number(await job.getAttribute("data-job"));
  await job.click();
  const walk = await follow(page);
  await page.screenshot({ path: screenshot });
  await page.keyboard.press("3");
  await page.locator("#listing").waitFor({ timeout: kPatience });
  return { job: number, listing: (await page.locator("#listing").innerText()).split("\n").length, ...walk };
}

const context = await chromium.launchPersistentContext(profile, {
  executablePath: program,
  headless: true,
  viewport: { width: 1400, height: 860 },
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync"],
});
const page = await context.newPage();
const errors = [];
try {
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("dialog", (dialog) => errors.push(`a dialog: ${dialog.message()}`));
  const elsewhere = [];
  page.on("request", (request) => request.url().startsWith(new URL(address).origin) || request.url().startsWith("blob:") || elsewhere.push(request.url()));
  await page.goto(address);
  await page.locator(".tree .row").first().waitFor({ timeout: kPatience });
  const title = await page.locator("header h1").innerText();
  const found = scenario === "picture" ? await debugPixel(page) : await debugCompute(page);
  console.log(JSON.stringify({ title, errors, elsewhere, ...found }));
} catch (error) {
  await page.screenshot({ path: screenshot });
  console.error(errors.join("\n"), await page.evaluate(() => document.body.innerText));
  throw error;
} finally {
  await context.close();
}
