// Loads a configuration: from the named file, from ./gateway.json, or the built-in demo
// configuration.
import { dirname } from "node:path";
import { isNeededBy, type Loader } from "./loader.ts";
import { configSlots, type ConfigExtension } from "./extension.ts";
import { install } from "../core/extension/install.ts";
import type { Installed } from "../core/extension/installer.ts";
import { fail, isObject, pathText, type ValidationError } from "../core/schema/checker.ts";
import { checkConfig } from "./check.ts";
import {
  failUnreadable,
  MAX_CONFIG_BYTES,
  parseJsonFile,
  readRegularFileAsync,
  unreadableState,
  textIn,
  whyUnreadable,
  type FileContent,
} from "./regular-file.ts";
import type { Config } from "../core/config.ts";
import { createSecretFiles, type Environment, type SecretFiles } from "./secrets.ts";

export const DEFAULT_FILE = "gateway.json";

export interface LoadOptions {
  /** Absent: ./gateway.json if that exists, else the built-in configuration. */
  readonly file?: string | undefined;
  /** Replaces server.host. Absent: server.host applies. */
  readonly host?: string | undefined;
  /** Replaces server.port. Absent: server.port applies. */
  readonly port?: number | undefined;
  /** The environment variables that `"$NAME"` refers to. */
  readonly env: Environment;
  /** Loads the extensions that the configuration needs. */
  readonly loader: Loader;
  /**
   * Whether a gateway will serve with the configuration, so that the extensions of every gateway
   * are loaded too. Absent: no.
   */
  readonly serves?: boolean;
  /**
   * Whether this machine will serve with the configuration, so that the files and folders that it
   * names are checked. Absent: no.
   */
  readonly forThisHost?: boolean;
  /**
   * Whether a provider's or a client's key may be missing, because its environment variable is not
   * set or its file cannot be read. Absent: that is an issue.
   */
  readonly secretsOptional?: boolean;
  /**
   * The only members of the file that are read. If `providers` and `models` are not among them,
   * they are empty. Absent: all members are read.
   */
  readonly members?: readonly string[] | undefined;
  /**
   * Reads secret files, and remembers which files were read. Absent: a new reader is used.
   */
  readonly secretFiles?: SecretFiles;
}

export interface Loaded {
  /** The checked configuration, with all defaults, and with `host` and `port` of the options. */
  readonly config: Config;
  /** The extensions that the configuration needs, in the order of src/extensions.ts. */
  readonly extensions: readonly ConfigExtension[];
  /** What these extensions have installed. */
  readonly installed: Installed;
  /** The file's name. Undefined: it is the built-in configuration. */
  readonly source: string | undefined;
}

/**
 * Rejects with a ValidationError that has every issue at its path. An unreadable file is an issue
 * at the root. Reading the file does not block the event loop.
 */
export async function loadConfig(options: LoadOptions): Promise<Loaded> {
  const name = options.file ?? DEFAULT_FILE;
  let content: FileContent;
  try {
    content = await readRegularFileAsync(name, MAX_CONFIG_BYTES);
  } catch (error) {
    options.secretFiles?.readConfig({ path: name, state: unreadableState(error) });
    const mayBeAbsent = options.file === undefined && whyUnreadable(error) === "ENOENT";
    const builtIn = mayBeAbsent ? await builtInConfig(options.loader) : undefined;
    if (builtIn === undefined) return failUnreadable(name, error);
    return { ...(await checked(builtIn, "", options)), source: undefined };
  }
  options.secretFiles?.readConfig({ path: name, state: content.digest });
  const text = textIn(content.bytes);
  const json = parseJsonFile(name, text);
  if (!isObject(json)) fail("invalid_type", `expected an object in ${name}`);
  const { members } = options;
  const loaded = members
    ? await checked(onlyMembers(json, members), "", options)
    : await checked(json, text, options);
  return { ...loaded, source: name };
}

const onlyMembers = (json: Readonly<Record<string, unknown>>, members: readonly string[]) => ({
  providers: {},
  models: {},
  ...Object.fromEntries(Object.entries(json).filter(([name]) => members.includes(name))),
});

/** The built-in configuration. Undefined: no extension has one. */
async function builtInConfig(loader: Loader): Promise<unknown> {
  const extensions = await loader.load((entry) => entry.hasConfig === true);
  return install(extensions).filled(configSlots.builtInConfig);
}

/** Creates the reader of secret files for the configuration in `file`. */
export const secretFilesBeside = (file = DEFAULT_FILE): SecretFiles =>
  createSecretFiles(dirname(file));

/** Checks a configuration. `text`: the text of `json`; empty: there is none to check. */
async function checked(
  json: unknown,
  text: string,
  options: LoadOptions,
): Promise<Omit<Loaded, "source">> {
  const { loader, serves, secretFiles = secretFilesBeside(options.file) } = options;
  const effective = withOverrides(json, options);
  const { entries } = loader;
  const extensions = await loader.load(
    (entry) => entry.checks || (serves && entry.serves) || isNeededBy(effective, entry),
  );
  const installed = install(extensions);
  const loaded = { extensions, installed };
  const config = checkConfig(effective, { ...options, ...loaded, secretFiles, entries, text });
  return { config, ...loaded };
}

/**
 * The JSON with the host and port of the command line. A value that is not an object is returned as
 * it is, so that the check reports it.
 */
function withOverrides(json: unknown, { host, port }: LoadOptions): unknown {
  const server = isObject(json) ? (json["server"] ?? {}) : undefined;
  if (!isObject(server)) return json;
  return {
    ...(json as object),
    server: { ...server, host: host ?? server["host"], port: port ?? server["port"] },
  };
}

/** The issues of an error, in the JSON that programs get. */
export const issuesAsJson = ({ issues }: ValidationError) =>
  issues.map(({ path, message }) => ({ path: pathText(path), message }));
