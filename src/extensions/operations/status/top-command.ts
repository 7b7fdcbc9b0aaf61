// The command `top`: the live view of a running gateway in a terminal.
import { setTimeout as sleep } from "node:timers/promises";
import type { Command, CommandArguments, Terminal } from "../../../command-line/command.ts";
import { createScreen, type Screen } from "./screen.ts";
import { createAdminClient, loadForAdmin, type AdminClient } from "./admin-client.ts";
import { lookAt, type Snapshot } from "./look.ts";
import { topLines } from "./top-view.ts";

/** Milliseconds between two looks. */
const STEP_MS = 1_000;
/** Rates are those of so many looks. */
const KEPT = 11;
const END_KEYS = ["q", "Q", "\u0003"];
const ADVICE = "q: end";

async function run(args: CommandArguments, terminal: Terminal): Promise<void> {
  const client = createAdminClient(await loadForAdmin(args, terminal));
  const screen = createScreen(terminal.stdout, terminal.stdin);
  if (screen && args.values["once"] === undefined)
    return await showLive(client, screen, terminal.stopped);
  const lines = topLines(client.address, await lookAt(client), undefined);
  return await terminal.print(`${lines.join("\n")}\n`);
}

/** Resolves when a key or `stopped` ends it. */
async function showLive(client: AdminClient, screen: Screen, stopped: AbortSignal): Promise<void> {
  const end = new AbortController();
  const stop = (): void => end.abort();
  stopped.addEventListener("abort", stop, { once: true });
  let lines: readonly string[] = [`chat-gateway at ${client.address}`];
  const opened = screen.open({
    key(character) {
      if (END_KEYS.includes(character)) stop();
    },
    resized: () => opened.show(lines),
  });
  const looks: Snapshot[] = [];
  try {
    while (!end.signal.aborted) {
      lines = [...(await nextLines(client, looks)), "", ADVICE];
      opened.show(lines);
      await sleep(STEP_MS, undefined, { signal: end.signal }).catch(() => undefined);
    }
  } finally {
    opened.close();
    stopped.removeEventListener("abort", stop);
  }
}

/** Takes a look, which is added to `looks`. While no gateway answers, why not. */
async function nextLines(client: AdminClient, looks: Snapshot[]): Promise<readonly string[]> {
  try {
    const look = await lookAt(client);
    const lines = topLines(client.address, look, looks[0]);
    looks.push(look);
    if (looks.length > KEPT) looks.shift();
    return lines;
  } catch (error) {
    looks.length = 0;
    return [`chat-gateway at ${client.address}`, (error as Error).message];
  }
}

export const topCommand: Command = {
  summary: "the running gateway live, until q is pressed; plain text once where it is piped",
  example: "top --config gateway.json",
  options: { once: { meaning: "print once, as plain text, and end" } },
  stopsBySignal: true,
  run,
};
