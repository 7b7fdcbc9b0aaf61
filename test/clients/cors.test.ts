// Calls from a page in a real browser (Debian's Chromium, driven by playwright-core): the page is
// of another origin than the gateway, and calls it with fetch and with OpenAI's own SDK, whole and
// streamed.

import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it, type TestContext } from "node:test";
import { buildSync } from "esbuild";
import { demo, startGateway } from "../support/gateway.ts";
import { BROWSER, noBrowser } from "./browser.ts";
import { notInstalled } from "./lab.ts";

/** What a page found. */
interface Seen {
  readonly text?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly error?: string;
}

/** The page, which has OpenAI's SDK as `OpenAI` and a call with fetch as `ask`. */
const PAGE = `<!doctype html><script src="/openai.js"></script><script>
  const NAMES = ["x-request-id", "retry-after", "x-ratelimit-remaining-requests"];
  async function ask(url, key, body) {
    const response = await fetch(url + "/v1/chat/completions", {
      method: "POST",
      headers: { authorization: "Bearer " + key, "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "Say hello" }], ...body }),
    });
    const headers = Object.fromEntries(NAMES.map((name) => [name, response.headers.get(name)]));
    return { status: response.status, headers, text: await response.text() };
  }
</script>`;

/** OpenAI's SDK as one script of a page. */
const sdk = () =>
  buildSync({
    stdin: {
      contents: 'import OpenAI from "openai"; globalThis.OpenAI = OpenAI;',
      resolveDir: new URL(".", import.meta.url).pathname,
    },
    bundle: true,
    write: false,
    format: "iife",
    platform: "browser",
  }).outputFiles[0]!.text;

describe("a page of another origin", { skip: notInstalled() || noBrowser() }, async () => {
  const { chromium } = await import("playwright-core");
  type Browser = Awaited<ReturnType<typeof chromium.launch>>;
  let browser: Browser;
  let site: http.Server;
  let origin: string;
  before(async () => {
    const script = sdk();
    site = http.createServer((req, res) => {
      const isScript = req.url === "/openai.js";
      res.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
      res.end(isScript ? script : PAGE);
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
    browser = await chromium.launch(BROWSER);
  });
  after(async () => {
    await browser.close();
    await new Promise((resolve) => site.close(resolve));
  });

  /** The page, beside a gateway that allows these origins. */
  async function opened(t: TestContext, origins: readonly string[], over: object = {}) {
    const gw = await startGateway(t, demo({ server: { cors: { origins } }, ...over }));
    const page = await browser.newPage();
    page.setDefaultTimeout(15_000);
    t.after(() => page.close());
    const told: string[] = [];
    page.on("console", (message) => told.push(message.text()));
    await page.goto(origin);
    const run = (script: string): Promise<Seen> =>
      page.evaluate<Seen>(`(async () => {
        try { ${script} } catch (error) { return { error: error.name, status: error.status }; }
      })()`);
    const ask = (body: object, key = "sk-demo") =>
      run(`return await ask("${gw.url}", "${key}", ${JSON.stringify(body)})`);
    const client = `const client = new OpenAI({
      baseURL: "${gw.url}/v1", apiKey: "sk-demo", dangerouslyAllowBrowser: true, maxRetries: 0,
    }); const messages = [{ role: "user", content: "Say hello" }];`;
    return { gw, run, ask, client, told };
  }
  const methods = (gw: { access: readonly Record<string, unknown>[] }) =>
    gw.access.map(({ method, status }) => `${method} ${status}`);

  it("reads whole replies and streams, and the headers that it needs", async (t) => {
    const { gw, ask } = await opened(t, [origin], { limits: { rpm: 60 } });
    const whole = await ask({ model: "demo-chat" });
    assert.equal(whole.status, 200);
    assert.ok(JSON.parse(whole.text!).choices[0].message.content.length > 0);
    assert.match(whole.headers?.["x-request-id"] ?? "", /^req_/);
    assert.equal(whole.headers?.["x-ratelimit-remaining-requests"], "59");
    const streamed = await ask({ model: "demo-chat", stream: true });
    assert.match(streamed.text!, /data: \[DONE\]\n\n$/);
    assert.deepEqual(
      methods(gw),
      ["OPTIONS 204", "POST 200", "POST 200"],
      "one preflight for both",
    );
  });

  it("uses OpenAI's own SDK, whole and streamed", async (t) => {
    const { run, client } = await opened(t, [origin]);
    const whole = await run(`${client}
      const reply = await client.chat.completions.create({ model: "demo-chat", messages });
      return { text: reply.choices[0].message.content };`);
    assert.ok(whole.text, JSON.stringify(whole));
    const streamed = await run(`${client}
      let text = "";
      const stream = await client.chat.completions.create({ model: "demo-chat", messages, stream: true });
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
      return { text };`);
    assert.equal(streamed.text, whole.text);
  });

  it("reads errors, with their id and when to try again", async (t) => {
    const { ask, run, client } = await opened(t, [origin], { limits: { rpm: 1 } });
    const wrong = await ask({ model: "demo-chat" }, "sk-nobody");
    assert.equal(wrong.status, 401);
    assert.equal(JSON.parse(wrong.text!).error.code, "invalid_api_key");
    assert.equal((await ask({ model: "demo-chat" })).status, 200);
    const limited = await ask({ model: "demo-chat" });
    assert.equal(limited.status, 429);
    assert.match(limited.headers?.["retry-after"] ?? "", /^\d+$/);
    const bySdk = await run(`${client}
      return await client.chat.completions.create({ model: "demo-chat", messages });`);
    assert.equal(bySdk.status, 429);
  });

  it("cannot call if it is not allowed, and its browser says why", async (t) => {
    const { gw, ask, told } = await opened(t, ["https://app.example.com"]);
    assert.equal((await ask({ model: "demo-chat" })).error, "TypeError");
    assert.match(told.join("\n"), /blocked by CORS policy/);
    assert.deepEqual(methods(gw), ["OPTIONS 405"], "the request itself was never sent");
  });
});
