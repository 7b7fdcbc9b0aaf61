// What extensions install: who has which place, who wraps whom, and what a process makes of it.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { install } from "../../../src/core/extension/install.ts";
import {
  createdSlot,
  start,
  type Extension,
  type GatewayContext,
  type Installer,
} from "../../../src/core/extension/installer.ts";
import { slots } from "../../../src/core/extension/places.ts";
import { startProcess } from "../../../src/core/extension/process-parts.ts";
import type { Config } from "../../../src/core/config.ts";
import type { Complete, RequestProgress } from "../../../src/core/routing/fallback.ts";

const extension = (name: string, add: (gateway: Installer) => void): Extension => ({
  name,
  install: add,
});
const services = { config: { data_dir: "./first" } } as unknown as GatewayContext;
const PROGRESS = {} as RequestProgress;
const NOTHING = [] as unknown as Parameters<Complete>;

/** Extensions that wrap requests, and write their names. The one called "last" asks no other. */
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

describe("installing extensions", () => {
  it("refuses two that take the same place, and two that must each wrap the other, and names them", () => {
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

  it("orders what wraps requests by what each demands, else as the extensions stand", () => {
    const { wrapper } = wrappers();
    const order = (...extensions: readonly Extension[]) => install(extensions).aroundOrder();
    assert.deepEqual(order(wrapper("a"), wrapper("b"), wrapper("c")), ["a", "b", "c"]);
    assert.deepEqual(order(wrapper("a"), wrapper("b"), wrapper("c", "a")), ["b", "c", "a"]);
    assert.deepEqual(order(wrapper("a"), wrapper("b", "absent")), ["a", "b"]);
  });
});

describe("the parts of a process", () => {
  it("are created once, one extension after the other, closed in the reverse, and report by name", async () => {
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

  it("wrap requests at once with an extension that a reload needs for the first time", async () => {
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
});
