// Reads a configuration of LiteLLM. JSON needs nothing; for YAML the optional package `yaml` is
// loaded. Messages never quote the file, which may hold keys.
import {
  failUnreadable,
  MAX_CONFIG_BYTES,
  readRegularFile,
  textIn,
} from "../../../config/regular-file.ts";
import { fail } from "../../../core/schema/checker.ts";
import { loadPeer } from "../../scale/stores/index.ts";

/** What is used of the package. */
interface YamlPackage {
  parse(text: string, options: YamlOptions): unknown;
}

interface YamlOptions {
  readonly version: "1.1";
  /** Chooses from the version's types those that the text may have. */
  readonly customTags: (types: readonly YamlType[]) => readonly YamlType[];
}

interface YamlType {
  readonly tag: string;
}

/** A fault that the package found. Others, such as too many aliases, have no place. */
interface YamlFault {
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
    // LiteLLM reads YAML 1.1, which has merge keys and other words for true and false. A date, such
    // as a version of Azure's API, is wanted as the text that it is.
    const customTags = (types: readonly YamlType[]) =>
      types.filter(({ tag }) => tag !== "tag:yaml.org,2002:timestamp");
    return parse(text, { version: "1.1", customTags });
  } catch (error) {
    const [start] = (error as YamlFault).linePos ?? [];
    const place = start ? `: the fault is at line ${start.line}, column ${start.col}` : "";
    return fail("invalid_value", `${path} is not YAML that can be read${place}`);
  }
}
