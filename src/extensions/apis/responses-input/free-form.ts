// The input of a free-form tool. A model writes it as the arguments of the function that replaces
// the tool: a JSON object with one text.
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";

/** The arguments of a free-form tool's function. */
export const freeFormArguments = (input: string): string => JSON.stringify({ input });

const inputIn = (json: string): string | undefined => asString(asObject(parseJson(json))["input"]);

/** The beginning of arguments, without white space. */
const BEGINNING = '{"input":"';
/** An escaped character that is cut: `\`, `\u00`. */
const CUT_ESCAPE = /\\(?:u[0-9a-f]{0,3})?$/i;
/** The first half of a surrogate pair, whose second escape may be cut off. */
const HALF = /[\ud800-\udbff]$/;

/**
 * The input in a model's arguments. `isCut`: the reply was cut, so the arguments may be incomplete;
 * returns the text up to the cut. Arguments in another form are returned as they are.
 */
export function freeFormInput(text: string, isCut: boolean): string {
  const whole = inputIn(text);
  if (whole === undefined && text.trim() === "{}") return "";
  if (whole !== undefined || !isCut) return whole ?? text;
  if (BEGINNING.startsWith(text.replaceAll(/\s/g, ""))) return "";
  const withoutEscape = text.replace(CUT_ESCAPE, "");
  const cut = inputIn(`${text}"}`) ?? inputIn(`${withoutEscape}"}`) ?? inputIn(`${text}}`);
  return cut?.replace(HALF, "") ?? text;
}
