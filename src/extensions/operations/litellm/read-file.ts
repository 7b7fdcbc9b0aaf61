// Reads a configuration of LiteLLM: JSON, or YAML by the optional package `yaml`. Error messages
// never quote the file, because it may hold keys.
import {
  failUnreadable,
  MAX_CONFIG_BYTES,
  readRegularFile,
  textIn,
} from "../../../config/regular-file.ts";
import { fail } from "../../../core/schema/checker.ts";
import { loadPeer } from "../../scale/stores/index.ts";

/** The part of the package that is used. */
interface YamlPackage {
  parse(text: string, options: object): unknown;
}

/** A syntax error. Other errors, such as too many aliases, have no `linePos`. */
interface YamlError {
  readonly linePos?: readonly { readonly line: number; readonly col: number }[];
}

/** Throws a ValidationError if the file cannot be read, or is neither JSON nor YAML. */
export function readLitellmFile(path: string): unknown {
  const text = textIn(bytesOf(path));
  try {
    return JSON.parse(text);
  } catch {
    return parseYaml(path, text);
  }
}

function bytesOf(path: string): Buffer {
  try {
    return readRegularFile(path, MAX_CONFIG_BYTES).bytes;
  } catch (error) {
    return failUnreadable(path, error);
  }
}

function parseYaml(path: string, text: string): unknown {
  const { parse } = loadPeer<YamlPackage>("yaml", "--from-litellm");
  try {
    // LiteLLM reads YAML 1.1, which has merge keys and further words for true and false, and takes
    // the last of several fields with one name. Dates stay text: versions of Azure's API look like
    // dates.
    const customTags = (types: readonly { readonly tag: string }[]) =>
      types.filter(({ tag }) => tag !== "tag:yaml.org,2002:timestamp");
    return parse(text, { version: "1.1", uniqueKeys: false, customTags });
  } catch (error) {
    const [start] = (error as YamlError).linePos ?? [];
    const place = start ? `: the fault is at line ${start.line}, column ${start.col}` : "";
    return fail("invalid_value", `${path} is not YAML that can be read${place}`);
  }
}
