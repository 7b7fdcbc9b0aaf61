// A gateway as a whole: what is closed when it cannot start, what a reload that fails leaves as it
// was, and who hears of a bug whose client has left.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, it } from "node:test";
import { createGateway } from "../../src/core/app.ts";
import { start, type Extension, type ProcessEvents } from "../../src/core/extension/installer.ts";
import { moments } from "../../src/core/extension/places.ts";
import { sendJson } from "../../src/core/http/responses.ts";
import { checkConfig } from "../support/config.ts";
import { configFor } from "../support/gateway.ts";
import { waitFor } from "../support/wait.ts";

const config = (over: object = {}) =>
  checkConfig({ ...configFor("http://127.0.0.1:1", ["m"]), server: { port: 0 }, ...over });

/** An extension that hears of these events. */
const part = (
  name: string,
  events: Partial<ProcessEvents>,
  more: Extension["install"] = () => undefined,
): Extension => ({
  name,
  install(gateway) {
    gateway.on(start, ({ on }) => {
      for (const [event, listener] of Object.entries(events))
        on(event as keyof ProcessEvents, listener);
    });
    more(gateway);
  },
});

describe("a gateway", () => {
  it("closes what it has opened when one of its parts cannot start", async () => {
    const log: string[] = [];
    const gateway = createGateway(config(), {
      extensions: [
        part("first", {
          open: async () => {
            log.push("first open");
          },
          close: () => {
            log.push("first close");
          },
        }),
        part("second", { open: () => Promise.reject(new Error("no disk")) }),
      ],
    });
    await assert.rejects(gateway.listen(), { message: "no disk" });
    assert.deepEqual(log, ["first open", "first close"]);
  });

  it("keeps the old configuration whole where one part of the new one is refused", async () => {
    const applied: string[] = [];
    const guarded = part(
      "guarded",
      {
        reload: (next) => () => {
          applied.push(next.data_dir);
        },
      },
      (gateway) =>
        gateway.on(moments.guards, (next) => {
          if (next.data_dir === "./refused") throw new Error("refused");
          return undefined;
        }),
    );
    const gateway = createGateway(config(), { extensions: [guarded] });
    const refused = config({ data_dir: "./refused" });
    assert.throws(() => gateway.reload(refused, [guarded]), { message: "refused" });
    assert.deepEqual(applied, []);
    gateway.reload(config({ data_dir: "./taken" }), [guarded]);
    assert.deepEqual(applied, ["./taken"]);
    await gateway.close();
  });

  it("has every extension's guard asked, up to one that answers", async (t) => {
    const asked: string[] = [];
    const guarding = (name: string, answers: string): Extension =>
      part(name, {}, (gateway) =>
        gateway.on(moments.guards, () => (exchange) => {
          asked.push(name);
          if (exchange.req.url !== answers) return false;
          sendJson(exchange.res, 202, {});
          return true;
        }),
      );
    const silent = part("silent", {}, (gateway) => gateway.on(moments.guards, () => undefined));
    const extensions = [guarding("first", "/1"), silent, guarding("second", "/2")];
    const gateway = createGateway(config(), { extensions });
    t.after(() => gateway.close(0));
    const url = await gateway.listen();
    const ask = async (path: string) => {
      asked.length = 0;
      const { status } = await fetch(url + path);
      return [status, ...asked];
    };
    assert.deepEqual(await ask("/1"), [202, "first"]);
    assert.deepEqual(await ask("/2"), [202, "first", "second"]);
    assert.deepEqual(await ask("/healthz"), [200, "first", "second"]);
    gateway.reload(config(), [guarding("later", "/3")]);
    gateway.reload(config(), [silent]);
    assert.deepEqual(await ask("/2"), [202, "later", "first", "second"], "needed or not");
  });

  it("diagnoses a bug in a handler whose client has left", async () => {
    const diagnosed: string[] = [];
    let called = false;
    const slow = part("slow", {}, (gateway) =>
      gateway.route("GET", "/slow", () => async ({ cancel }) => {
        called = true;
        await new Promise<void>((resolve) => cancel.onAbort(resolve));
        throw new TypeError("a bug after the client has left");
      }),
    );
    const gateway = createGateway(config(), {
      extensions: [slow],
      diagnostics: (lines) => diagnosed.push(lines),
    });
    const request = http.get(`${await gateway.listen()}/slow`).on("error", () => undefined);
    await waitFor(() => called, "the handler to be called");
    request.destroy();
    await waitFor(() => diagnosed.join("").includes("internal_error"), "the line about the bug");
    assert.match(diagnosed.join(""), /TypeError: a bug after the client has left/);
    await gateway.close();
  });
});
