// The input of a free-form tool. A model writes it as the arguments of the function that stands for
// the tool: a JSON object with one text.
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";

/** The arguments of the function that stands for a free-form tool. */
export const freeFormArguments = (input: string): string => JSON.stringify({ input });

/** The way back. A model that wrote no such arguments meant its text. */
export const freeFormInput = (text: string): string =>
  asString(asObject(parseJson(text))["input"]) ?? text;
