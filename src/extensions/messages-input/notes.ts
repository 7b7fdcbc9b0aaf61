// What chat completions has no words for, noted while a request is translated.
import type { NativeRequest } from "../../core/openai/native-request.ts";
import type { ValidationIssue } from "../../core/schema/checker.ts";
import { asArray, asObject } from "../../core/schema/untrusted-json.ts";

type Path = ValidationIssue["path"];

export interface Notes {
  /** Notes the thing at this place of the client's request. `what` is for the client. */
  note(path: Path, what: string): void;
  /** The first thing that was noted. Undefined: there is none. */
  first(): NativeRequest["only"];
  /** The bytes of all blocks and tools that were noted, without the data of media. */
  bytes(): number;
}

/** `body`: the client's request. */
export function createNotes(body: Readonly<Record<string, unknown>>): Notes {
  let first: NativeRequest["only"];
  let bytes = 0;
  return {
    note(path, what) {
      const message = `${what} needs a model of a provider that speaks the Messages API`;
      first ??= { path: [...path], message };
      bytes += bytesOf(contentAt(body, path));
    },
    first: () => first,
    bytes: () => bytes,
  };
}

/** The block or the tool at, or around, a place. Undefined: it is in none. */
function contentAt(body: Readonly<Record<string, unknown>>, path: Path): unknown {
  const [field, index, , ...rest] = path;
  if (typeof index !== "number") return undefined;
  if (field !== "messages") return asArray(body[String(field)])[index];
  const message = asArray(body["messages"])[index];
  let value: unknown = asObject(message)["content"];
  for (const step of rest)
    value = typeof step === "number" ? asArray(value)[step] : asObject(value)[step];
  return value;
}

function bytesOf(value: unknown): number {
  if (value === undefined) return 0;
  const withoutMedia = (name: string, member: unknown): unknown => (name === "data" ? "" : member);
  return Buffer.byteLength(JSON.stringify(value, withoutMedia));
}
