// One phase: gateways under load that are killed and told of other prices, until enough requests
// have ended; then everything that there is to know of them is collected.

import { collectAtRest, collectRunning, collectTomorrow } from "./collect.ts";
import type { Crowd } from "./client.ts";
import { createGateways, type Gateways, type GatewaysOptions } from "./gateways.ts";
import type { House } from "./house.ts";
import { type Phase, type PhaseEvent, purseOf } from "./plan.ts";
import type { Provider } from "./provider.ts";

export interface PhaseOptions extends Omit<GatewaysOptions, "house" | "provider"> {
  readonly provider: Provider;
  readonly crowd: (gateways: number, clients: number) => Crowd;
  /** PostgreSQL dies and comes again. */
  readonly killDatabase: () => Promise<void>;
  /** The rows of usage_records. Absent: the records are in files. */
  readonly readRows?: (() => Promise<Record<string, any>[]>) | undefined;
  /** How many receipts are asked for. */
  readonly receipts: number;
}

const CLIENTS = 24;

/** What happens during a phase, in a random order. */
function eventsOf({ events }: Phase, shuffle: () => number): readonly PhaseEvent[] {
  const counts = Object.entries(events) as [PhaseEvent, number][];
  return counts
    .flatMap(([event, count]) => Array.from({ length: count }, () => ({ event, at: shuffle() })))
    .sort((a, b) => a.at - b.at)
    .map(({ event }) => event);
}

/** Nothing is known of the phase yet. */
export const emptyHouse = (phase: Phase): House => ({
  phase: phase.name,
  gateways: phase.gateways,
  isReference: phase.isReference === true,
  asked: [],
  calls: new Map(),
  kills: [],
  disturbances: [],
  changes: [],
  purse: purseOf(phase),
  estates: [],
  statements: [],
  receipts: [],
  budgets: new Map(),
  complaints: [],
});

/** Load, kills and changes of prices. Resolves with heads that were made in the middle. */
async function live(
  { phase, random, killDatabase }: PhaseOptions,
  gateways: Gateways,
  crowd: Crowd,
): Promise<readonly string[]> {
  const events = eventsOf(phase, random.random);
  const step = phase.requests / (events.length + 1);
  const heads: string[] = [];
  for (const [index, event] of events.entries()) {
    await crowd.reached(Math.round(step * (index + 1)));
    if (index === events.length >> 1 && !phase.isReference)
      for (const each of gateways.list)
        heads.push((await gateways.run(each, "seal", "head")).trim());
    const gateway = random.pick(gateways.list);
    if (event === "kill") await gateways.kill(gateway, crowd);
    else if (event === "kill worker") await gateways.killWorker(gateway);
    else if (event === "kill database")
      await Promise.all([killDatabase(), gateways.kill(gateway, crowd)]);
    else await gateways.change();
  }
  await crowd.reached(phase.requests);
  await crowd.stop();
  return heads;
}

export async function runPhase(options: PhaseOptions): Promise<House> {
  const { phase, provider, random, readRows, folder } = options;
  const house = emptyHouse(phase);
  const gateways = createGateways({ ...options, provider: provider.url, house });
  try {
    await gateways.startAll();
    const crowd = options.crowd(phase.gateways, Math.round(CLIENTS / phase.gateways));
    for (const { number, address } of gateways.list) crowd.turnTo(number, address);
    const heads = await live(options, gateways, crowd);
    house.asked.push(...crowd.asked);
    for (const { serial } of house.asked) {
      const calls = provider.ledger.get(serial);
      if (calls) house.calls.set(serial, [...calls]);
    }
    await collectRunning(gateways, house, random, options.receipts);
    await gateways.stop();
    await collectAtRest(gateways, house, heads);
    await collectTomorrow(gateways, house, folder, random);
    if (readRows) house.rows = await readRows();
    return house;
  } finally {
    gateways.end();
  }
}
