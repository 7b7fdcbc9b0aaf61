// The demands of a configuration on extensions: their settings, rules beyond their shape, and which
// line of src/extensions.ts loads them.
import type { Config } from "../core/config.ts";
import {
  moment,
  slot,
  slotFamily,
  type Extension,
  type Installed,
} from "../core/extension/installer.ts";
import type { AliasSettings, Model } from "../core/routing/model.ts";
import type { Formats } from "./vendors.ts";
import type { ValidationIssue } from "../core/schema/checker.ts";
import type { Setting } from "./setting.ts";

/**
 * A line of src/extensions.ts: when an extension is loaded. Everything but `name` and `load` may be
 * absent: it is no reason to load it.
 */
export interface ExtensionEntry {
  /** Its folder in src/extensions. */
  readonly name: string;
  /** Its settings, as Setting.path has them. It is loaded when a configuration has one of them. */
  readonly settings?: readonly string[];
  /** The dialects that it brings. It is loaded when a provider uses one. */
  readonly dialects?: readonly string[];
  /** It brings the configuration of a program without a file. At most one extension does. */
  readonly hasConfig?: boolean;
  /** It starts processes, which need its work. At most one extension does. */
  readonly startsProcesses?: boolean;
  /** It is loaded with every configuration. */
  readonly checks?: boolean;
  /** It is loaded whenever a gateway serves. */
  readonly serves?: boolean;
  /** The commands that it brings. It is loaded when one is run, and for `help`. */
  readonly commands?: readonly string[];
  /** It brings the manual, and is loaded for `help`. */
  readonly hasManual?: boolean;
  /** It is loaded when a setting has a value for which `test` is true. */
  readonly loadIf?: { readonly setting: string; readonly test: (value: unknown) => boolean };
  /** Evaluates its index.ts, at the first call. Not called while nothing needs it. */
  load(): Promise<Omit<ConfigExtension, "name">>;
}

/** The dialects that these bring, loaded or not. */
export const dialectsOf = (entries: readonly ExtensionEntry[]): readonly string[] =>
  entries.flatMap(({ dialects = [] }) => dialects);

/** An extension, with its settings: what its index.ts exports, and its name. */
export interface ConfigExtension extends Extension {
  /** The fields that it adds to gateway.json. Its entry lists their paths. Absent: none. */
  readonly settings?: readonly Setting<unknown>[];
}

/** The places of the configuration that an extension can fill. */
export const configSlots = {
  /** The configuration of a program without a file: JSON, as if it had been read. */
  builtInConfig: slot<unknown>("builtInConfig"),
  /** A store outside of the process, by the path of the setting that can name it. */
  store: slotFamily<StoreAddress>("store"),
};

/** The moments of a configuration that extensions can hear. */
export const configMoments = {
  /** The text of a configuration was parsed as JSON. Returns issues of the text. */
  textIssues: moment<(text: string) => readonly ValidationIssue[]>("textIssues"),
  /**
   * A configuration is checked. Returns issues between the extension's settings and others, beyond
   * their shape. Looks at the raw JSON, so that an issue of shape elsewhere hides none.
   */
  issues: moment<(json: unknown, formats: Formats) => readonly ValidationIssue[]>("issues"),
  /**
   * This machine is to serve with a configuration. Returns issues such as an unreadable
   * certificate. Looks at the raw JSON.
   */
  issuesHere: moment<(json: unknown) => readonly ValidationIssue[]>("issuesHere"),
  /** `explain` asks for effects on the use of an alias, in sentences. */
  notes: moment<(alias: AliasSettings) => readonly string[]>("notes"),
  /** `check` asks for warnings about a valid configuration. */
  warnings: moment<(config: Config) => readonly Warning[]>("warnings"),
  /**
   * `check` asks whether something that the configuration needs is missing, such as a package.
   * Throws a ValidationError if so.
   */
  assertReady: moment<(config: Config, installed: Installed) => void>("assertReady"),
  /**
   * `check --live` calls a model. Returns it once with each key of its provider, if that has
   * several.
   */
  keyed: moment<(model: Model, config: Config) => readonly KeyedModel[]>("keyed"),
};

/** A model that is asked with one of several keys. */
export interface KeyedModel {
  /** The last characters of the key, which are all of it that is shown. */
  readonly key: string;
  /** The same model, asked with that key. */
  readonly model: Model;
}

/** Something in a configuration with which a gateway starts, but hardly as it is meant. */
export interface Warning {
  /** From the root of gateway.json, as ValidationIssue.path. */
  readonly path: ValidationIssue["path"];
  /** The text of the warning and its consequence, without the path. */
  readonly message: string;
}

/**
 * A kind of address that may replace a built-in word: `"redis://..."` for `"memory"`.
 */
export interface StoreAddress {
  /** Matches the beginning of such an address. */
  readonly scheme: RegExp;
  /** The kind of server at the address, for messages: "a PostgreSQL database (postgres://...)". */
  readonly expected: string;
}
