// How extensions take part in a configuration: the entries of src/extensions.ts that load them,
// their settings, and the hooks with which they report issues and warnings.
import type { Config } from "../core/config.ts";
import {
  hook,
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
 * An entry of src/extensions.ts: when an extension is loaded. Each member but `name` and `load` may
 * be absent; then it is not a reason to load the extension.
 */
export interface ExtensionEntry {
  /** The name of its folder, in a group of src/extensions. */
  readonly name: string;
  /** The paths of its settings. It is loaded when a configuration has one of them. */
  readonly settings?: readonly string[];
  /** The dialects that it adds. It is loaded when a provider or a model uses one. */
  readonly dialects?: readonly string[];
  /** It has the configuration of a program without a file. At most one extension does. */
  readonly hasConfig?: boolean;
  /** It starts further processes, and runs in them. At most one extension does. */
  readonly startsProcesses?: boolean;
  /** It is loaded with every configuration. */
  readonly checks?: boolean;
  /** It is loaded whenever a gateway serves. */
  readonly serves?: boolean;
  /** The commands that it adds. It is loaded when one is run, and for `help`. */
  readonly commands?: readonly string[];
  /** It has the manual, and is loaded for `help`. */
  readonly hasManual?: boolean;
  /** It is loaded when a setting has a value for which `test` is true. */
  readonly loadIf?: { readonly setting: string; readonly test: (value: unknown) => boolean };
  /** Imports its index.ts. Called only when something needs the extension. */
  load(): Promise<Omit<ConfigExtension, "name">>;
}

/** The dialects that these extensions add, loaded or not. */
export const dialectsOf = (entries: readonly ExtensionEntry[]): readonly string[] =>
  entries.flatMap(({ dialects = [] }) => dialects);

/** A loaded extension: the exports of its index.ts, and its name. */
export interface ConfigExtension extends Extension {
  /** The settings that it adds to gateway.json. Its entry lists their paths. Absent: none. */
  readonly settings?: readonly Setting<unknown>[];
}

/** The slots of the configuration that an extension can fill. */
export const configSlots = {
  /** The configuration of a program without a file, as parsed JSON. */
  builtInConfig: slot<unknown>("builtInConfig"),
  /** The address of a store outside of the process, by the path of the setting that can have it. */
  store: slotFamily<StoreAddress>("store"),
};

/** The hooks of a configuration. */
export const configHooks = {
  /** The text of a configuration was parsed as JSON. Listeners return issues of the text. */
  textIssues: hook<(text: string) => readonly ValidationIssue[]>("textIssues"),
  /**
   * A configuration is checked. Listeners return issues that the schema does not find, such as
   * conflicts between settings. They read the raw JSON, so that an issue of shape elsewhere hides
   * none.
   */
  issues: hook<(json: unknown, formats: Formats) => readonly ValidationIssue[]>("issues"),
  /**
   * A configuration is checked with which this machine will serve. Listeners return issues such as
   * an unreadable certificate. They read the raw JSON.
   */
  hostIssues: hook<(json: unknown) => readonly ValidationIssue[]>("hostIssues"),
  /** `explain` describes an alias. Listeners return sentences about their effects on it. */
  notes: hook<(alias: AliasSettings) => readonly string[]>("notes"),
  /** `check` has found a configuration valid. Listeners return warnings about it. */
  warnings: hook<(config: Config) => readonly Warning[]>("warnings"),
  /**
   * `check` has found a configuration valid. Listeners throw a ValidationError if something that it
   * needs is missing, such as a package.
   */
  assertReady: hook<(config: Config, installed: Installed) => void>("assertReady"),
  /**
   * `check --live` calls a model. Listeners return it once with each key of its provider, if that
   * has several.
   */
  keyed: hook<(model: Model, config: Config) => readonly KeyedModel[]>("keyed"),
};

/** A model that is called with one of several keys. */
export interface KeyedModel {
  /** The last characters of the key. No other part of it is shown. */
  readonly key: string;
  /** The same model, called with that key. */
  readonly model: Model;
}

/** A probable mistake in a configuration with which a gateway can start. */
export interface Warning {
  /** The path from the root of gateway.json. */
  readonly path: ValidationIssue["path"];
  /** The mistake and its consequence, without the path. */
  readonly message: string;
}

/**
 * A kind of address that a setting accepts besides its built-in word: `"redis://..."` besides
 * `"memory"`.
 */
export interface StoreAddress {
  /** Matches such an address, or its beginning. */
  readonly scheme: RegExp;
  /** The kind of server at the address, for messages: "a PostgreSQL database (postgres://...)". */
  readonly expected: string;
}
