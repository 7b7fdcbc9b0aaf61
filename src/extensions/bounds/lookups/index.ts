// Looks up the addresses of hosts, one lookup of a host at a time.
import dns from "node:dns";
import type { LookupFunction } from "node:net";

/** The lookups in progress, by host and options: the connections that wait for the addresses. */
const lookups = new Map<string, Parameters<LookupFunction>[2][]>();

/**
 * Looks up a host once for all connections that wait for it. Node makes only two lookups at a time
 * by default, and each takes ten seconds or more if no name server answers: those of one such host
 * would delay the connections to all others.
 */
export const lookup: LookupFunction = (host, options, answered) => {
  const asked = `${host} ${JSON.stringify(options)}`;
  const waiting = lookups.get(asked) ?? [];
  if (waiting.push(answered) > 1) return;
  lookups.set(asked, waiting);
  dns.lookup(host, options, (...answer) => {
    lookups.delete(asked);
    for (const each of waiting) each(...answer);
  });
};
