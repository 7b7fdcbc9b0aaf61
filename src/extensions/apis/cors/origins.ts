// The setting of the origins whose pages may call the gateway, each as browsers send it: a wrong
// one would never match.
import {
  array,
  fail,
  makeCheck,
  refine,
  string,
  type Check,
} from "../../../core/schema/checker.ts";

/** Exact origins, or all. */
export type Origins = readonly string[] | "*";

/**
 * What a scheme other than http and https is followed by, such as that of a browser's extension.
 */
const OTHER_ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+(?::[0-9]{1,5})?$/;
const EXAMPLE = "https://app.example.com";

const origin = refine(string({ min: 1 }), (text) => {
  if (text === "*") return fail("invalid_value", 'expected origins, or "*" in the list\'s place');
  if (text.includes("*"))
    return fail("invalid_value", "must name one origin exactly: there are no patterns");
  const sent = originOf(text);
  if (sent === undefined)
    return fail("invalid_value", `expected an origin such as ${EXAMPLE}: scheme, host and port`);
  if (sent === text) return text;
  return fail("invalid_value", `must be as browsers send it: ${sent}`);
});

/**
 * The origin of an address as browsers send it: in lower case, without path, credentials and the
 * usual port. Undefined: it has none.
 */
function originOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !text.includes("://") || url.protocol === "file:") return undefined;
  if (/^https?:$/.test(url.protocol)) return url.origin;
  const other = `${url.protocol}//${url.host}`.toLowerCase();
  return OTHER_ORIGIN.test(other) ? other : undefined;
}

const list = refine(array(origin, { min: 1 }), (origins) => {
  const repeated = origins.findIndex((text, index) => origins.indexOf(text) !== index);
  return repeated === -1 ? origins : fail("invalid_value", "stands in the list twice", [repeated]);
});

const schema = { anyOf: [list.schema, { enum: ["*"] }] };

/** A list of exact origins, or `"*"`. */
export const originsCheck: Check<Origins> = makeCheck(schema, (value, all) => {
  if (value === "*") return value;
  if (typeof value === "string")
    return fail("invalid_type", 'expected a list of origins, or "*" for all of them');
  return list(value, all);
});
