// What the console shows of the moment: a look at all processes every few seconds, kept for a
// quarter of an hour, and sent to every open page as a server-sent event. The first event brings
// all that is kept.
import type { ServerResponse } from "node:http";
import type { Host, Status } from "../installation/index.ts";
import type { Exchange } from "../../core/http/exchange.ts";
import { FAMILIES, samplesOf, since, type Samples } from "../metrics/index.ts";

const STEP_MS = 3_000;
/** Looks that are kept. */
const KEPT = 300;

/** What the page draws. */
const DRAWN = ["chat_gateway_requests_total", "gen_ai_server_time_to_first_token_seconds"] as const;
const { buckets } = FAMILIES.gen_ai_server_time_to_first_token_seconds;

export interface Live {
  /** Opens the stream of a page. */
  open(exchange: Exchange): Promise<void>;
  close(): void;
}

export function createLive(host: Host): Live {
  const pages = new Set<ServerResponse>();
  const points: string[] = [];
  let before: Samples | undefined;
  let status: Status | undefined;
  let isStepping = false;

  /** `fresh` are JSON already. */
  function event(fresh: readonly string[]): string {
    const head = JSON.stringify({ status, address: host.publicAddress(), buckets });
    return `data: ${head.slice(0, -1)},"points":[${fresh.join()}]}\n\n`;
  }

  async function step(): Promise<void> {
    const look = await host.look();
    const samples = samplesOf(look);
    const { in_flight, event_loop_delay } = look.status;
    const point = JSON.stringify({
      time: host.clock.now(),
      in_flight,
      event_loop_delay: event_loop_delay["0.99"],
      ...since(DRAWN, samples, before ?? samples),
    });
    status = look.status;
    before = samples;
    points.push(point);
    if (points.length > KEPT) points.shift();
    const text = pages.size > 0 ? event([point]) : "";
    for (const page of pages) if (!page.writableNeedDrain) page.write(text);
  }

  async function stepIfIdle(): Promise<void> {
    if (isStepping) return;
    isStepping = true;
    // While no process serves there is nothing to look at.
    await step().catch(() => undefined);
    isStepping = false;
  }
  const timer = setInterval(stepIfIdle, STEP_MS).unref();

  return {
    async open({ req, res, cancel }) {
      if (!status) await step();
      const headers = {
        "Content-Type": "text/event-stream; charset=utf-8",
        "Cache-Control": "no-store",
      };
      res.writeHead(200, headers).write(event(points));
      if (req.method === "HEAD") {
        res.end();
        return;
      }
      pages.add(res);
      cancel.onAbort(() => {
        pages.delete(res);
        res.end();
      });
    },
    close: () => clearInterval(timer),
  };
}
