// Where a configuration comes from: the file that was named, ./gateway.json, or the built-in demo; and from the file again whenever it
// changes, or somebody says so: all or nothing, a faulty file changes nothing.
import type { Diagnose } from "../diagnose.ts";
import { ValidationError, isObject, pathText, type ValidationIssue } from "../schema/checker.ts";
import demoConfig from "../../extensions/demo/demo.json" with { type: "json" };
import { repeatedMembers } from "./duplicates.ts";
import { failUnreadable, parseJsonFile, textIn } from "./json-file.ts";
import {
  MAX_CONFIG_BYTES,
  readRegularFile,
  readRegularFileLater,
  whyUnreadable,
  type FileContent,
} from "./regular-file.ts";
import { checkConfig, type Config, type Environment } from "./schema.ts";
import { surroundingFaults } from "./surroundings.ts";

export const DEFAULT_FILE = "gateway.json";

/** `file` absent: ./gateway.json if it is there, else the demo configuration. `host` and `port` override the file's `server.host` and
 * `server.port`. `secretsOptional`: a provider's or a client's key whose environment variable is not set is no fault. `here`: this machine is
 * to serve with it, so the files and folders that it names are looked at too. */
export type LoadOptions = { readonly [option in "file" | "host"]?: string | undefined } & {
  readonly port?: number | undefined;
  readonly env: Environment;
  readonly secretsOptional?: boolean;
  readonly here?: boolean;
};

/** A configuration, and where it comes from. `source`: the file's name; undefined for the demo. `digest`: that of the file's content, by which
 * a later one is told apart; null for the demo. */
export interface Loaded {
  readonly config: Config;
  readonly source: string | undefined;
  readonly digest: string | null;
}

/** Throws a ValidationError with every fault at its path; that of an unreadable file is the root. */
export function loadConfig(options: LoadOptions): Loaded {
  const name = options.file ?? DEFAULT_FILE;
  let content: FileContent;
  try {
    content = readRegularFile(name, MAX_CONFIG_BYTES);
  } catch (error) {
    if (mayBeAbsent(options, error)) return builtIn(options);
    return failUnreadable(name, error);
  }
  return configIn(name, content, options);
}

/** The same without holding the event loop while the file is read. */
export async function loadConfigLater(options: LoadOptions): Promise<Loaded> {
  const name = options.file ?? DEFAULT_FILE;
  let content: FileContent;
  try {
    content = await readRegularFileLater(name, MAX_CONFIG_BYTES);
  } catch (error) {
    if (mayBeAbsent(options, error)) return builtIn(options);
    return failUnreadable(name, error);
  }
  return configIn(name, content, options);
}

const mayBeAbsent = ({ file }: LoadOptions, error: unknown): boolean =>
  file === undefined && whyUnreadable(error) === "ENOENT";

const builtIn = (options: LoadOptions): Loaded => ({
  config: checked(demoConfig, options, []),
  source: undefined,
  digest: null,
});

function configIn(name: string, { bytes, digest }: FileContent, options: LoadOptions): Loaded {
  const text = textIn(bytes);
  const json = parseJsonFile(name, text);
  return { config: checked(json, options, repeatedMembers(text)), source: name, digest };
}

/** `found`: faults that are known already, and are told with all others. */
function checked(json: unknown, options: LoadOptions, found: readonly ValidationIssue[]): Config {
  const { host, port, env, secretsOptional, here } = options;
  // Only an object can be withOverrides in; anything else is a fault that the check must see as it is.
  const own = isObject(json) ? (json["server"] ?? {}) : undefined;
  const given = isObject(own)
    ? {
        ...(json as object),
        server: { ...own, host: host ?? own["host"], port: port ?? own["port"] },
      }
    : json;
  const faults = [...found, ...(here ? surroundingFaults(given) : [])];
  try {
    const config = checkConfig(given, env, secretsOptional);
    if (faults.length === 0) return config;
  } catch (error) {
    if (!(error instanceof ValidationError)) throw error;
    faults.unshift(...error.faults);
  }
  throw new ValidationError(faults);
}

/** Faults as programs get them. */
export const toldFaults = ({ faults }: ValidationError) =>
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
      error instanceof ValidationError
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
