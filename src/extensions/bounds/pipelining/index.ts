// Bounds how many requests of one connection are parsed before their responses have been sent.
import type { Extension } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { boundPipeline } from "./bound-pipeline.ts";

export const extension: Extension = {
  name: "pipelining",
  install: (gateway) => gateway.fill(slots.boundPipeline, boundPipeline),
};
