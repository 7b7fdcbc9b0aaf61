// The wire formats and the vendors that the gateway knows.
import { anthropicDialectDefinition } from "../../extensions/anthropic/index.ts";
import { demoDialectDefinition } from "../../extensions/demo/index.ts";
import { geminiDialectDefinition } from "../../extensions/gemini/index.ts";
import type { DialectDefinition } from "../providers/dialect.ts";
import { openaiDialectDefinition } from "../providers/openai/index.ts";
import { vendorPresets } from "../providers/vendors.ts";

/** In the order in which messages list them. */
export const DIALECTS: readonly DialectDefinition[] = [
  openaiDialectDefinition,
  anthropicDialectDefinition,
  geminiDialectDefinition,
  demoDialectDefinition,
];

/** Undefined: there is no format of this name. */
export const dialectNamed = (name: string): DialectDefinition | undefined =>
  DIALECTS.find((definition) => definition.name === name);

export const VENDORS = vendorPresets(DIALECTS);
