// Bounds how many requests of one connection are parsed before their responses have been sent.
import type { Installer } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { boundPipeline } from "./bound-pipeline.ts";

export function install(gateway: Installer): void {
  gateway.fill(slots.boundPipeline, boundPipeline);
}
