// Converts a configuration of LiteLLM to a gateway.json, and lists what it cannot carry over.
export { convertLitellm, type Conversion } from "./convert.ts";
export type { LeftOut } from "./left-out.ts";
export { readLitellmFile } from "./read-file.ts";
