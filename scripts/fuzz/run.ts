// Sends the cases, many at a time, until all are through or one shows a fault. It knows which cases
// were under way, or just over, when that was: a crash takes all of them along.

import { makeCase, type Case } from "./cases.ts";
import { play } from "./play.ts";

/** Cases that are over are remembered: so many at least, and so many at most. */
const REMEMBERED = [100, 1_000] as const;
const LAST = 20;

export interface RunOptions {
  readonly seed: number;
  /** The numbers of the cases, one after the other; absent: 0, 1, 2 and so on. */
  readonly only?: readonly number[] | undefined;
  /** How many cases. */
  readonly cases: number;
  readonly publicPort: number;
  readonly adminPort: number;
  /** Whether to go on. */
  readonly goesOn: () => boolean;
  /** Called with what is wrong. */
  readonly fault: (text: string) => void;
}

export interface Run {
  /** Sends cases, one after the other, until there are no more. Several may run side by side. */
  work(): Promise<void>;
  /** Remembers which cases are under way now. Only the first call counts. */
  suspect(): void;
  /** The cases that were remembered. */
  suspects(): readonly number[];
  begun(): number;
  /** How often each status was seen, and each other end of a connection. */
  readonly counts: ReadonlyMap<string, number>;
}

export function createRun(options: RunOptions): Run {
  const { seed, only, cases, publicPort, adminPort, goesOn, fault } = options;
  const counts = new Map<string, number>();
  const underWay = new Set<number>();
  const over: number[] = [];
  let suspects: readonly number[] = [];
  let begun = 0;

  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1);

  function suspect(): void {
    if (suspects.length === 0) suspects = [...over.slice(-LAST), ...underWay];
  }

  async function send(number: number): Promise<void> {
    underWay.add(number);
    const sent = makeCase(seed, number);
    const played = await play(sent.admin ? adminPort : publicPort, sent);
    for (const status of played.statuses) count(`${status}`);
    if (played.end !== "answered") count(played.end);
    if (played.fault !== undefined) {
      suspect();
      fault(told({ seed, number, sent, fault: played.fault }));
    }
    underWay.delete(number);
    over.push(number);
    if (over.length > REMEMBERED[1]) over.splice(0, over.length - REMEMBERED[0]);
  }

  return {
    async work() {
      while (begun < cases && goesOn()) {
        const number = only?.[begun] ?? begun;
        begun += 1;
        await send(number);
      }
    },
    suspect,
    suspects: () => suspects,
    begun: () => begun,
    counts,
  };
}

interface Found {
  readonly seed: number;
  readonly number: number;
  readonly sent: Case;
  readonly fault: string;
}

/** A fault with the case that showed it. */
function told({ seed, number, sent, fault }: Found): string {
  const listener = sent.admin ? "admin" : "public";
  const packets = sent.pieces.map((piece) => `  "${escaped(piece)}"`).join("\n");
  const which = `seed ${seed}, case ${number} (${sent.told}), to the ${listener} listener`;
  return `${fault}\n  ${which}, in packets:\n${packets}`;
}

const NAMED: Readonly<Record<string, string>> = { "\r": "\\r", "\n": "\\n" };

/** As it can be pasted into a string of most languages. */
const escaped = (bytes: Buffer): string =>
  bytes
    .toString("latin1")
    .replace(
      /[^\x20-\x7e]|[\\"]/g,
      (char) => NAMED[char] ?? `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`,
    );
