// The setting of the origins whose pages may call the gateway, each as browsers send it: a wrong
// one would never match.
import {
  array,
  fail,
  makeCheck,
  nonEmpty,
  refine,
  wrongType,
  type Check,
} from "../../../core/schema/checker.ts";

/** Exact origins, or all. */
export type Origins = readonly string[] | "*";

/**
 * What a scheme other than http and https is followed by, such as that of a browser's extension.
 */
const OTHER_ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/[a-z0-9._-]+(?::[0-9]{1,5})?$/;

const origin = refine(nonEmpty, (text) => {
  if (originOf(text) === text) return text;
  const example = "scheme, host and port, such as https://app.example.com";
  return fail("invalid_value", `expected an origin exactly as browsers send it: ${example}`);
});

/**
 * The origin of an address as browsers send it: in lower case, without path, credentials and the
 * usual port. Undefined: it has none.
 */
function originOf(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || url.protocol === "file:") return undefined;
  if (/^https?:$/.test(url.protocol)) return url.host.includes("*") ? undefined : url.origin;
  const other = `${url.protocol}//${url.host}`;
  return OTHER_ORIGIN.test(other) ? other : undefined;
}

const list = refine(array(origin, { min: 1 }), (origins) => {
  const repeated = origins.findIndex((text, index) => origins.indexOf(text) !== index);
  return repeated === -1 ? origins : fail("invalid_value", "stands in the list twice", [repeated]);
});

/** A list of exact origins, or `"*"`. */
export const originsCheck: Check<Origins> = makeCheck(
  { anyOf: [list.schema, { enum: ["*"] }] },
  (value, all) => {
    if (value === "*") return value;
    return Array.isArray(value) ? list(value, all) : wrongType('a list of origins, or "*"', value);
  },
);
