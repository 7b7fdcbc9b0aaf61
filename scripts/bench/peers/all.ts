// The other gateways: those that peers.sh has installed, and why the others are not there.

import type { Kind } from "../target.ts";
import { bifrost } from "./bifrost.ts";
import { envoy } from "./envoy.ts";
import { litellm } from "./litellm.ts";
import { absenceOf, versionOf, type Peer } from "./peer.ts";
import { portkey } from "./portkey.ts";
import { tensorzero } from "./tensorzero.ts";
import { vllmRouter } from "./vllm-router.ts";

const ALL: readonly Peer[] = [envoy, vllmRouter, tensorzero, bifrost, portkey, litellm];

/** A peer that is not installed. */
export interface Absent {
  readonly name: string;
  /** Why, in words. */
  readonly reason: string;
}

/** The peers that can be started, and those that cannot. */
export function peers(): { readonly found: Kind[]; readonly absent: Absent[] } {
  const found: Kind[] = [];
  const absent: Absent[] = [];
  for (const peer of ALL) {
    const version = versionOf(peer);
    if (version === undefined) absent.push({ name: peer.name, reason: absenceOf(peer) });
    else found.push({ ...peer.kind(version), isPeer: true });
  }
  return { found, absent };
}
