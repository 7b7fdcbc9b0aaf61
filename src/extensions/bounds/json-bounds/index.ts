// Refuses JSON texts that would hold the process up while they are parsed.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { createJsonCounter } from "./counter.ts";

export { createJsonCounter, type JsonCounter } from "./counter.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.jsonExcess, (text, maxValues) => createJsonCounter(maxValues).add(text));
}
