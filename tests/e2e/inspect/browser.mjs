// A browser on the page of v3demu inspect, and what tests of it share.
import { chromium } from "playwright-core";

export const kPatience = 60_000;

/// Calls look(page) with the page at an address, of a browser of its own, and prints what it gives as JSON, with the page's errors and its
/// requests to elsewhere. What fails leaves a screenshot, and the page's text.
export async function withPage({ program, profile, address, screenshot, viewport }, look) {
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: program,
    headless: true,
    viewport,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
  context.setDefaultTimeout(kPatience);
  const page = await context.newPage();
  const errors = [];
  try {
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("dialog", (dialog) => errors.push(`a dialog: ${dialog.message()}`));
    const elsewhere = [];
    const own = new URL(".", address).href;
    page.on("request", (request) => request.url().startsWith(own) || request.url().startsWith("blob:") || request.url() === "data:," || elsewhere.push(request.url()));
    await page.goto(address);
    const found = await look(page);
    await page.unrouteAll({ behavior: "ignoreErrors" }); // the page may still be asking
    console.log(JSON.stringify({ errors, elsewhere, ...found }));
  } catch (error) {
    await page.screenshot({ path: screenshot });
    console.error(errors.join("\n"), await page.evaluate(() => document.body.innerText));
    throw error;
  } finally {
    await context.close();
  }
}

export const kHostile = `<img src=x onerror="document.title='ran'"></script><script>document.title='ran'</script>'"&quot;`;

/// An answer of the server in which all texts have elements, scripts and quotes in them, but for members of these names, by which the page
/// decides.
export function hostile(value, kept, name) {
  if (typeof value === "string") return kept.has(name) ? value : value + kHostile;
  if (Array.isArray(value)) return value.map((one) => hostile(one, kept, name));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([member, one]) => [member, hostile(one, kept, member)]));
}

export const isJson = (response) => (response.headers()["content-type"] ?? "").startsWith("application/json");

/// Elements that hostile texts would make.
export const countElements = (page) => page.locator("img, main script, iframe").count();
