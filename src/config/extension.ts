// The demands of a configuration on extensions: their settings, rules beyond their shape, and which
// line of src/extensions.ts loads them.
import type { Config } from "../core/config.ts";
import type { Extension } from "../core/extension/extension.ts";
import type { AliasSettings } from "../core/routing/model.ts";
import type { Formats } from "./formats.ts";
import type { ValidationIssue } from "../core/schema/checker.ts";
import type { Setting } from "./setting.ts";

/**
 * A line of src/extensions.ts: when an extension is loaded. Everything but `name` and `load` may be
 * absent: it is no reason to load it.
 */
export interface ExtensionEntry<X extends ConfigExtension = ConfigExtension> {
  /** Its folder in src/extensions, and the `name` of the extension. */
  readonly name: string;
  /** Its settings, as Setting.path has them. It is loaded when a configuration has one of them. */
  readonly settings?: readonly string[];
  /** The dialects that it brings. It is loaded when a provider uses one. */
  readonly dialects?: readonly string[];
  /** It brings the configuration of a program without a file. At most one extension does. */
  readonly hasConfig?: boolean;
  /** Its `supervise` starts processes, which need its `work`. At most one extension does. */
  readonly startsProcesses?: boolean;
  /** It is loaded with every configuration. */
  readonly checks?: boolean;
  /** It is loaded whenever a gateway serves. */
  readonly serves?: boolean;
  /**
   * It is loaded when a setting has another value than this, which stands for what the program does
   * without the extension.
   */
  readonly loadUnless?: { readonly setting: string; readonly value: string };
  /** Evaluates its code, at the first call. Not called while nothing needs it. */
  load(): Promise<{ readonly extension: X }>;
}

/** The dialects that these bring, loaded or not. */
export const dialectsOf = (entries: readonly ExtensionEntry[]): readonly string[] =>
  entries.flatMap(({ dialects = [] }) => dialects);

/** Every member may be absent: the extension adds nothing of that kind. */
export interface ConfigExtension extends Extension {
  /** The fields that it adds to gateway.json. Its entry lists their paths. */
  readonly settings?: readonly Setting<unknown>[];
  /** The configuration of a program without a file: JSON, as if it had been read. */
  readonly builtInConfig?: unknown;
  /** A store outside of the process that one of the settings can name. */
  readonly store?: StoreAddress;
  /**
   * Rules between its settings and others, beyond their shape. Looks at the raw JSON, so that an
   * issue of shape elsewhere hides none.
   */
  readonly issues?: (json: unknown, formats: Formats) => readonly ValidationIssue[];
  /** Issues of a configuration's text, which is valid JSON. */
  readonly textIssues?: (text: string) => readonly ValidationIssue[];
  /** Its effects on the use of an alias, in sentences. `explain` prints them. */
  readonly notes?: (alias: AliasSettings) => readonly string[];
  /** Warnings about a valid configuration. `check` prints them. */
  readonly warnings?: (config: Config) => readonly Warning[];
  /**
   * Issues of a configuration on the machine that is to serve with it, such as an unreadable
   * certificate. Looks at the raw JSON.
   */
  readonly issuesHere?: (json: unknown) => readonly ValidationIssue[];
  /**
   * Throws a ValidationError if something that the configuration needs is missing, such as a
   * package. `check` calls it.
   */
  readonly assertReady?: (config: Config, extensions: readonly Extension[]) => void;
}

/** Something in a configuration with which a gateway starts, but hardly as it is meant. */
export interface Warning {
  /** From the root of gateway.json, as ValidationIssue.path. */
  readonly path: ValidationIssue["path"];
  /** The text of the warning and its consequence, without the path. */
  readonly message: string;
}

/**
 * A kind of address that stands where else a built-in word does: `"redis://..."` for `"memory"`.
 */
export interface StoreAddress {
  /** The setting's path: `limits.store`. */
  readonly setting: string;
  /** Matches the beginning of such an address. */
  readonly scheme: RegExp;
  /** The kind of server at the address, for messages: "a PostgreSQL database (postgres://...)". */
  readonly expected: string;
}
