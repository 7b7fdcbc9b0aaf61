// Refuses JSON texts that would hold the process up while they are parsed.
import type { Extension } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { createJsonCounter } from "./counter.ts";

export { createJsonCounter, type JsonCounter } from "./counter.ts";

export const extension: Extension = {
  name: "json-bounds",
  install(gateway) {
    gateway.fill(slots.jsonExcess, (text, maxValues) => createJsonCounter(maxValues).add(text));
  },
};
