// Services that hand out tokens, providers that want them, and the issues of a configuration.

import assert from "node:assert/strict";
import http from "node:http";
import { ValidationError } from "../../src/core/schema/checker.ts";
import { listening } from "./listening.ts";
import { completion, status, type Asked } from "./provider.ts";
import type { Scope } from "./scope.ts";
import { now } from "./today.ts";

export interface TokenService {
  readonly url: string;
  /** Tokens that were handed out and are still accepted. */
  readonly valid: Set<string>;
  /** Requests that it has answered, as their method, path and form. */
  readonly asked: string[];
}

/** Hands out tokens to those who `mayHave` says may have one. */
export async function startTokenService(
  t: Scope,
  mayHave: (req: http.IncomingMessage, form: URLSearchParams) => boolean,
  /** Of a token's life; and what is handed out, if it is not another token each time. */
  { seconds = 3600, token: always }: { seconds?: number; token?: string } = {},
): Promise<TokenService> {
  const valid = new Set<string>();
  const asked: string[] = [];
  const server = http.createServer((req, res) => {
    let text = "";
    req.on("data", (piece: Buffer) => (text += piece.toString()));
    req.on("end", () => {
      asked.push(`${req.method} ${req.url} ${text}`);
      const isGranted = mayHave(req, new URLSearchParams(text));
      const token = always ?? `token-${asked.length}`;
      if (isGranted) valid.add(token);
      res.writeHead(isGranted ? 200 : 401, { "content-type": "application/json" });
      // App Service states the end of a token's life, the others its length.
      const life = req.headers["x-identity-header"]
        ? { expires_on: String(Math.floor(now() / 1000) + seconds) }
        : { expires_in: seconds };
      const granted = { token_type: "Bearer", access_token: token, ...life };
      res.end(
        JSON.stringify(isGranted ? granted : { error: "invalid_client", error_description: text }),
      );
    });
  });
  return { url: await listening(t, server), valid, asked };
}

/** Whether a request is a GET for this path with this query, in any order, and nothing else. */
export function asksFor(
  { method, url = "" }: http.IncomingMessage,
  path: string,
  query: Readonly<Record<string, string>>,
): boolean {
  const { pathname, searchParams } = new URL(url, "http://localhost");
  const pairs = (entries: Iterable<[string, string]>) => [...entries].sort().join("&");
  const isAsked = pairs(searchParams.entries()) === pairs(Object.entries(query));
  return method === "GET" && pathname === path && isAsked;
}

/** Answers requests that show one of these tokens. */
export const withToken =
  ({ valid }: TokenService) =>
  (asked: Asked): void => {
    const token = /^Bearer (\S+)$/.exec(String(asked.headers.authorization))?.[1] ?? "";
    const isLet = valid.has(token) && asked.headers["api-key"] === undefined;
    const answer = isLet
      ? completion({ content: "Hi." })
      : { error: { code: "401", message: token } };
    status(isLet ? 200 : 401, answer)(asked);
  };

/** The issues of a configuration, a line each. */
export function issueLines(check: () => unknown): string[] {
  try {
    check();
    return [];
  } catch (error) {
    assert.ok(error instanceof ValidationError);
    return error.message.split("\n");
  }
}
