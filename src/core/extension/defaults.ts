// The core's own dialect, transport and check of requests, with what extensions add to them.
import { chatRequest, type ChatRequest } from "../openai/request.ts";
import type { DialectDefinition } from "../providers/dialect.ts";
import { openaiDialectDefinition } from "../providers/openai/index.ts";
import type { Reach } from "../routing/model.ts";
import type { Check } from "../schema/checker.ts";
import type { Installed } from "./installer.ts";
import { moments, slots, type ReachServices } from "./places.ts";

/** The wire formats by their names. One of an extension takes the place of the core's own. */
export const dialectsIn = (installed: Installed): ReadonlyMap<string, DialectDefinition> =>
  new Map([["openai", openaiDialectDefinition], ...installed.family(slots.dialect)]);

/** The check of a chat completions request. */
export const requestCheck = (installed: Installed): Check<ChatRequest> =>
  installed
    .listeners(moments.extendRequest)
    .reduce<Check<ChatRequest>>((check, { call }) => call(check), chatRequest);

/** Builds the transport to a provider: each extension may put one around those before. */
export const reachIn =
  (installed: Installed, services: ReachServices): Reach =>
  (destination, transport) =>
    installed
      .listeners(moments.reach)
      .reduce((inner, { call }) => call(destination, inner, services), transport);
