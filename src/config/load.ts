// Where a configuration comes from: the file that was named, ./gateway.json, or the built-in demo.
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { fail, isObject } from "../protocol/checker.ts";
import demoConfig from "./demo.json" with { type: "json" };
import { checkConfig, type Environment } from "./schema.ts";

/** `file` absent: ./gateway.json if it is there, else the demo configuration. `host` and `port` override the file's `server.host` and
 * `server.port`. `secretsOptional`: a provider's or a client's key whose environment variable is not set is no fault. */
export interface LoadOptions {
  readonly file?: string | undefined; readonly host?: string | undefined; readonly port?: number | undefined;
  readonly env: Environment; readonly secretsOptional?: boolean;
}

/** Throws a CheckError with every fault at its path; that of an unreadable file is the root. `source` is undefined for the demo. */
export function loadConfig({ file, host, port, env, secretsOptional }: LoadOptions) {
  const [json, source] = readSource(file);
  const overrides = { ...(host !== undefined && { host }), ...(port !== undefined && { port }) };
  // Only an object can take them; anything else is a fault that the check must see as it is.
  const server = isObject(json) ? (json["server"] ?? {}) : undefined;
  const given = isObject(server) ? { ...(json as object), server: { ...server, ...overrides } } : json;
  return { config: checkConfig(given, env, secretsOptional), source };
}

function readSource(file: string | undefined): [json: unknown, source: string | undefined] {
  const name = file ?? "gateway.json";
  let text = "";
  try {
    text = readFileSync(name, "utf8").replace(/^\ufeff/, "");
    return [JSON.parse(text), name];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // of a file that cannot be read; a text that is not JSON has none
    if (file === undefined && code === "ENOENT") return [demoConfig, undefined];
    if (code !== undefined) return fail("invalid_value", `cannot read ${name}: ${code}`);
    // V8 quotes the file around the fault, which may be a key; only the place is told.
    const lines = text.slice(0, faultIn(text)).split("\n");
    return fail("invalid_value", `${name} is not JSON: the fault is at line ${lines.length}, column ${lines.at(-1)!.length + 1}`);
  }
}

/** Where a text ceases to be JSON. V8 says so, save of an unexpected token: of that it speaks in every beginning that has it. */
function faultIn(text: string): number {
  const messageOf = (length: number): string => {
    try {
      JSON.parse(text.slice(0, length));
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const stated = /position (\d+)/.exec(messageOf(text.length))?.[1];
  if (stated !== undefined) return Number(stated);
  let [sound, broken] = [0, text.length + 1];
  while (broken - sound > 1) {
    const middle = (sound + broken) >> 1;
    [sound, broken] = messageOf(middle).startsWith("Unexpected token") ? [sound, middle] : [middle, broken];
  }
  return broken - 1;
}

/** The certificate and key that HTTPS is served with. Throws a CheckError with the path of the file that cannot be read, or is none. */
export function readTls(files: { readonly cert_file: string; readonly key_file: string }): { cert: Buffer; key: Buffer } {
  const orFail = <T>(work: () => T, said: (error: NodeJS.ErrnoException) => string, ...at: string[]): T => {
    try {
      return work();
    } catch (error) {
      return fail("invalid_value", said(error as Error), ["server", "tls", ...at]);
    }
  };
  const read = (field: keyof typeof files) => orFail(() => readFileSync(files[field]), ({ code }) => `cannot be read: ${code}`, field);
  const pair = { cert: read("cert_file"), key: read("key_file") };
  orFail(() => createSecureContext(pair), ({ message }) => `not a certificate and its key: ${message}`);
  return pair;
}
