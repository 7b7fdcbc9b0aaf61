// Where a configuration comes from: the file that was named, ./gateway.json, or the built-in demo
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
  readRegularFileLater,
  stateOfFailed,
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
  /** Takes the place of server.host. */
  readonly host?: string | undefined;
  /** Takes the place of server.port. */
  readonly port?: number | undefined;
  /** Where `"$NAME"` is looked up. */
  readonly env: Environment;
  /** Loads the extensions that the configuration needs. */
  readonly loader: Loader;
  /**
   * A gateway is to serve with it, so the extensions that every gateway has are loaded too. Absent:
   * they are not.
   */
  readonly serves?: boolean;
  /**
   * This machine is to serve with it, so the files and folders that it names are looked at. Absent:
   * they are not.
   */
  readonly here?: boolean;
  /**
   * A provider's or a client's key whose environment variable is not set, or whose file cannot be
   * read, is no issue. Absent: it is one.
   */
  readonly secretsOptional?: boolean;
  /**
   * Only these members of the file are read, as if there were no others, no provider and no model.
   * Absent: all are.
   */
  readonly members?: readonly string[] | undefined;
  /**
   * Reads the files of secrets, and knows afterwards which files were read. Absent: a new one does.
   */
  readonly secretFiles?: SecretFiles;
}

export interface Loaded {
  /** Checked, with every default, and with `host` and `port` of the options. */
  readonly config: Config;
  /** The extensions that the configuration needs, in the order of src/extensions.ts. */
  readonly extensions: readonly ConfigExtension[];
  /** What these extensions have installed. */
  readonly installed: Installed;
  /** The file's name; undefined for the built-in configuration. */
  readonly source: string | undefined;
}

/**
 * Rejects with a ValidationError that has every issue at its path; that of an unreadable file
 * is at the root. Reading the file does not block the event loop.
 */
export async function loadConfig(options: LoadOptions): Promise<Loaded> {
  const name = options.file ?? DEFAULT_FILE;
  let content: FileContent;
  try {
    content = await readRegularFileLater(name, MAX_CONFIG_BYTES);
  } catch (error) {
    options.secretFiles?.readConfig({ path: name, state: stateOfFailed(error) });
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

/** The configuration of a program without a file, if an extension brings one. */
async function builtInConfig(loader: Loader): Promise<unknown> {
  const extensions = await loader.load((entry) => entry.hasConfig === true);
  return install(extensions).filled(configSlots.builtInConfig);
}

/** Creates the reader of the files of secrets that the configuration in `file` names. */
export const secretFilesBeside = (file = DEFAULT_FILE): SecretFiles =>
  createSecretFiles(dirname(file));

/** `text`: what was parsed; empty if nothing was. */
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
 * With the host and port of the command line. Anything but an object is returned as it is, so that
 * the check reports it.
 */
function withOverrides(json: unknown, { host, port }: LoadOptions): unknown {
  const server = isObject(json) ? (json["server"] ?? {}) : undefined;
  if (!isObject(server)) return json;
  return {
    ...(json as object),
    server: { ...server, host: host ?? server["host"], port: port ?? server["port"] },
  };
}

/** Issues as programs get them. */
export const issuesAsJson = ({ issues }: ValidationError) =>
  issues.map(({ path, message }) => ({ path: pathText(path), message }));
