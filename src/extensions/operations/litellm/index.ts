// A configuration of LiteLLM made into a gateway.json, with what has no place in it.
export { convertLitellm, type Conversion } from "./convert.ts";
export type { LeftOut } from "./left-out.ts";
export { readLitellmFile } from "./read-file.ts";
