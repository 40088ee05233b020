// Opens the page of the interface in a browser. Fails unless it is shown, makes no request to
// another server, and prints nothing on the console.
//
//     node docs.mjs URL SCREENSHOTS CHROMIUM DIRECTORY_OF_NODE_MODULES
import { createRequire } from "node:module";
import path from "node:path";

const [url, shots, executablePath, modules] = process.argv.slice(2);
const { chromium } = createRequire(path.resolve(modules, "from.js"))("playwright-core");
const WIDTHS = { desktop: 1280, phone: 400 };
const faults = [];

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
try {
  for (const [name, width] of Object.entries(WIDTHS)) {
    const page = await browser.newPage({ viewport: { width, height: 900 } });
    const asked = [];
    page.on("request", (request) => asked.push(request.url()));
    page.on("console", (message) => faults.push(`${name}: console: ${message.text()}`));
    page.on("pageerror", (error) => faults.push(`${name}: ${error}`));
    page.on("requestfailed", (request) => faults.push(`${name}: failed: ${request.url()}`));
    const answer = await page.goto(url, { waitUntil: "networkidle" });
    if (answer.status() !== 200) faults.push(`${name}: status ${answer.status()}`);
    await page.screenshot({ path: path.join(shots, `docs-${name}.png`) });
    for (const text of ["/api/agent/semantic", "/api/audit/bundle", "Consult facts"]) {
      const found = page.locator("main").getByText(text, { exact: true });
      if (!(await found.first().isVisible())) faults.push(`${name}: ${text} is not shown`);
    }
    await page.locator("#consultFacts details").first().locator("summary").first().click();
    if (!(await page.locator("#consultFacts details[open]").first().isVisible()))
      faults.push(`${name}: an answer does not unfold`);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    if (wide > width) faults.push(`${name}: the page is ${wide} wide, the window ${width}`);
    await page.goto(`${url}#appendEvents`);
    await page.screenshot({ path: path.join(shots, `docs-${name}-operation.png`) });
    await page.goto(`${url}#schemas`);
    await page.screenshot({ path: path.join(shots, `docs-${name}-schemas.png`) });
    // One document, and nothing else from anywhere; an icon inside the page is not a request.
    const elsewhere = asked.filter((one) => !one.startsWith("data:") && one.split("#")[0] !== url);
    if (elsewhere.length > 0) faults.push(`${name}: asked for ${elsewhere.join(", ")}`);
    if (asked.length === 0) faults.push(`${name}: no request was seen`);
    await page.close();
  }
} finally {
  await browser.close();
}
if (faults.length > 0) {
  console.error(faults.join("\n"));
  process.exit(1);
}
