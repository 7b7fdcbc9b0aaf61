// The demo key, which everybody knows: it is valid on loopback only.
import type { Config } from "../core/config.ts";
import { sha256 } from "../core/hash.ts";
import { invalid } from "./references.ts";
import type { ValidationIssue } from "../core/schema/checker.ts";

const MUST_BE_LOOPBACK =
  "must be a loopback address while the demo key, which everybody knows, is valid";
const DIGEST = sha256("sk-demo");

export const hasDemoKey = ({ keys }: Pick<Config, "keys">): boolean =>
  keys.some(({ digest }) => digest === DIGEST);

/** The issue of a demo key beyond loopback. `host`: where the gateway listens, or is to listen. */
export const demoKeyIssues = (
  config: Pick<Config, "keys">,
  host: string,
): readonly ValidationIssue[] =>
  isLoopback(host) || !hasDemoKey(config) ? [] : [invalid(["server", "host"], MUST_BE_LOOPBACK)];

export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
