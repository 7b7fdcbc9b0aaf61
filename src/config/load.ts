// Where a configuration comes from: the file that was named, ./gateway.json, or the built-in demo; and from the file again whenever it
// changes, or somebody says so: all or nothing, a faulty file changes nothing.
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { readJson } from "../accounting/files.ts";
import type { Diagnose } from "../http/log.ts";
import { CheckError, fail, isObject, pathText } from "../protocol/checker.ts";
import demoConfig from "./demo.json" with { type: "json" };
import { checkConfig, type Config, type Environment } from "./schema.ts";

/** `file` absent: ./gateway.json if it is there, else the demo configuration. `host` and `port` override the file's `server.host` and
 * `server.port`. `secretsOptional`: a provider's or a client's key whose environment variable is not set is no fault. */
export type LoadOptions = { readonly [option in "file" | "host"]?: string | undefined } & {
  readonly port?: number | undefined;
  readonly env: Environment;
  readonly secretsOptional?: boolean;
};
/** Throws a CheckError with every fault at its path; that of an unreadable file is the root. `source` is undefined for the demo. */
export function loadConfig({ file, host, port, env, secretsOptional }: LoadOptions) {
  const name = file ?? "gateway.json";
  const json = readJson(name, demoConfig, file === undefined ? ["ENOENT"] : []);
  // Only an object can be overridden in; anything else is a fault that the check must see as it is.
  const own = isObject(json) ? (json["server"] ?? {}) : undefined;
  const given = isObject(own)
    ? {
        ...(json as object),
        server: { ...own, host: host ?? own["host"], port: port ?? own["port"] },
      }
    : json;
  return {
    config: checkConfig(given, env, secretsOptional),
    source: json === demoConfig ? undefined : name,
  };
}

/** The certificate and key that HTTPS is served with. Throws a CheckError with the path of the file that cannot be read, or is none. */
export function readTls(
  files: { readonly cert_file: string; readonly key_file: string },
  section = "server",
): { cert: Buffer; key: Buffer } {
  const refuse = (rule: string, ...at: string[]) =>
    fail("invalid_value", rule, [section, "tls", ...at]);
  const read = (field: keyof typeof files) =>
    orElse(
      () => readFileSync(files[field]),
      ({ code }) => refuse(`cannot be read: ${code}`, field),
    );
  const pair = { cert: read("cert_file"), key: read("key_file") };
  orElse(
    () => createSecureContext(pair),
    ({ message }) => refuse(`not a certificate and its key: ${message}`),
  );
  return pair;
}

const LOOK_MS = 500; // looking, and not being told, also works where an editor puts a new file in its place
/** Faults as programs get them. */
export const toldFaults = ({ faults }: CheckError) =>
  faults.map(({ path, message }) => ({ path: pathText(path), message }));

/** `load` reads and checks a configuration, or throws; the gateway puts it in force, or throws. What is wrong with it is told. */
export function reload(
  gateway: { readonly reload: (config: Config) => void; readonly diagnose: Diagnose },
  load: () => Config,
): void {
  try {
    gateway.reload(load());
  } catch (error) {
    const faults =
      error instanceof CheckError
        ? toldFaults(error)
        : [{ path: "", message: (error as Error).message }];
    gateway.diagnose({
      event: "reload_failed",
      level: "error",
      detail: "the configuration before it stays in force",
      faults,
    });
  }
}

/** Calls `changed` soon after the file has other content, until it is closed. */
export function watchFile(file: string, changed: () => void) {
  let seen = contentOf(file);
  const timer = setInterval(() => {
    const content = contentOf(file);
    // A file that is not there is one that is being replaced, one that cannot be read any more is a change, one merely touched is none.
    if (content === "ENOENT" || content === seen) return;
    seen = content;
    changed();
  }, LOOK_MS).unref();
  return { close: () => clearInterval(timer) };
}

/** What stands in it, or why it cannot be read. */
const contentOf = (file: string): string =>
  orElse(
    () => readFileSync(file, "utf8"),
    ({ code }) => String(code),
  );

/** What comes of it, or of the error that it throws. */
function orElse<T>(work: () => T, otherwise: (error: NodeJS.ErrnoException) => T): T {
  try {
    return work();
  } catch (error) {
    return otherwise(error as Error);
  }
}
