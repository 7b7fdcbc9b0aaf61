// What a description of another gateway says of itself, and where peers.sh installs them.

import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Kind } from "../target.ts";

/** The folder that peers.sh installs into. */
export const PEERS = process.env["BENCH_PEERS"] ?? join(homedir(), ".cache", "chat-gateway-bench");

/** Another gateway that peers.sh can install. */
export interface Peer {
  /** Its name in the output. */
  readonly name: string;
  /** Its name in peers.sh. */
  readonly id: string;
  /** Its description as a target; called only once it is installed. */
  readonly kind: (version: string) => Omit<Kind, "isPeer">;
}

const noteOf = (file: string): string | undefined =>
  existsSync(join(PEERS, file)) ? readFileSync(join(PEERS, file), "utf8").trim() : undefined;

/** The version that peers.sh installed; absent: it is not there. */
export const versionOf = ({ id }: Peer): string | undefined => noteOf(`${id}.version`);

/** Why a peer is not there. */
export const absenceOf = ({ id }: Peer): string =>
  noteOf(`${id}.absent`) ?? `it is not in ${PEERS} (scripts/bench/peers.sh installs it)`;
