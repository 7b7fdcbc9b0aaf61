// Refuses JSON texts that would hold the process up while they are parsed.
import type { Extension } from "../../../core/extension/extension.ts";
import { createJsonCounter } from "./counter.ts";

export { createJsonCounter, type JsonCounter } from "./counter.ts";

export const extension: Extension = {
  name: "json-bounds",
  jsonExcess: (text, maxValues) => createJsonCounter(maxValues).add(text),
};
