// The demo model: an offline provider inside the process, for trying the gateway out, and the
// configuration of a program without a file.
import type { Installer } from "../../../core/extension/installer.ts";
import { integer } from "../../../config/fields.ts";
import { configSlots } from "../../../config/extension.ts";
import { defineSetting } from "../../../config/setting.ts";
import { hooks, slots } from "../../../core/extension/places.ts";
import { openaiDialectDefinition } from "../../../core/providers/openai/index.ts";
import builtInConfig from "./demo.json" with { type: "json" };
import { createDemoTransport } from "./transport.ts";

const DEFAULT_PACE_MS = 20;

/** The time between two tokens of a stream, in milliseconds. */
const pace = defineSetting("providers.*.pace_ms", DEFAULT_PACE_MS, () => integer(0, 10_000));

export const settings = [pace];

export function install(gateway: Installer): void {
  // The OpenAI-compatible format, without a network.
  gateway.fill(slots.dialect("demo"), {
    thinkingSwitches: ["thinking"],
    unsupported: [],
    mediaRules: "openai",
    create: openaiDialectDefinition.create,
  });
  // The model is in this process.
  gateway.on(hooks.reach, ({ dialect, settings }, transport) =>
    dialect === "demo" ? createDemoTransport({ paceMs: pace.of(settings) }) : transport,
  );
  gateway.fill(configSlots.builtInConfig, builtInConfig);
}
