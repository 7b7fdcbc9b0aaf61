// What extensions install, and the life of a gateway: who fills which slot and wraps whom, what is
// closed if it cannot start, what a failed reload leaves unchanged, and that a bug is reported even
// if its client has left.

import assert from "node:assert/strict";
import http from "node:http";
import { describe, it } from "node:test";
import { createGateway } from "../../src/core/app.ts";
import type { Config } from "../../src/core/config.ts";
import { install } from "../../src/core/extension/install.ts";
import {
  createdSlot,
  type Extension,
  type GatewayContext,
  type Installer,
  type ProcessEvents,
  start,
} from "../../src/core/extension/installer.ts";
import { hooks, slots } from "../../src/core/extension/places.ts";
import { startProcess } from "../../src/core/extension/process-parts.ts";
import { sendJson } from "../../src/core/http/responses.ts";
import type { Complete, RequestProgress } from "../../src/core/routing/fallback.ts";
import { checkConfig } from "../support/config.ts";
import { configFor } from "../support/gateway.ts";
import { waitFor } from "../support/wait.ts";

const extension = (name: string, add: (gateway: Installer) => void): Extension => ({
  name,
  install: add,
});
const services = { config: { data_dir: "./first" } } as unknown as GatewayContext;
const PROGRESS = {} as RequestProgress;
const NOTHING = [] as unknown as Parameters<Complete>;

/** Extensions that wrap requests and log their names. The one called "last" calls no other. */
function wrappers() {
  const log: string[] = [];
  const wrapper = (name: string, ...outside: readonly string[]): Extension =>
    extension(name, (gateway) =>
      gateway.around(
        () =>
          (complete) =>
          async (...request) => {
            log.push(name);
            return name === "last" ? PROGRESS : complete(...request);
          },
        { outside },
      ),
    );
  return { log, wrapper };
}

it("installing extensions rejects two that fill one slot or must wrap each other, and names them", () => {
  const fills = (name: string) =>
    extension(name, (gateway) => gateway.fill(slots.transport, () => undefined));
  const serves = (name: string) =>
    extension(name, (gateway) => gateway.route("GET", "/news", () => () => undefined));
  const { wrapper } = wrappers();
  for (const [extensions, message] of [
    [[fills("wires"), fills("pool")], /extensions wires and pool both take transport/],
    [[serves("one"), serves("two")], /extensions one and two both take GET \/news/],
    [[wrapper("free"), wrapper("one", "two"), wrapper("two", "one")], /wrap another: one, two/],
  ] as const)
    assert.throws(() => install(extensions), message);
});

it("installing extensions orders request wrappers by what each requires, else by the extensions' order", () => {
  const { wrapper } = wrappers();
  const order = (...extensions: readonly Extension[]) => install(extensions).aroundOrder();
  assert.deepEqual(order(wrapper("a"), wrapper("b"), wrapper("c")), ["a", "b", "c"]);
  assert.deepEqual(order(wrapper("a"), wrapper("b"), wrapper("c", "a")), ["b", "c", "a"]);
  assert.deepEqual(order(wrapper("a"), wrapper("b", "absent")), ["a", "b"]);
});

it("a process creates its parts in order, closes them in reverse order, and reports them by name", async () => {
  const log: string[] = [];
  const made = createdSlot<object>("made");
  const steps = (name: string): Extension =>
    extension(name, (gateway) => {
      if (name === "one")
        gateway.fill(made, () => {
          log.push("one's slot");
          return {};
        });
      gateway.on(start, ({ on }) => {
        log.push(`${name} starts`);
        on("open", async () => {
          log.push(`${name} opens`);
        });
        on("close", () => {
          log.push(`${name} closes`);
        });
        on("report", () => `${name} is well`);
      });
    });
  const mute = extension("mute", () => undefined);
  const parts = startProcess(install([steps("one"), steps("two"), mute]), services);
  await parts.open();
  assert.deepEqual(parts.report(), { one: "one is well", two: "two is well" });
  await parts.close();
  assert.deepEqual(log, [
    ...["one's slot", "one starts", "two starts"],
    ...["one opens", "two opens", "two closes", "one closes"],
  ]);
});

it("an extension that a reload first needs wraps requests as soon as the reload applies", async () => {
  const { log, wrapper } = wrappers();
  const last = wrapper("last");
  const parts = startProcess(install([last]), services);
  const { complete } = parts;
  const configs: Config[] = [];
  const added = extension("added", (gateway) => {
    wrapper("added", "last").install(gateway);
    gateway.on(start, ({ config }) => configs.push(config));
  });
  const config = { data_dir: "./second" } as Config;
  const apply = parts.reload(config, install([last, added]));
  await complete(...NOTHING);
  assert.deepEqual(log, ["last"]);
  apply();
  await complete(...NOTHING);
  assert.deepEqual(log, ["last", "added", "last"]);
  parts.reload(config, install([last, added]))();
  assert.deepEqual(configs, [config]);
});

const config = (over: object = {}) =>
  checkConfig({ ...configFor("http://127.0.0.1:1", ["m"]), server: { port: 0 }, ...over });

/** An extension that handles these events. */
const part = (
  name: string,
  events: Partial<ProcessEvents>,
  more: Extension["install"] = () => undefined,
): Extension =>
  extension(name, (gateway) => {
    gateway.on(start, ({ on }) => {
      for (const [event, listener] of Object.entries(events))
        on(event as keyof ProcessEvents, listener);
    });
    more(gateway);
  });

describe("a gateway", () => {
  it("closes what it has opened if one of its parts cannot start", async () => {
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

  it("keeps the whole old configuration if one part of the new one is rejected", async () => {
    const applied: string[] = [];
    const guarded = part(
      "guarded",
      {
        reload: (next) => () => {
          applied.push(next.data_dir);
        },
      },
      (gateway) =>
        gateway.on(hooks.guards, (next) => {
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

  it("calls the guards of all extensions in order until one handles the request", async (t) => {
    const asked: string[] = [];
    const guarding = (name: string, answers: string): Extension =>
      part(name, {}, (gateway) =>
        gateway.on(hooks.guards, () => (exchange) => {
          asked.push(name);
          if (exchange.req.url !== answers) return false;
          sendJson(exchange.res, 202, {});
          return true;
        }),
      );
    const silent = part("silent", {}, (gateway) => gateway.on(hooks.guards, () => undefined));
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
    assert.deepEqual(await ask("/2"), [202, "later", "first", "second"], "these stay");
  });

  it("logs a bug in a handler whose client has left", async () => {
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
