// The input of a free-form tool. A model writes it as the arguments of the function that stands for
// the tool: a JSON object with one text.
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";

/** The arguments of the function that stands for a free-form tool. */
export const freeFormArguments = (input: string): string => JSON.stringify({ input });

/** What stands before the text, without white space and with any. */
const COMPACT_BEGINNING = '{"input":"';
const BEGINNING = /^\s*\{\s*"input"\s*:\s*"/;
/** The characters of an escaped character: `\n`, `\u000a`. */
const ESCAPE = 2;
const UNICODE_ESCAPE = 6;

/**
 * The way back. `isCut`: the model was stopped, so that the arguments may have no end; then it is
 * the text up to there. A model that wrote no such arguments meant its text.
 */
export function freeFormInput(text: string, isCut: boolean): string {
  const whole = asString(asObject(parseJson(text))["input"]);
  if (whole !== undefined || !isCut) return whole ?? text;
  if (COMPACT_BEGINNING.startsWith(text.replaceAll(/\s/g, ""))) return "";
  const [beginning] = BEGINNING.exec(text) ?? [];
  if (beginning === undefined) return text;
  const json = text.slice(beginning.length);
  const value = asString(parseJson(`"${json.slice(0, endOfText(json))}"`));
  return value === undefined ? text : withoutHalf(value);
}

/** Where the content of a JSON string ends: before its quote, or before an escape that is cut. */
function endOfText(json: string): number {
  let at = 0;
  while (at < json.length && json[at] !== '"') {
    if (json[at] !== "\\") at += 1;
    else {
      const end = at + (json[at + 1] === "u" ? UNICODE_ESCAPE : ESCAPE);
      if (end > json.length) break;
      at = end;
    }
  }
  return at;
}

/** A character of two units may be cut between its escapes. */
const withoutHalf = (text: string): string => text.replace(/[\ud800-\udbff]$/, "");
