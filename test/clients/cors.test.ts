// Calls from a page in a real browser (Debian's Chromium, driven by playwright-core): the page is
// of another origin than the gateway, and calls it with OpenAI's own SDK, whole and streamed.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, it, type TestContext } from "node:test";
import { buildSync } from "esbuild";
import { demo, startGateway } from "../support/gateway.ts";
import { listening } from "../support/listening.ts";
import { noBrowser, openPage, startBrowser } from "./browser.ts";
import { notInstalled } from "./lab.ts";

/** The page, which has OpenAI's SDK as `OpenAI`. */
const PAGE = '<!doctype html><script src="/openai.js"></script>';

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
  const { browser, scope } = await startBrowser();
  const script = sdk();
  const site = http.createServer((req, res) => {
    const isScript = req.url === "/openai.js";
    res.setHeader("Content-Type", isScript ? "text/javascript" : "text/html");
    res.end(isScript ? script : PAGE);
  });
  const origin = await listening(scope, site);

  /** The page, beside a gateway that allows these origins. */
  async function opened(t: TestContext, origins: readonly string[], over: object = {}) {
    const gw = await startGateway(t, demo({ server: { cors: { origins } }, ...over }));
    const { page } = await openPage(t, browser);
    const told: string[] = [];
    page.on("console", (message) => told.push(message.text()));
    await page.goto(origin);
    /** What a script finds, which has a client of the SDK and messages, or the error. */
    const run = (script: string, apiKey = "sk-demo") =>
      page.evaluate<any>(`(async () => {
        const baseURL = "${gw.url}/v1";
        const options = { apiKey: "${apiKey}", dangerouslyAllowBrowser: true, maxRetries: 0 };
        const { completions } = new OpenAI({ baseURL, ...options }).chat;
        const body = { model: "demo-chat", messages: [{ role: "user", content: "Say hello" }] };
        try { ${script} } catch (error) {
          const { status, code, requestID } = error;
          return { status, code, requestID, cause: error.cause?.name };
        }
      })()`);
    return { gw, run, told };
  }
  const methods = (gw: { access: readonly Record<string, unknown>[] }) =>
    gw.access.map(({ method, status }) => `${method} ${status}`);

  it("reads whole replies, streams and errors, and the headers that it needs", async (t) => {
    const { gw, run } = await opened(t, [origin], { limits: { rpm: 60 } });
    const whole =
      await run(`const { data, response } = await completions.create(body).withResponse();
      const names = ["x-request-id", "x-ratelimit-remaining-requests"];
      const [id, left] = names.map((name) => response.headers.get(name));
      return { text: data.choices[0].message.content, id, left };`);
    assert.match(whole.id, /^req_/, JSON.stringify(whole));
    assert.equal(whole.left, "59");
    const streamed = await run(`let text = "";
      const stream = await completions.create({ ...body, stream: true });
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
      return { text };`);
    assert.ok(whole.text.length > 0);
    assert.equal(streamed.text, whole.text);
    const wrong = await run("return { text: await completions.create(body) };", "sk-nobody");
    assert.deepEqual([wrong.status, wrong.code], [401, "invalid_api_key"]);
    assert.match(wrong.requestID, /^req_/);
    const seen = ["OPTIONS 204", "POST 200", "POST 200", "POST 401"];
    assert.deepEqual(methods(gw), seen, "one preflight for all");
  });

  it("cannot call if it is not allowed, and its browser says why", async (t) => {
    const { gw, run, told } = await opened(t, ["https://app.example.com"]);
    assert.equal((await run("return await completions.create(body);")).cause, "TypeError");
    assert.match(told.join("\n"), /blocked by CORS policy/);
    assert.deepEqual(methods(gw), ["OPTIONS 405"], "the request itself was never sent");
  });
});
