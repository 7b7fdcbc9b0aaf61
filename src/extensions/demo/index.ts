// The demo model: an offline provider inside the process, for trying the gateway out.
import type { DialectDefinition } from "../../core/providers/dialect.ts";
import { openaiDialectDefinition } from "../../core/providers/openai/index.ts";
import { createDemoTransport } from "./transport.ts";

/** The OpenAI-compatible format, without a network. */
export const demoDialectDefinition: DialectDefinition = {
  name: "demo",
  thinkingSwitches: ["thinking"],
  unsupported: [],
  mediaRules: "openai",
  create: openaiDialectDefinition.create,
  transport: createDemoTransport,
};
