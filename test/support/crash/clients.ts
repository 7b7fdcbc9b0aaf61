// The clients of the gateways that are killed, and what they make of the answers.

import http from "node:http";
import { type Verdict, verdictOn } from "../../../scripts/reconcile/verdict.ts";
import { waitFor, within } from "../wait.ts";
import { UNANSWERED } from "./provider.ts";
import { ALIAS, KEYS, LATE_MS, MODELS, type Random } from "./setup.ts";

/** What a client sent, and what came of it. */
export interface Told extends Verdict {
  /** In the message's text, so that the provider sees it too. */
  readonly serial: string;
  readonly account: string;
  /** Its X-Request-Id; undefined: none, or none came back. */
  readonly id: string | undefined;
  readonly sentId: boolean;
  readonly status: number;
}

interface Target {
  readonly url: string;
  readonly agent: http.Agent;
}

let serials = 0;
const nextSerial = (start: string): string => {
  serials += 1;
  return `${start}${serials}`;
};

/** One request to its end, whatever that is. Its client stays if the provider is not to answer. */
function ask(
  { url, agent }: Target,
  { random, between, pick }: Random,
  serial = nextSerial("request "),
): Promise<Told> {
  const [account, key] = pick(KEYS);
  const given = pick(["own", "own", "own", "own", "own", "own", "shared", "none"]);
  let sent: string | undefined;
  if (given === "own") sent = `own-${serial.replace(" ", "-")}`;
  else if (given === "shared") sent = `shared-${between(1, 3)}`;
  const streaming = random() < 0.5;
  const leaves = random() < 0.08 && !serial.startsWith(UNANSWERED) ? between(0, 40) : undefined;
  const body = JSON.stringify({
    model: pick([...MODELS, ALIAS]),
    messages: [{ role: "user", content: serial }],
    stream: streaming,
    ...(streaming && random() < 0.7 && { stream_options: { include_usage: true } }),
  });
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": body.length,
      ...(sent !== undefined && { "x-request-id": sent }),
    };
    const about = { serial, account, sentId: sent !== undefined };
    const req = http.request(
      `${url}/v1/chat/completions`,
      { method: "POST", agent, headers },
      (res) => {
        let text = "";
        res.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        res.on("error", () => undefined);
        res.on("close", () =>
          resolve({
            ...about,
            id: res.headers["x-request-id"] as string,
            status: res.statusCode ?? 0,
            ...verdictOn(res, text, { api: "chat", stream: streaming }),
          }),
        );
      },
    );
    req.on("error", () => resolve({ ...about, id: sent, verdict: "cut", status: 0 }));
    if (leaves !== undefined) setTimeout(() => req.destroy(), leaves);
    req.end(body);
  });
}

/** Clients that ask one request after the other, of whatever gateway is there at the moment. */
export interface Crowd {
  readonly told: readonly Told[];
  /**
   * Where they ask from now on; undefined: nowhere, until told otherwise. Connections to the one
   * before are left.
   */
  turnTo(address: string | undefined): void;
  /** Sends one more request, which the provider does not answer; returns its serial number. */
  askInVain(): string;
  /** Resolves when so many more requests have ended. */
  ended(requests: number): Promise<void>;
  /** Resolves when so many more replies have come whole. */
  more(replies: number): Promise<void>;
  /** Lets the requests that are on their way end, and sends no more. */
  stop(): Promise<void>;
}

export function createCrowd(size: number, random: Random): Crowd {
  const told: Told[] = [];
  let target: Target | undefined;
  let turned = () => {};
  let turn = new Promise<void>((resolve) => (turned = resolve));
  let stopped = false;
  const replies = () => told.filter(({ verdict }) => verdict === "whole").length;
  async function client(): Promise<void> {
    while (!stopped) {
      if (!target) await turn;
      else told.push(await ask(target, random));
    }
  }
  const clients = Array.from({ length: size }, client);
  const turnTo = (address: string | undefined) => {
    target =
      address === undefined
        ? undefined
        : { url: address, agent: new http.Agent({ keepAlive: true }) };
    turned();
    turn = new Promise<void>((resolve) => (turned = resolve));
  };
  return {
    told,
    turnTo,
    askInVain() {
      const serial = nextSerial(UNANSWERED);
      clients.push(
        ask(target!, random, serial).then((each) => {
          told.push(each);
        }),
      );
      return serial;
    },
    ended: async (count) => {
      const enough = told.length + count;
      await waitFor(() => told.length >= enough, `${count} requests to end`, LATE_MS);
    },
    more: async (count) => {
      const enough = replies() + count;
      await waitFor(() => replies() >= enough, `${count} whole replies`, LATE_MS);
    },
    async stop() {
      stopped = true;
      turned();
      await within(Promise.all(clients), "the last requests to end", LATE_MS);
    },
  };
}
