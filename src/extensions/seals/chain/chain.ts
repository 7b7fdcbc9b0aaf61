// The seal of a line of the spend log. A sealed line is a JSON object whose last member is `seal`:
// the SHA-256 of the seal of the line before it (64 hexadecimal digits) followed by the line's
// body. The body is the line without the member `seal` and without the comma before it. The first
// line of a segment is sealed as if the line before it had a seal of 64 zeros, and has a member
// `chain` that names the last seals of earlier segments.
import { sha256 } from "../../../core/hash.ts";
import { asObject, asString, parseJson } from "../../../core/schema/untrusted-json.ts";

/** What stands in the place of the seal of a line that is not there. */
export const NO_SEAL = "0".repeat(64);

const SEAL_AT = ',"seal":"';
/** The end of a sealed line: the member `seal`, and the brace that closes the object. */
const SUFFIX_LENGTH = SEAL_AT.length + NO_SEAL.length + '"}'.length;
const SEAL = /^[0-9a-f]{64}$/;

/** A line of the spend log, taken apart. */
export interface SealedLine {
  readonly body: string;
  readonly seal: string;
}

/** The seal of a body after the line that has the seal `previous`. */
export const sealOf = (previous: string, body: string): string => sha256(previous + body);

/** A body, which is a JSON object with a member at least, as a line with its seal. */
export const withSeal = (body: string, seal: string): string =>
  `${body.slice(0, -1)}${SEAL_AT}${seal}"}`;

/** Takes a line apart. Undefined if it has no seal. */
export function splitSeal(line: string): SealedLine | undefined {
  const at = line.length - SUFFIX_LENGTH;
  if (at < 1 || !line.startsWith(SEAL_AT, at) || !line.endsWith('"}')) return undefined;
  const seal = line.slice(at + SEAL_AT.length, -'"}'.length);
  return SEAL.test(seal) ? { body: `${line.slice(0, at)}}`, seal } : undefined;
}

/** The last line of a segment, as the first line of a later segment names it. */
export interface Tip {
  /** The segment's file name. */
  readonly segment: string;
  readonly seal: string;
}

/** The body of a segment's first line: that of any other line, and the tips of earlier segments. */
export const withTips = (body: string, previous: readonly Tip[]): string =>
  `${body.slice(0, -1)},"chain":${JSON.stringify({ previous })}}`;

/** The tips that a segment's first line names. Undefined if it is no first line of a chain. */
export function tipsIn(line: string): readonly Tip[] | undefined {
  const { previous } = asObject(asObject(parseJson(line))["chain"]);
  if (!Array.isArray(previous)) return undefined;
  return (previous as unknown[]).map((tip) => {
    const { segment, seal } = asObject(tip);
    return { segment: asString(segment) ?? "", seal: asString(seal) ?? "" };
  });
}
