// What the console shows of the moment: a look at all processes every few seconds, kept for a quarter of an hour, and sent to every page
// that is open as a server-sent event: the first one brings all that is kept.
import type { ServerResponse } from "node:http";
import type { Status } from "../admin/admin.ts";
import type { Exchange } from "../../core/http/exchange.ts";
import { FIRST_TOKEN_BUCKETS, since, type Samples } from "../metrics/metrics.ts";

const STEP_MS = 3_000;
const KEPT = 300;

/** `look`: what all processes say at the moment, together; rejects while none does. */
export function createLive(
  look: () => Promise<{ readonly status: Status; readonly samples: Samples }>,
  publicAddress: () => string,
) {
  const pages = new Set<ServerResponse>();
  const points: string[] = [];
  let before: Samples | undefined;
  let status: Status | undefined;
  /** `fresh` are JSON already. */
  const event = (fresh: readonly string[]) =>
    `data: ${JSON.stringify({ status, address: publicAddress(), buckets: FIRST_TOKEN_BUCKETS }).slice(0, -1)},"points":[${fresh.join()}]}\n\n`;

  async function step(): Promise<void> {
    const seen = await look();
    status = seen.status;
    const { in_flight, event_loop_delay } = status;
    const point = JSON.stringify({
      time: Date.now(),
      in_flight,
      event_loop_delay: event_loop_delay["0.99"],
      ...since(seen.samples, before ?? seen.samples),
    });
    before = seen.samples;
    points.splice(0, points.push(point) - KEPT);
    const text = pages.size > 0 ? event([point]) : "";
    for (const page of pages) if (!page.writableNeedDrain) page.write(text);
  }
  let stepping: Promise<void> | undefined;
  const timer = setInterval(() => {
    stepping ??= step()
      .catch(() => undefined)
      .finally(() => (stepping = undefined));
  }, STEP_MS).unref();

  return {
    async open({ req, res, cancel }: Exchange): Promise<void> {
      if (!status) await step();
      res
        .writeHead(200, {
          "Content-Type": "text/event-stream; charset=utf-8",
          "Cache-Control": "no-store",
        })
        .write(event(points));
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
