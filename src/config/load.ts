// Where a configuration comes from: the file that was named, ./gateway.json, or the built-in demo.

import { readFileSync } from "node:fs";
import { fail } from "../protocol/checker.ts";
import { demoConfig } from "./demo.ts";
import { checkConfig, type Config, type Environment } from "./schema.ts";

export interface LoadOptions {
  /** Absent: ./gateway.json if it is there, else the demo configuration. */
  readonly file?: string | undefined;
  /** They override the file's `server.host` and `server.port`. */
  readonly host?: string | undefined;
  readonly port?: number | undefined;
  readonly env: Environment;
}

export interface Loaded {
  readonly config: Config;
  /** The file's name, or undefined for the demo. */
  readonly source: string | undefined;
}

/** Throws a CheckError with every fault at its path; a file that cannot be read or parsed is a fault at the root. */
export function loadConfig(options: LoadOptions): Loaded {
  const [json, source] = readSource(options.file);
  const given = json as { server?: object } | null;
  const overrides = { ...(options.host !== undefined && { host: options.host }), ...(options.port !== undefined && { port: options.port }) };
  const merged = Object.keys(overrides).length > 0 && isPlainObject(given) ? { ...given, server: { ...given.server, ...overrides } } : given;
  return { config: checkConfig(merged, options.env), source };
}

const isPlainObject = (value: unknown): value is object => typeof value === "object" && value !== null && !Array.isArray(value);

function readSource(file: string | undefined): [json: unknown, source: string | undefined] {
  const name = file ?? "gateway.json";
  let text: string;
  try {
    text = readFileSync(name, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (file === undefined && code === "ENOENT") return [demoConfig, undefined];
    return fail("invalid_value", `cannot read ${name}: ${code}`);
  }
  try {
    return [JSON.parse(text.replace(/^\ufeff/, "")), name];
  } catch (error) {
    // V8 quotes the file around the fault, which may be a key; only the place is repeated.
    const position = Number(/position (\d+)/.exec((error as Error).message)?.[1] ?? text.length);
    const lines = text.slice(0, position).split("\n");
    return fail("invalid_value", `${name} is not JSON: the fault is at line ${lines.length}, column ${lines.at(-1)!.length + 1}`);
  }
}
