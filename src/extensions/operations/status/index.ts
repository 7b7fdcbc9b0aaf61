// The commands `status` and `top`, which show the state of a running gateway in a terminal.
import { setTimeout as sleep } from "node:timers/promises";
import {
  JSON_OPTION,
  programSlots,
  type Command,
  type CommandArguments,
  type Terminal,
} from "../../../command-line/command.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { createAdminClient, ADMIN_LOAD_OPTIONS, type AdminClient } from "./admin-client.ts";
import { healthOf } from "./health.ts";
import { fetchState, type GatewayState } from "./gateway-state.ts";
import { openScreen } from "./screen.ts";
import { linesOf } from "./view.ts";

export function install(gateway: Installer): void {
  gateway.fill(programSlots.command("status"), status);
  gateway.fill(programSlots.command("top"), top);
}

const status: Command = {
  summary: "how the running gateway is doing: its health, models, breakers and limits",
  example: "status --config gateway.json",
  options: { json: JSON_OPTION },
  run: runStatus,
};

async function runStatus(args: CommandArguments, terminal: Terminal): Promise<number> {
  const client = await clientFor(args, terminal);
  const { address } = client;
  let state: GatewayState;
  try {
    state = await fetchState(client);
  } catch (error) {
    const sentence = `not healthy: ${(error as Error).message}`;
    await terminal.printResult(args, { healthy: false, sentence, address }, `${sentence}\n`);
    return 1;
  }
  const health = healthOf(state.status);
  const refusals = (state.history?.refused ?? []).map(({ account, code, count }) => ({
    account: account ?? "",
    code: code ?? "other",
    count,
  }));
  const data = { ...health, address, ...state.status, refusals };
  await terminal.printResult(args, data, `${linesOf(state).join("\n")}\n`);
  return health.healthy ? 0 : 1;
}

const top: Command = {
  summary: "the running gateway live, until you press q; piped, plain text once",
  example: "top --config gateway.json",
  options: { once: { help: "print once, as plain text, and exit" } },
  stopsBySignal: true,
  run: runTop,
};

/** Milliseconds between two refreshes. */
const STEP_MS = 1_000;
const END_KEYS = ["q", "Q", "\u0003"];

async function runTop(args: CommandArguments, terminal: Terminal): Promise<void> {
  const client = await clientFor(args, terminal);
  if (terminal.stdout.isTTY && args.values["once"] === undefined) {
    await showLive(client, terminal);
    return;
  }
  const lines = [titleOf(client), ...linesOf(await fetchState(client))];
  await terminal.print(`${lines.join("\n")}\n`);
}

const clientFor = async (args: CommandArguments, terminal: Terminal): Promise<AdminClient> =>
  createAdminClient((await terminal.load(args, ADMIN_LOAD_OPTIONS)).config);

const titleOf = ({ address }: AdminClient): string => `chat-gateway at ${address}`;

/** Resolves when a key or `terminal.stopped` ends it. */
async function showLive(client: AdminClient, terminal: Terminal): Promise<void> {
  const end = new AbortController();
  const signal = AbortSignal.any([end.signal, terminal.stopped]);
  const screen = openScreen(terminal.stdout, terminal.stdin?.(), (key) => {
    if (END_KEYS.includes(key)) end.abort();
  });
  try {
    while (!signal.aborted) {
      const lines = await fetchState(client).then(linesOf, (error: Error) => [error.message]);
      screen.show([titleOf(client), ...lines, "", "q: end"]);
      await sleep(STEP_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    screen.close();
  }
}
