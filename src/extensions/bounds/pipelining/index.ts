// Bounds how many requests of one connection are parsed before their responses have been sent.
import type { Extension } from "../../../core/extension/extension.ts";
import { boundPipeline } from "./bound-pipeline.ts";

export const extension: Extension = { name: "pipelining", boundPipeline };
