// What the picture of README.md shows, as it happens: a provider dies in the middle of a stream, a
// model of another provider continues it, and the receipt has both attempts and the cost. Both
// providers are here, on loopback; the gateway between them and the client is the real one.
import http, { type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const KEY = "sk-demo-client";
export const ALIAS = "auto/chat";
export const REQUEST_ID = "sky-1";
export const QUESTION = "Why is the sky blue?";

/** The model that dies, and the one that continues. */
export const DYING = "llama-local";
export const STEADY = "mistral-small";

const BEGINNING = "The sky is blue because air scatters the short waves of sunlight far more";
const REST =
  " than the long ones, so blue light comes to us from every direction, and red light does not.";
const PROMPT_TOKENS = 12;

/** A provider of the picture. */
export interface Played {
  readonly url: string;
  close(): void;
}

/** A receipt, as far as the picture shows it. */
export interface Receipt {
  readonly status: string;
  readonly model: string;
  readonly cost: string;
  readonly currency: string;
  readonly attempts: readonly {
    readonly model: string;
    readonly outcome: string;
    readonly cost: string;
  }[];
}

export interface Recording {
  /** The pieces of text that the client got from each model, in order. */
  readonly pieces: readonly { readonly text: string; readonly model: string }[];
  /** The last line of the stream. */
  readonly end: string;
  readonly receipt: Receipt;
}

const event = (json: unknown): string => `data: ${JSON.stringify(json)}\n\n`;
const chunk = (delta: object, finish: string | null = null, more: object = {}): string =>
  event({
    id: "upstream-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "upstream",
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  });

/** A text as chunks of a word each. */
const words = (text: string): string =>
  (text.match(/ ?\S+/g) ?? []).map((content) => chunk({ content })).join("");

async function startProvider(reply: (res: ServerResponse) => void): Promise<Played> {
  const server = http.createServer((req, res) => {
    req.resume();
    req.once("end", () => {
      res.writeHead(200, { "content-type": "text/event-stream" });
      reply(res);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

/** Sends the beginning of the answer, and then drops its connection. */
export const startDying = (): Promise<Played> =>
  startProvider((res) => res.write(words(BEGINNING), () => res.socket?.destroy()));

/** Continues the answer to its end. */
export const startSteady = (): Promise<Played> =>
  startProvider((res) => {
    const completion_tokens = REST.split(" ").length - 1;
    const prompt_tokens = PROMPT_TOKENS + BEGINNING.split(" ").length;
    const usage = {
      prompt_tokens,
      completion_tokens,
      total_tokens: prompt_tokens + completion_tokens,
    };
    res.end(`${words(REST)}${chunk({}, "stop", { usage })}data: [DONE]\n\n`);
  });

/** The configuration of the gateway, but for its ports and its data. */
export const configOf = (dying: Played, steady: Played): object => ({
  providers: {
    ollama: { vendor: "ollama", dialect: "openai", base_url: dying.url },
    mistral: { vendor: "mistral", base_url: steady.url, api_key: "sk-of-the-provider" },
  },
  models: {
    [DYING]: { provider: "ollama", price: { input_cache_miss: 0.05, output: 0.1 } },
    [STEADY]: { provider: "mistral", price: { input_cache_miss: 0.1, output: 0.3 } },
  },
  aliases: { [ALIAS]: { models: [DYING, STEADY], recovery: "continue" } },
  keys: [{ account: "acme", key: KEY }],
});

/** Asks the gateway, reads the stream to its end, and asks for the receipt. */
export async function record(url: string): Promise<Recording> {
  const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...headers, "x-request-id": REQUEST_ID },
    body: JSON.stringify({
      model: ALIAS,
      stream: true,
      messages: [{ role: "user", content: QUESTION }],
    }),
  });
  const lines = (await response.text()).split("\n").filter((line) => line.startsWith("data: "));
  const end = lines.at(-1) ?? "";
  const pieces = lines
    .filter((line) => line.startsWith("data: {"))
    .map((line) => JSON.parse(line.slice("data: ".length)))
    .map(({ model, choices }) => ({ model, text: choices[0]?.delta.content ?? "" }))
    .filter(({ text }) => text !== "");
  const found = await fetch(`${url}/v1/requests/${REQUEST_ID}`, { headers });
  const { data } = (await found.json()) as { data: Receipt[] };
  const [receipt] = data;
  if (!receipt) throw new Error(`no receipt of ${REQUEST_ID}`);
  return { pieces, end, receipt };
}
