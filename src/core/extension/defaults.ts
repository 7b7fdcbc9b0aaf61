// The core's own dialect and check of requests, with what extensions add to them.
import { chatRequest, type ChatRequest } from "../openai/request.ts";
import type { DialectDefinition } from "../providers/dialect.ts";
import { openaiDialectDefinition } from "../providers/openai/index.ts";
import type { Check } from "../schema/checker.ts";
import type { Installed } from "./installer.ts";
import { moments, slots } from "./places.ts";

/** The wire formats by their names. One of an extension takes the place of the core's own. */
export const dialectsIn = (installed: Installed): ReadonlyMap<string, DialectDefinition> =>
  new Map([
    [openaiDialectDefinition.name, openaiDialectDefinition],
    ...installed.family(slots.dialect),
  ]);

/** The check of a chat completions request. */
export const requestCheck = (installed: Installed): Check<ChatRequest> =>
  installed
    .listeners(moments.extendRequest)
    .reduce<Check<ChatRequest>>((check, { call }) => call(check), chatRequest);
